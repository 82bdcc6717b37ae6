/* SPDX-License-Identifier: Apache-2.0 */
#include "explain_policy.h"

#include <stdlib.h>

#include "json_output.h"
#include "policy/expect.h"
#include "policy/print.h"
#include "printable.h"

void explain_policy_print(const struct policy *policy, FILE *stream)
{
    char text[POLICY_EXPECTATION_TEXT_SIZE];

    for (size_t i = 0; i < policy->variable_count; i++) {
        const struct policy_variable *variable = &policy->variables[i];
        char *value = printable_copy(variable->value);

        fputs(i == 0 ? "set before the program starts\n" : "", stream);
        fprintf(stream, "  %s = %s, %s (%s:%u)\n", variable->name, value,
                variable->replace ? "whatever the user set" : "where the user did not set it",
                policy->path, (unsigned)variable->place.line);
        free(value);
    }
    for (size_t i = 0; i < policy->expectation_count; i++) {
        fputs(i == 0 ? "expected of each process that launches kernels\n" : "", stream);
        fprintf(stream, "  %s (%s:%u)\n",
                policy_expectation_text(policy, &policy->expectations[i], text, sizeof text),
                policy->path, (unsigned)policy->expectations[i].place.line);
    }
}

json_t *explain_environment_json(const struct policy *policy)
{
    json_t *array = json_array();

    for (size_t i = 0; i < policy->variable_count; i++) {
        const struct policy_variable *variable = &policy->variables[i];

        json_array_append_new(array, json_pack("{s:s, s:o, s:b, s:I}", "name", variable->name,
                                               "value", json_output_string(variable->value),
                                               "replace", variable->replace, "line",
                                               (json_int_t)variable->place.line));
    }
    return array;
}

json_t *explain_expectations_json(const struct policy *policy)
{
    json_t *array = json_array();

    for (size_t i = 0; i < policy->expectation_count; i++) {
        const struct policy_expectation *expectation = &policy->expectations[i];
        const struct policy_rule *rule = &policy->rules[expectation->rule];

        json_array_append_new(
            array, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "rule_section",
                             policy_section_text(rule->section), "rule", rule->name, "quantity",
                             policy_quantity_text(expectation->quantity), "comparison",
                             policy_comparison_text(expectation->comparison), "number",
                             (json_int_t)expectation->number, "line",
                             (json_int_t)expectation->place.line));
    }
    return array;
}
