/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_INVENTORY_H
#define CUDAPOLICY_TOOLS_INVENTORY_H

/* What a program launches: kernels, the libraries that launch them, streams. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "results.h"

void inventory_print(const struct results *results, bool wide, FILE *stream);
json_t *inventory_json(const struct results *results);

/* inventory_policy.c. A policy to start from, which changes nothing until its mode is: a rule for
 * each kernel whose name speaks of communication, the others as comments. */
void inventory_print_policy(const struct results *results, FILE *stream);

#endif
