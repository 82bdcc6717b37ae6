/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signature is what libiberty prints. The name is read from the tree that libiberty prints it
 * from, not from the text: in text, foo<N<(3)> and operator<<int> cannot be told apart from
 * templates without knowing all of C++. In the tree, template arguments, parameters, the return
 * type, ABI tags and clone suffixes are components of their own, each beside the name that it
 * belongs to, so they are left out by not visiting them. What remains are the parts between the
 * "::".
 *
 * Nothing on this stack has to be released but the tree, and that is noted where the caller finds
 * it; so whoever runs out of room for text leaves the stack at once, in the middle of libiberty.
 */
#include "decide/name_demangle.h"

#include <string.h>

#include "decide/name_stack.h"
#include "decide/name_tree.h"

enum {
    PRINT_OPTIONS = DMGL_PARAMS | DMGL_ANSI,
    SPINE_STEP_LIMIT = 1024 * 1024,
    CONVERSION_LIMIT = 16, /* each costs a pass over the whole tree */
};

struct text {
    char *bytes; /* NAME_DEMANGLE_TEXT_LIMIT and a zero byte; NULL: only counted */
    size_t length;
    struct name_stack *stack;
};

/* A component that is yet to be written, or with NULL, the "::" between two. */
struct spine_item {
    struct demangle_component *component;
    struct demangle_component *arguments; /* of the template around it */
};

struct demangling {
    const char *mangled;
    size_t length;
    struct name_stack *stack;
    void *tree_scratch;
    struct spine_item *items;
    size_t item_count;
    struct name_tree tree;
    struct text name;
    struct text signature;
    size_t last_component;
    unsigned conversions;
    bool is_special; /* no function or variable, but something that belongs to one */
    bool name_known;
    bool signature_known;
};

static void append(struct text *text, const char *bytes, size_t length)
{
    if (length > NAME_DEMANGLE_TEXT_LIMIT - text->length) {
        name_stack_leave(text->stack);
    }
    if (text->bytes != NULL) {
        memcpy(text->bytes + text->length, bytes, length);
    }
    text->length += length;
}

static void receive(const char *bytes, size_t length, void *text)
{
    append(text, bytes, length);
}

static bool print(struct demangling *work, struct demangle_component *component, struct text *text)
{
    return work->tree.printable &&
           cplus_demangle_print_callback(PRINT_OPTIONS, component, receive, text) != 0;
}

/*
 * A conversion operator of a template: its type may refer to the template's arguments, and
 * libiberty finds them only when it prints the template. So the template is printed, `operator
 * int<int>`, and what the arguments alone take is cut off again.
 */
static bool write_conversion(struct demangling *work, struct spine_item item)
{
    struct demangle_component placeholder = {.type = DEMANGLE_COMPONENT_NAME};
    struct demangle_component template = {.type = DEMANGLE_COMPONENT_TEMPLATE};
    struct text counted = {.stack = work->stack};

    if (++work->conversions > CONVERSION_LIMIT) {
        return false;
    }
    name_tree_unmark(&work->tree);
    if (item.arguments == NULL) {
        return print(work, item.component, &work->name);
    }
    placeholder.u.s_name.s = "x";
    placeholder.u.s_name.len = 1;
    template.u.s_binary.left = &placeholder;
    template.u.s_binary.right = item.arguments;
    if (!print(work, &template, &counted)) {
        return false;
    }
    name_tree_unmark(&work->tree);
    template.d_counting = 0;
    template.u.s_binary.left = item.component;
    if (!print(work, &template, &work->name)) {
        return false;
    }
    work->name.length -= counted.length - 1;
    return true;
}

/* A standard abbreviation such as std::string; spelt out, it has template arguments in its text. */
static void write_abbreviation(struct demangling *work, const struct demangle_component *component)
{
    const char *text = component->u.s_string.string;
    size_t length = (size_t)component->u.s_string.len;
    const char *arguments = memchr(text, '<', length);

    append(&work->name, text, arguments != NULL ? (size_t)(arguments - text) : length);
}

static void push(struct demangling *work, struct demangle_component *component,
                 struct demangle_component *arguments)
{
    struct spine_item item = {.component = component, .arguments = arguments};

    work->items[work->item_count++] = item;
}

static void push_pair(struct demangling *work, struct demangle_component *component,
                      struct demangle_component *arguments)
{
    push(work, component->u.s_binary.right, arguments);
    push(work, NULL, NULL);
    push(work, component->u.s_binary.left, arguments);
}

/* What stands before the "::" of an entity in a default argument is part of the name. */
static bool write_default_argument(struct demangling *work, struct spine_item item)
{
    char digits[16];
    size_t length = 0;
    unsigned number = (unsigned)item.component->u.s_unary_num.num + 1;

    if (item.component->u.s_unary_num.sub == NULL) {
        return false;
    }
    do {
        digits[sizeof digits - ++length] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    append(&work->name, "{default arg#", strlen("{default arg#"));
    append(&work->name, digits + sizeof digits - length, length);
    append(&work->name, "}", 1);
    push(work, item.component->u.s_unary_num.sub, item.arguments);
    push(work, NULL, NULL);
    return true;
}

static const struct demangle_component *
without_clone_suffixes(const struct demangle_component *component)
{
    while (component->type == DEMANGLE_COMPONENT_CLONE) {
        component = component->u.s_binary.left;
    }
    return component;
}

/* Writes one component, or puts those it consists of before the others; false if it is no name. */
static bool write_component(struct demangling *work, struct spine_item item)
{
    struct demangle_component *component = item.component;

    switch (component->type) {
    case DEMANGLE_COMPONENT_QUAL_NAME:
    case DEMANGLE_COMPONENT_LOCAL_NAME:
        push_pair(work, component, item.arguments);
        return true;
    case DEMANGLE_COMPONENT_TEMPLATE:
        push(work, component->u.s_binary.left, component->u.s_binary.right);
        return true;
    case DEMANGLE_COMPONENT_TYPED_NAME: /* right: parameters and return type */
    case DEMANGLE_COMPONENT_CLONE:      /* right: the suffix */
    case DEMANGLE_COMPONENT_TAGGED_NAME:
#ifdef HAVE_DEMANGLE_MODULE_ENTITY
    case DEMANGLE_COMPONENT_MODULE_ENTITY:
#endif
    case DEMANGLE_COMPONENT_RESTRICT_THIS:
    case DEMANGLE_COMPONENT_VOLATILE_THIS:
    case DEMANGLE_COMPONENT_CONST_THIS:
    case DEMANGLE_COMPONENT_REFERENCE_THIS:
    case DEMANGLE_COMPONENT_RVALUE_REFERENCE_THIS:
    case DEMANGLE_COMPONENT_TRANSACTION_SAFE:
    case DEMANGLE_COMPONENT_NOEXCEPT:
    case DEMANGLE_COMPONENT_THROW_SPEC:
        if (component->u.s_binary.left == NULL) {
            return false;
        }
        push(work, component->u.s_binary.left, item.arguments);
        return true;
    case DEMANGLE_COMPONENT_CTOR:
        push(work, component->u.s_ctor.name, NULL);
        return true;
    case DEMANGLE_COMPONENT_DTOR:
        append(&work->name, "~", 1);
        push(work, component->u.s_dtor.name, NULL);
        return true;
    case DEMANGLE_COMPONENT_NAME:
        append(&work->name, component->u.s_name.s, (size_t)component->u.s_name.len);
        return true;
    case DEMANGLE_COMPONENT_SUB_STD:
        write_abbreviation(work, component);
        return true;
    case DEMANGLE_COMPONENT_DEFAULT_ARG:
        return write_default_argument(work, item);
    case DEMANGLE_COMPONENT_CONVERSION:
        return write_conversion(work, item);
    case DEMANGLE_COMPONENT_OPERATOR:
    case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
    case DEMANGLE_COMPONENT_UNARY: /* operator"" _x */
    case DEMANGLE_COMPONENT_LAMBDA:
    case DEMANGLE_COMPONENT_UNNAMED_TYPE:
#ifdef HAVE_DEMANGLE_STRUCTURED_BINDING
    case DEMANGLE_COMPONENT_STRUCTURED_BINDING:
#endif
        return print(work, component, &work->name);
    default:
        work->is_special = component == without_clone_suffixes(work->tree.root);
        return false;
    }
}

static bool write_name(struct demangling *work)
{
    push(work, work->tree.root, NULL);
    for (unsigned step = 0; work->item_count > 0; step++) {
        struct spine_item item = work->items[--work->item_count];

        if (step == SPINE_STEP_LIMIT) {
            return false;
        }
        if (item.component == NULL) {
            append(&work->name, "::", 2);
            work->last_component = work->name.length;
        } else if (!write_component(work, item)) {
            return false;
        }
    }
    return true;
}

/* A guard variable or a virtual table has no name but all of it. */
static bool copy_signature_to_name(struct demangling *work)
{
    work->name.length = 0;
    work->last_component = 0;
    append(&work->name, work->signature.bytes, work->signature.length);
    return true;
}

/* Runs on a stack of its own. */
static void demangle(void *argument)
{
    struct demangling *work = argument;

    if (!name_tree_parse(&work->tree, work->mangled, work->length, work->tree_scratch)) {
        return;
    }
    work->name_known = write_name(work);
    name_tree_unmark(&work->tree);
    work->signature_known = print(work, work->tree.root, &work->signature);
    if (work->is_special && work->signature_known) {
        work->name_known = copy_signature_to_name(work);
    }
}

static size_t aligned(size_t size)
{
    return (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
}

bool name_demangle(const char *mangled, struct name_demangled *out)
{
    struct demangling *work;
    struct name_stack *stack;
    size_t length = strnlen(mangled, NAME_DEMANGLE_LENGTH_LIMIT + 1);
    size_t tree_size = aligned(name_tree_scratch_size(length));
    /* A component of the tree adds at most three items and takes one away. */
    size_t items_size = aligned((2 * length * 2 + 1) * sizeof(struct spine_item));
    unsigned char *scratch;

    *out = (struct name_demangled){0};
    if (length > NAME_DEMANGLE_LENGTH_LIMIT) {
        return true;
    }
    stack = name_stack_open(length * NAME_TREE_STACK_PER_BYTE + NAME_TREE_STACK_TO_PRINT +
                                NAME_TREE_ARRAY_TO_PRINT,
                            aligned(sizeof *work) + tree_size + items_size +
                                2 * (size_t)(NAME_DEMANGLE_TEXT_LIMIT + 1));
    if (stack == NULL) {
        return false;
    }
    scratch = name_stack_scratch(stack);
    work = (struct demangling *)(void *)scratch;
    scratch += aligned(sizeof *work);
    work->mangled = mangled;
    work->length = length;
    work->stack = stack;
    work->tree_scratch = scratch;
    work->items = (struct spine_item *)(void *)(scratch + tree_size);
    work->name.bytes = (char *)scratch + tree_size + items_size;
    work->name.stack = stack;
    work->signature.bytes = work->name.bytes + NAME_DEMANGLE_TEXT_LIMIT + 1;
    work->signature.stack = stack;
    name_stack_run(stack, demangle, work);
    name_tree_release(&work->tree);

    out->memory = stack;
    if (work->name_known) {
        work->name.bytes[work->name.length] = '\0';
        out->name = work->name.bytes;
        out->last_component = work->last_component;
    }
    if (work->signature_known) {
        work->signature.bytes[work->signature.length] = '\0';
        out->signature = work->signature.bytes;
    }
    return true;
}

void name_demangle_release(struct name_demangled *demangled)
{
    if (demangled->memory != NULL) {
        name_stack_close(demangled->memory);
    }
    *demangled = (struct name_demangled){0};
}
