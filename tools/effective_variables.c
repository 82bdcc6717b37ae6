/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy explain --effective: [env] and [expect], which only a job's policy has. */

#include "effective_variables.h"

#include <stdlib.h>

#include "explain_policy.h"
#include "json_output.h"
#include "memory.h"
#include "policy/combine.h"
#include "policy/environment.h"
#include "policy/expect.h"
#include "policy/print.h"
#include "table.h"

static enum policy_mode mode_now(const struct policy *policy)
{
    const char *asked = getenv("CUDAPOLICY_MODE");
    enum policy_mode mode;
    bool known = asked != NULL && policy_mode_parse(asked, &mode);

    return policy_mode_choose(known ? &mode : NULL, policy).mode;
}

/* What the variable is for the program; NULL: it is not there. */
static const char *value_of(const struct policy *policy, const struct policy_variable *variable)
{
    const char *present = getenv(variable->name);

    return policy_applies_variables(policy, getenv("CUDAPOLICY_MODE")) &&
                   policy_variable_is_to_be_set(variable, present)
               ? variable->value
               : present;
}

/* Where the value comes from; to be freed. */
static char *source_of(const struct policy *policy, const struct policy_variable *variable)
{
    char *place = memory_format("%s:%u", policy->path, (unsigned)variable->place.line), *text;
    const char *present = getenv(variable->name);

    if (!policy_variable_is_to_be_set(variable, present)) {
        text = memory_format("the environment, before %s", place);
    } else if (policy_applies_variables(policy, getenv("CUDAPOLICY_MODE"))) {
        text = memory_format("%s%s", place, present != NULL ? ", before the environment" : "");
    } else {
        text = memory_format("%s%s is not set, since the mode is %s",
                             present != NULL ? "the environment; " : "", place,
                             policy_mode_name(mode_now(policy)));
    }
    free(place);
    return text;
}

static void print_variables(const struct policy *policy, bool wide)
{
    struct table *table = table_new();

    table_column(table, "variable", TABLE_LEFT, true);
    table_column(table, "is", TABLE_LEFT, true);
    table_column(table, "from", TABLE_LEFT, false);
    for (size_t i = 0; i < policy->variable_count; i++) {
        const struct policy_variable *variable = &policy->variables[i];
        const char *value = value_of(policy, variable);
        char *source = source_of(policy, variable);

        table_cell(table, "%s", variable->name);
        table_cell(table, "%s", value == NULL ? "-" : value[0] == '\0' ? "\"\"" : value);
        table_cell(table, "%s", source);
        free(source);
    }
    if (table_rows(table) > 0) {
        puts("\nvariables, where run, ab or a batch system starts the program:");
        table_print(table, stdout, wide, "  ");
    }
    table_free(table);
}

static void print_expectations(const struct policy *policy, bool wide)
{
    struct table *table = table_new();
    char text[POLICY_EXPECTATION_TEXT_SIZE];

    table_column(table, "condition", TABLE_LEFT, true);
    table_column(table, "from", TABLE_LEFT, false);
    for (size_t i = 0; i < policy->expectation_count; i++) {
        const struct policy_expectation *expectation = &policy->expectations[i];

        table_cell(table, "%s", policy_expectation_text(policy, expectation, text, sizeof text));
        table_cell(table, "%s:%u", policy->path, (unsigned)expectation->place.line);
    }
    if (table_rows(table) > 0) {
        puts("\nexpected of each process that launches kernels:");
        table_print(table, stdout, wide, "  ");
    }
    table_free(table);
}

void effective_variables_print(const struct policy *policy, bool wide)
{
    print_variables(policy, wide);
    print_expectations(policy, wide);
}

void effective_variables_json(const struct policy *policy, json_t *object)
{
    json_t *array = json_array();

    for (size_t i = 0; i < policy->variable_count; i++) {
        const struct policy_variable *variable = &policy->variables[i];
        const char *value = value_of(policy, variable);
        char *source = source_of(policy, variable);

        json_array_append_new(array,
                              json_pack("{s:s, s:o, s:o}", "name", variable->name, "is",
                                        value != NULL ? json_output_string(value) : json_null(),
                                        "from", json_output_string(source)));
        free(source);
    }
    json_object_set_new(object, "variables", array);
    json_object_set_new(object, "expectations", explain_expectations_json(policy));
}
