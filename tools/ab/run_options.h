/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_RUN_OPTIONS_H
#define CUDAPOLICY_TOOLS_AB_RUN_OPTIONS_H

/*
 * The options with which the runs of an experiment are made, as its journal keeps them: runs made
 * with others are not the same experiment's. What only decides how results are shown, or what is
 * kept, is not among them.
 */

#include <jansson.h>

#include "option.h"

/* An object of options by their names on the command line, those given alone; beside --library its
 * digest. library: the file that is preloaded. */
json_t *run_options_json(const struct ab_options *options, const char *library);

/* What is different, each option named with its value now and then: "--env (A=2; then: A=1),
 * --timeout (not given; then: 5)". NULL: nothing. To be freed. */
char *run_options_difference(const json_t *now, const json_t *then);

/* The same of any two objects with the same keys, by their keys. */
char *run_options_keys(const json_t *now, const json_t *then);

/* "A=2; then: A=1". To be freed. */
char *run_options_pair(const json_t *now, const json_t *then);

/* A value in one line, for a message; "not given" where it is NULL. To be freed. */
char *run_options_text(const json_t *value);

#endif
