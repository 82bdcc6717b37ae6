/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On which paths libiberty (2023) can fail, and what is done about each:
 *
 * - Parsing. T_I...E in the type of a conversion operator (cv) is parsed twice, and so is what
 * stands inside it: names with many are not parsed at all.
 * - cplus_demangle_v3_components() never sets one field of its state, which says whether the newer
 *   mangling of names such as A<T>::x in expressions (sr) is to be tried. See parse_as().
 * - Printing. Components are shared, so the text can be exponentially longer than the name: the
 *   receiver of the text stops it (decide/name_demangle.c). Where the work grows and the text does
 * not, and where the printer takes one kind of component for another, the tree is marked
 * unprintable. What the printer does with a shared component or a cycle through template arguments
 * it bounds by itself, by depth.
 */
#include "decide/name_tree.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEMANGLE_OPTIONS = DMGL_PARAMS | DMGL_ANSI, /* as nm -C prints names */

    /* At most 2^16 parses of the same piece. A kernel's name has none of these at all. */
    TEMPLATE_CONVERSION_LIMIT = 16,
    /* Visits when libiberty looks for the pack in a pack expansion: it does not see what is shared.
     */
    PACK_PATTERN_LIMIT = 4096,
    /* One element of the printer's arrays, and in how many copies each component is counted. */
    PRINT_ELEMENT_SIZE = 16,
    PRINT_COPIES = 2,
};

/* What a component contains, itself included. */
enum {
    CONTAINS_UNARY = 1 << 0,
    /* Something that the printer prints from another place than where it stands. */
    CONTAINS_DETOUR = 1 << 1,
};

enum colour { WHITE, GREY, BLACK };

struct node {
    uint32_t visits; /* of a walk that does not see what is shared; saturates */
    uint8_t contains;
    uint8_t colour;
};

struct survey {
    struct name_tree *tree;
    struct node *nodes;
    uint32_t *pending; /* a stack of components yet to be visited */
    size_t pending_count;
    size_t templates;
    size_t references;
};

size_t name_tree_scratch_size(size_t length)
{
    size_t capacity = 2 * length; /* as in libiberty: two components for a byte */

    /* A component is pending at most once for each edge to it, and has two edges to others. */
    return capacity * sizeof(struct node) + capacity * sizeof(uint32_t) +
           (2 * capacity + 1) * sizeof(uint32_t);
}

void name_tree_children(const struct demangle_component *component,
                        struct demangle_component *children[2])
{
    children[0] = NULL;
    children[1] = NULL;
    switch (component->type) {
    case DEMANGLE_COMPONENT_NAME:
    case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
    case DEMANGLE_COMPONENT_FUNCTION_PARAM:
    case DEMANGLE_COMPONENT_SUB_STD:
    case DEMANGLE_COMPONENT_BUILTIN_TYPE:
#ifdef HAVE_DEMANGLE_EXTENDED_BUILTIN_TYPE
    case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
#endif
    case DEMANGLE_COMPONENT_OPERATOR:
    case DEMANGLE_COMPONENT_CHARACTER:
    case DEMANGLE_COMPONENT_NUMBER:
    case DEMANGLE_COMPONENT_UNNAMED_TYPE:
        return;
    case DEMANGLE_COMPONENT_CTOR:
        children[0] = component->u.s_ctor.name;
        return;
    case DEMANGLE_COMPONENT_DTOR:
        children[0] = component->u.s_dtor.name;
        return;
    case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
        children[0] = component->u.s_extended_operator.name;
        return;
    case DEMANGLE_COMPONENT_FIXED_TYPE:
        children[0] = component->u.s_fixed.length;
        return;
    case DEMANGLE_COMPONENT_LAMBDA:
    case DEMANGLE_COMPONENT_DEFAULT_ARG:
        children[0] = component->u.s_unary_num.sub;
        return;
    default:
        children[0] = component->u.s_binary.left;
        children[1] = component->u.s_binary.right;
        return;
    }
}

/* The index of a component; false if it does not lie in the array. */
static bool index_of(const struct name_tree *tree, const struct demangle_component *component,
                     size_t *index)
{
    uintptr_t offset = (uintptr_t)component - (uintptr_t)tree->components;

    *index = offset / sizeof *component;
    return *index < tree->capacity && offset % sizeof *component == 0;
}

static const struct node *child_node(const struct survey *survey,
                                     const struct demangle_component *child)
{
    size_t index;

    return child != NULL && index_of(survey->tree, child, &index) ? &survey->nodes[index] : NULL;
}

static bool is_list(const struct demangle_component *component)
{
    return component != NULL && component->type == DEMANGLE_COMPONENT_TEMPLATE_ARGLIST;
}

/*
 * A pack that is an element of a pack. No compiler writes one; the printer would spend time on it
 * without printing anything when the innermost is empty.
 */
static bool holds_pack_in_pack(const struct demangle_component *list)
{
    if (!is_list(list->u.s_binary.left)) {
        return false;
    }
    for (const struct demangle_component *element = list->u.s_binary.left; is_list(element);
         element = element->u.s_binary.right) {
        if (is_list(element->u.s_binary.left)) {
            return true;
        }
    }
    return false;
}

static bool has_template_head(const struct demangle_component *parameters)
{
#ifdef HAVE_DEMANGLE_TEMPLATE_HEAD
    return parameters->type == DEMANGLE_COMPONENT_TEMPLATE_HEAD;
#else
    (void)parameters; /* such a lambda is not understood at all */
    return false;
#endif
}

/*
 * In the parameters of a lambda the printer resolves no template parameters, except that of
 * sizeof...(T), a unary operator, where it then reads through NULL. If the lambda has template
 * parameters of its own, it looks for those in whatever list was entered last.
 */
static bool is_printable_lambda(const struct survey *survey,
                                const struct demangle_component *lambda)
{
    const struct demangle_component *parameters = lambda->u.s_unary_num.sub;
    const struct node *node = child_node(survey, parameters);

    if (node == NULL) {
        return false;
    }
    return (node->contains & CONTAINS_UNARY) == 0 &&
           (!has_template_head(parameters) || (node->contains & CONTAINS_DETOUR) == 0);
}

/* Whether libiberty can print a component whose children have been surveyed. */
static bool is_printable(struct survey *survey, const struct demangle_component *component)
{
    const struct demangle_component *left = component->u.s_binary.left;
    const struct node *node;

    switch (component->type) {
    case DEMANGLE_COMPONENT_TEMPLATE:
        survey->templates++;
        return true;
    case DEMANGLE_COMPONENT_REFERENCE:
    case DEMANGLE_COMPONENT_RVALUE_REFERENCE:
        if (left != NULL && left->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM) {
            survey->references++;
        }
        return left != NULL;
    case DEMANGLE_COMPONENT_RESTRICT_THIS:
    case DEMANGLE_COMPONENT_VOLATILE_THIS:
    case DEMANGLE_COMPONENT_CONST_THIS:
    case DEMANGLE_COMPONENT_REFERENCE_THIS:
    case DEMANGLE_COMPONENT_RVALUE_REFERENCE_THIS:
    case DEMANGLE_COMPONENT_TRANSACTION_SAFE:
    case DEMANGLE_COMPONENT_NOEXCEPT:
    case DEMANGLE_COMPONENT_THROW_SPEC:
        return left != NULL; /* some paths of the parser leave these hollow */
    case DEMANGLE_COMPONENT_DEFAULT_ARG:
        return component->u.s_unary_num.sub != NULL;
    case DEMANGLE_COMPONENT_LAMBDA:
        return is_printable_lambda(survey, component);
    case DEMANGLE_COMPONENT_TEMPLATE_ARGLIST:
        return !holds_pack_in_pack(component);
    case DEMANGLE_COMPONENT_PACK_EXPANSION:
        node = child_node(survey, left);
        return node != NULL && node->visits <= PACK_PATTERN_LIMIT;
    case DEMANGLE_COMPONENT_UNARY: /* sizeof...(T) looks for a pack, too */
        node = child_node(survey, component->u.s_binary.right);
        return node != NULL && node->visits <= PACK_PATTERN_LIMIT;
    case DEMANGLE_COMPONENT_BINARY: /* the printer takes the left one for an operator unseen */
    case DEMANGLE_COMPONENT_TRINARY:
        return left != NULL && left->type == DEMANGLE_COMPONENT_OPERATOR;
    default:
        return true;
    }
}

static uint8_t own_contents(const struct demangle_component *component)
{
    switch (component->type) {
    case DEMANGLE_COMPONENT_UNARY:
        return CONTAINS_UNARY;
    case DEMANGLE_COMPONENT_TYPED_NAME:
    case DEMANGLE_COMPONENT_CONVERSION:
    case DEMANGLE_COMPONENT_FUNCTION_TYPE:
    case DEMANGLE_COMPONENT_ARRAY_TYPE:
    case DEMANGLE_COMPONENT_PTRMEM_TYPE:
        return CONTAINS_DETOUR;
    default:
        return 0;
    }
}

/* All children of the component have been finished. */
static void finish(struct survey *survey, size_t index)
{
    const struct demangle_component *component = &survey->tree->components[index];
    struct demangle_component *children[2];
    struct node *node = &survey->nodes[index];

    node->visits = 1;
    node->contains = own_contents(component);
    name_tree_children(component, children);
    for (int i = 0; i < 2; i++) {
        const struct node *child = child_node(survey, children[i]);

        if (child != NULL) {
            node->contains |= child->contains;
            node->visits += child->visits;
        }
    }
    if (node->visits > PACK_PATTERN_LIMIT) {
        node->visits = PACK_PATTERN_LIMIT + 1; /* two of these and one do not overflow */
    }
    node->colour = BLACK;
    survey->tree->order[survey->tree->count++] = (uint32_t)index;
    if (!is_printable(survey, component)) {
        survey->tree->printable = false;
    }
}

/* Enters a component and leaves its children pending; false on a cycle or a foreign component. */
static bool enter(struct survey *survey, size_t index)
{
    struct demangle_component *children[2];

    survey->nodes[index].colour = GREY;
    name_tree_children(&survey->tree->components[index], children);
    for (int i = 0; i < 2; i++) {
        size_t child;

        if (children[i] == NULL) {
            continue;
        }
        if (!index_of(survey->tree, children[i], &child) || survey->nodes[child].colour == GREY) {
            return false;
        }
        if (survey->nodes[child].colour == WHITE) {
            survey->pending[survey->pending_count++] = (uint32_t)child;
        }
    }
    return true;
}

/* Visits everything below the root, children first, without recursing. */
static bool walk(struct survey *survey, size_t root)
{
    survey->pending[survey->pending_count++] = (uint32_t)root;
    while (survey->pending_count > 0) {
        size_t index = survey->pending[survey->pending_count - 1];

        if (survey->nodes[index].colour == WHITE) {
            if (!enter(survey, index)) {
                return false;
            }
            continue;
        }
        survey->pending_count--;
        if (survey->nodes[index].colour == GREY) {
            finish(survey, index);
        }
    }
    return true;
}

static bool survey_tree(struct name_tree *tree, void *scratch)
{
    struct survey survey = {.tree = tree, .nodes = scratch};
    size_t root;

    tree->order = (uint32_t *)(survey.nodes + tree->capacity);
    survey.pending = tree->order + tree->capacity;
    tree->printable = true;
    if (!index_of(tree, tree->root, &root) || !walk(&survey, root)) {
        return false;
    }
    if (PRINT_COPIES * survey.references * (PRINT_COPIES * survey.templates + 1) >
        NAME_TREE_ARRAY_TO_PRINT / PRINT_ELEMENT_SIZE) {
        tree->printable = false;
    }
    return true;
}

/* Whether the name has more T_I or T<number>_I, behind a cv, than may be parsed. Both occur in
 * plain identifiers too; only many of them are refused. */
static bool may_take_long(const char *mangled)
{
    const char *cursor = strstr(mangled, "cv");
    size_t count = 0;

    if (cursor == NULL) {
        return false;
    }
    while ((cursor = strstr(cursor, "_I")) != NULL) {
        const char *digit = cursor;

        while (digit[-1] >= '0' && digit[-1] <= '9') {
            digit--; /* stops at the cv at the latest */
        }
        count += digit[-1] == 'T' ? 1 : 0;
        cursor += 2;
    }
    return count > TEMPLATE_CONVERSION_LIMIT;
}

/* Leaves `byte` where the frame of the function that is called next will lie. */
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) static void
fill_next_frame(int byte)
{
    volatile unsigned char frame[2048];

    for (size_t i = 0; i < sizeof frame; i++) {
        frame[i] = (unsigned char)byte;
    }
}

/*
 * libiberty's other entry points try the newer mangling of unresolved names first, and then the
 * older one. This one leaves the field that says so as it finds it on the stack, so what it finds
 * there is put there: anything but 0 for the newer, 0 for the older. A libiberty that sets the
 * field itself answers the same twice.
 */
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) static bool
parse_as(struct name_tree *tree, const char *mangled, int fill)
{
    void *components = NULL;

    fill_next_frame(fill);
    tree->root = cplus_demangle_v3_components(mangled, DEMANGLE_OPTIONS, &components);
    tree->components = tree->root != NULL ? components : NULL;
    return tree->root != NULL;
}

bool name_tree_parse(struct name_tree *tree, const char *mangled, size_t length, void *scratch)
{
    *tree = (struct name_tree){.capacity = 2 * length};
    if (may_take_long(mangled)) {
        return false;
    }
    if (!parse_as(tree, mangled, 1) &&
        (strstr(mangled, "sr") == NULL || !parse_as(tree, mangled, 0))) {
        return false;
    }
    return survey_tree(tree, scratch);
}

void name_tree_unmark(struct name_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        struct demangle_component *component = &tree->components[tree->order[i]];

        component->d_printing = 0;
        component->d_counting = 0;
    }
}

void name_tree_release(struct name_tree *tree)
{
    free(tree->components);
    tree->components = NULL;
    tree->root = NULL;
}
