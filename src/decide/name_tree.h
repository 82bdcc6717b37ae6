/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree that libiberty's demangler makes of a mangled name, checked before it is used.
 *
 * Names come from whatever modules a program loads. The demangler is well kept, but some names make
 * it take time or stack without bound, and a few make its printer follow a pointer that is not one.
 * What can be said of a tree by looking at it once, in linear time, is said here.
 *
 * Everything here recurses with the length of the name (inside libiberty) and allocates: to be
 * called on a stack made by decide/name_stack.h, and never on the launch path.
 */
#ifndef CUDAPOLICY_DECIDE_NAME_TREE_H
#define CUDAPOLICY_DECIDE_NAME_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libiberty/demangle.h>

enum {
    /* The stack that parsing takes for each byte of the name: every level of its recursion consumes
     * a byte at least, and the frames of one level come to some 300 bytes when libiberty is
     * compiled with optimisation. */
    NAME_TREE_STACK_PER_BYTE = 1024,
    /* The stack that printing takes: libiberty goes 1,024 levels deep of up to some 700 bytes... */
    NAME_TREE_STACK_TO_PRINT = 4 * 1024 * 1024,
    /* ... and keeps an array whose size is a product of two counts, each up to the name's length.
     */
    NAME_TREE_ARRAY_TO_PRINT = 4 * 1024 * 1024,
};

struct name_tree {
    struct demangle_component *root;
    struct demangle_component *components; /* all components lie in this array; from malloc() */
    size_t capacity;                       /* of it */
    uint32_t *order;                       /* indices of those in use, children before parents */
    size_t count;
    bool printable; /* libiberty may be asked to print it, or a part of it */
};

/* Bytes of zeroed memory that name_tree_parse() needs for a name of this length. */
size_t name_tree_scratch_size(size_t length);

/*
 * Parses `mangled`, `length` bytes long, which begins with _Z. False if it is not a mangled name,
 * if parsing it could take too long, or if there is no memory. tree->components may be set all the
 * same.
 */
bool name_tree_parse(struct name_tree *tree, const char *mangled, size_t length, void *scratch);

/* The components that libiberty reaches from this one; either may be NULL. */
void name_tree_children(const struct demangle_component *component,
                        struct demangle_component *children[2]);

/* Clears the marks that printing leaves in the components, which would spoil the next printing. */
void name_tree_unmark(struct name_tree *tree);

/* Frees the components. Runs on any stack. */
void name_tree_release(struct name_tree *tree);

#endif
