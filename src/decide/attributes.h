/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_ATTRIBUTES_H
#define CUDAPOLICY_DECIDE_ATTRIBUTES_H

/*
 * The attribute array of a changed launch: the program's attributes in their order, each as it was
 * or with our value, without those taken away; then ours.
 *
 * Where the program gives an attribute twice the last one counts (measured), so that one is
 * replaced; taking an attribute away takes all of them.
 */

#include <stdbool.h>

#include "decide/decide.h"
#include "decide/settle.h"

/* False when it would be longer than DECIDE_ATTRIBUTE_LIMIT: nothing is written then. Launch path.
 */
bool decide_attributes_merge(const struct decide_case *at, struct decide_verdict *verdict);

/* Copies what the driver wrote into our array to the program's. Launch path. */
void decide_attributes_copy_back(const struct decide_launch *launch,
                                 const struct decide_verdict *verdict);

#endif
