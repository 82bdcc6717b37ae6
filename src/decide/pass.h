/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_PASS_H
#define CUDAPOLICY_DECIDE_PASS_H

/* The stubs' table of functions for which no rule can ever match; see decide.h. Writers hold the
 * lock of decide_functions. */

#include <stdint.h>

/* Enters a function with the cell that its launches are counted in. Does nothing when the slot is
 * another function's: that one stays, and this one takes the longer way. */
void decide_pass_enter(void *function, uint32_t cell);

/* Takes a function out before its handle ends; does nothing when it is not in. */
void decide_pass_leave(void *function);

/* Takes a function out while its handle lives on and is launched: until that ends, its place is for
 * no other function, whose count a launch that has just found the handle would read. */
void decide_pass_suspend(void *function);

/* Empties the table. */
void decide_pass_start(void);

#endif
