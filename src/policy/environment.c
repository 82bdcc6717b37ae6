/* SPDX-License-Identifier: Apache-2.0 */

/* [env] and [env replace]: variables of the environment. */

#include "policy/environment.h"

#include <string.h>

#include "policy/combine.h"
#include "policy/hint.h"
#include "policy/parser.h"

static const char replace_word[] = "replace";

enum {
    HEADER_WORD_LIMIT = 64, /* for a terminated copy; what is longer is not "replace" */
};

/* ---- reading -------------------------------------------------------------------------------- */

static void report_header(struct policy_parser *parser, const struct policy_slice *name)
{
    const char *const candidates[] = {replace_word};
    struct policy_quotation quotation;
    struct policy_hint hint;
    char word[HEADER_WORD_LIMIT] = "";

    if (name->length < sizeof word) {
        memcpy(word, name->text, name->length);
    }
    policy_diagnose(parser->diagnostics, POLICY_ERROR, name->place,
                    "\"%s\": the section is [env] or [env replace]%s",
                    policy_quote(&quotation, name->text, name->length),
                    policy_hint(&hint, word, candidates, 1));
}

void policy_parser_begin_env(struct policy_parser *parser)
{
    const struct policy_slice *name = &parser->line.name;
    struct policy_place *place;

    parser->replaces = name->length == sizeof replace_word - 1 &&
                       memcmp(name->text, replace_word, name->length) == 0;
    parser->state = POLICY_PARSER_IN_ENV;
    if (name->length != 0 && !parser->replaces) {
        report_header(parser, name);
        return;
    }
    place = &parser->env_places[parser->replaces];
    if (place->line != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->section_place,
                        "second [env%s]; the first is in line %u",
                        parser->replaces ? " replace" : "", (unsigned)place->line);
    } else {
        *place = parser->section_place;
    }
}

static bool is_letter(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           character == '_';
}

static bool name_is_good(struct policy_parser *parser, const char *name)
{
    const struct policy_place place = parser->line.key.place;
    struct policy_quotation quotation;
    const char *fault;
    size_t length = 0;

    while (is_letter(name[length]) || (length > 0 && name[length] >= '0' && name[length] <= '9')) {
        length++;
    }
    policy_quote(&quotation, name, strlen(name));
    if (name[length] != '\0') {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place,
                        "\"%s\" is not the name of a variable: letters, digits and _, no digit "
                        "first",
                        quotation.text);
        return false;
    }
    if (length > POLICY_VARIABLE_NAME_LIMIT) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place,
                        "the variable's name \"%s\" has %zu bytes; at most %d are allowed",
                        quotation.text, length, (int)POLICY_VARIABLE_NAME_LIMIT);
        return false;
    }
    fault = policy_variable_fault(name, parser->replaces);
    if (fault != NULL) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place, "%s cannot be set here: %s", name,
                        fault);
        return false;
    }
    return true;
}

static bool is_new(struct policy_parser *parser, const char *name)
{
    for (size_t i = 0; i < parser->variable_count; i++) {
        if (strcmp(parser->variables[i].name, name) == 0) {
            policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.key.place,
                            "%s is given twice; the first is in line %u", name,
                            (unsigned)parser->variables[i].place.line);
            return false;
        }
    }
    return true;
}

static bool value_is_good(struct policy_parser *parser, const char *name, const char *value)
{
    const struct policy_place place = parser->line.value.place;

    if (value[0] == '\0' && !parser->line.quoted) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place,
                        "%s: the value is missing; \"\" is the empty one", name);
        return false;
    }
    if (strchr(value, '\t') != NULL) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place, "%s: there is a tab in the value",
                        name);
        return false;
    }
    if (strlen(value) > POLICY_VARIABLE_VALUE_LIMIT) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place,
                        "%s: the value has %zu bytes; at most %d are allowed", name, strlen(value),
                        (int)POLICY_VARIABLE_VALUE_LIMIT);
        return false;
    }
    return true;
}

void policy_parser_store_variable(struct policy_parser *parser, const char *name, const char *value)
{
    struct policy_variable *variables;

    if (!name_is_good(parser, name) || !is_new(parser, name) ||
        !value_is_good(parser, name, value)) {
        return;
    }
    if (parser->variable_count == POLICY_VARIABLE_LIMIT) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.key.place,
                        "a policy has at most %d variables", (int)POLICY_VARIABLE_LIMIT);
        parser->stopped = true;
        return;
    }
    variables = policy_arena_grow(&parser->arena, parser->variables, parser->variable_count,
                                  sizeof *variables);
    name = policy_arena_copy(&parser->arena, name, strlen(name));
    if (variables == NULL || name == NULL) {
        parser->out_of_memory = true;
        return;
    }
    variables[parser->variable_count++] = (struct policy_variable){
        .name = name, .value = value, .replace = parser->replaces, .place = parser->line.key.place};
    parser->variables = variables;
}

void policy_check_variables(struct policy_parser *parser)
{
    if (parser->diagnostics->errors_only) {
        return;
    }
    for (size_t i = 0; i < parser->variable_count; i++) {
        const char *name = parser->variables[i].name, *meant = policy_variable_meant(name);

        if (meant != NULL) {
            policy_diagnose(parser->diagnostics, POLICY_WARNING, parser->variables[i].place,
                            "%s is no variable of CUDA or NCCL that is known here; did you mean "
                            "\"%s\"?",
                            name, meant);
        }
    }
}

/* ---- applying ------------------------------------------------------------------------------- */

enum policy_variable_state policy_variable_state(const struct policy_variable *variable,
                                                 const char *present)
{
    if (present == NULL) {
        return POLICY_VARIABLE_MISSING;
    }
    if (strcmp(present, variable->value) == 0) {
        return POLICY_VARIABLE_APPLIED;
    }
    return variable->replace ? POLICY_VARIABLE_NOT_REPLACED : POLICY_VARIABLE_KEPT;
}

bool policy_variable_is_to_be_set(const struct policy_variable *variable, const char *present)
{
    const enum policy_variable_state state = policy_variable_state(variable, present);

    return state == POLICY_VARIABLE_MISSING || state == POLICY_VARIABLE_NOT_REPLACED;
}

bool policy_applies_variables(const struct policy *policy, const char *mode)
{
    enum policy_mode asked;
    bool known = mode != NULL && policy_mode_parse(mode, &asked);

    return policy_mode_choose(known ? &asked : NULL, policy).mode == POLICY_MODE_ENFORCE;
}

static const struct policy_variable *find(const struct policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->variable_count; i++) {
        if (strcmp(policy->variables[i].name, name) == 0) {
            return &policy->variables[i];
        }
    }
    return NULL;
}

bool policy_variables_same(const struct policy *one, const struct policy *other)
{
    if (one->variable_count != other->variable_count) {
        return false;
    }
    for (size_t i = 0; i < one->variable_count; i++) {
        const struct policy_variable *variable = &one->variables[i];
        const struct policy_variable *match = find(other, variable->name);

        if (match == NULL || match->replace != variable->replace ||
            strcmp(match->value, variable->value) != 0) {
            return false;
        }
    }
    return true;
}
