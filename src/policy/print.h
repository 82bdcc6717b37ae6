/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_PRINT_H
#define CUDAPOLICY_POLICY_PRINT_H

/* A policy, or parts of it, as the policy language writes it in its canonical form: one value a
 * line, keys in the order of the vocabulary, no comments. Reading what policy_print wrote gives the
 * same rules again. Not for the launch path; write errors show on the stream. */

#include <stdio.h>

#include "policy/policy.h"

void policy_print(FILE *stream, const struct policy *policy);

/* A value as it stands in a file: with quotation marks where it would be read differently without.
 */
void policy_text_print(FILE *stream, const char *text);

/* The kind of a section as its header has it: "kernel". Never NULL. */
const char *policy_section_text(enum policy_section section);

/* The section of a rule, of a named partition; header included. */
void policy_rule_print(FILE *stream, const struct policy_rule *rule);
void policy_partition_print(FILE *stream, const struct policy_partition *partition);

/* [env] and [env replace], [expect]: a blank line, the header, and its lines; nothing where there
 * are none. */
void policy_variables_print(FILE *stream, const struct policy *policy);
void policy_expectations_print(FILE *stream, const struct policy *policy);

/* Its selectors only; its settings and modifiers only. */
void policy_selectors_print(FILE *stream, const struct policy_rule *rule);
void policy_settings_print(FILE *stream, const struct policy_rule *rule);

#endif
