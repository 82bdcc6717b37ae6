/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SHOW_LISTS_H
#define CUDAPOLICY_TOOLS_SHOW_LISTS_H

/* Lists of `cudapolicy show` about the installation: environment variables, policies to start from,
 * and the library. */

#include <jansson.h>
#include <stdbool.h>

void variables_print(bool wide);
json_t *variables_json(void);

/* The policies that came with this command; a line says so where they are not found. */
void policies_print(bool wide);
json_t *policies_json(void);

/* The library that `cudapolicy run` would preload, and what it says of itself. */
void library_print(void);
json_t *library_json(void);

#endif
