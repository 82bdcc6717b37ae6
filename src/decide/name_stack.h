/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack to run one function on, away from the stack of the calling thread.
 *
 * The demangler recurses with the length of the name and keeps arrays of variable size on the
 * stack, while the thread that first launches a kernel may have 64 KiB in all. So it runs on memory
 * mapped for this one call: nothing is cached or shared, so nothing has to be locked, and a fork or
 * a signal at any moment finds no state that could be wrong in the child or in the handler.
 */
#ifndef CUDAPOLICY_DECIDE_NAME_STACK_H
#define CUDAPOLICY_DECIDE_NAME_STACK_H

#include <stddef.h>

struct name_stack;

/*
 * Maps a stack of at least `stack_size` bytes with an inaccessible region below it, and
 * `scratch_size` bytes of zeroed memory beside it. Both take real memory only where they are
 * touched. NULL if they cannot be had. Makes system calls: not for the launch path.
 */
struct name_stack *name_stack_open(size_t stack_size, size_t scratch_size);

/* The scratch memory, aligned for any object. */
void *name_stack_scratch(struct name_stack *stack);

/*
 * Runs function(argument) on the stack. Comes back when the function returns or calls
 * name_stack_leave(). At most once for a stack.
 */
void name_stack_run(struct name_stack *stack, void (*function)(void *), void *argument);

/*
 * Ends name_stack_run() from anywhere below it: the frames on the stack are abandoned, so none of
 * them may hold anything that has to be released. To be called on the stack itself.
 */
_Noreturn void name_stack_leave(struct name_stack *stack);

/* Gives back the stack and the scratch memory. Not to be called on the stack itself. */
void name_stack_close(struct name_stack *stack);

#endif
