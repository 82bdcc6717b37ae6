/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripted failures: "cuLaunchKernelEx:3=1;cuStreamSetAttribute:*=801". Before the colon the exact
 * name of the exported function, or a beginning followed by '*'; after it the number of the call
 * (from 1), "N+" for that call and all later ones, or '*' for every call; then the result code.
 * With "@resolved" or "@exported" behind the name only calls by that kind of pointer are counted
 * and fail (DISTINCT_POINTERS).
 */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

#define RULES_MAX 1024

struct failure {
    char name[96];
    bool prefix;
    enum { BY_ANY, BY_EXPORTED, BY_RESOLVED } route;
    unsigned long first, last; /* calls that fail, from 1 */
    unsigned long seen;
    CUresult result;
};

static struct failure failures[RULES_MAX];
static size_t failure_count;

static bool parse_calls(struct failure *failure, const char **at)
{
    if (**at == '*') {
        failure->first = 1;
        failure->last = (unsigned long)-1;
        (*at)++;
        return true;
    }
    char *end;
    failure->first = strtoul(*at, &end, 10);
    if (end == *at || failure->first == 0)
        return false;
    failure->last = failure->first;
    if (*end == '+') {
        failure->last = (unsigned long)-1;
        end++;
    }
    *at = end;
    return true;
}

static bool parse_route(struct failure *failure)
{
    char *route = strchr(failure->name, '@');
    if (route == NULL)
        return true;
    *route++ = '\0';
    if (strcmp(route, "resolved") == 0)
        failure->route = BY_RESOLVED;
    else if (strcmp(route, "exported") == 0)
        failure->route = BY_EXPORTED;
    return failure->route != BY_ANY && failure->name[0] != '\0';
}

static bool parse_rule(struct failure *failure, const char **at)
{
    memset(failure, 0, sizeof(*failure));
    size_t length = strcspn(*at, ":");
    if (length == 0 || length >= sizeof(failure->name) || (*at)[length] != ':')
        return false;
    memcpy(failure->name, *at, length);
    if (!parse_route(failure))
        return false;
    char *last = failure->name + strlen(failure->name) - 1;
    if (*last == '*') {
        *last = '\0';
        failure->prefix = true;
    }
    *at += length + 1;
    if (!parse_calls(failure, at) || **at != '=')
        return false;
    char *end;
    failure->result = (CUresult)strtoul(*at + 1, &end, 10);
    if (end == *at + 1)
        return false;
    *at = end;
    return true;
}

int failure_configure(const char *rules)
{
    failure_count = 0;
    const char *at = rules;
    while (*at != '\0') {
        if (failure_count == RULES_MAX || !parse_rule(&failures[failure_count], &at))
            return -1;
        failure_count++;
        if (*at == ';')
            at++;
        else if (*at != '\0')
            return -1;
    }
    return 0;
}

bool failure_wanted(void)
{
    return failure_count != 0;
}

void failure_restart(void)
{
    for (size_t i = 0; i < failure_count; i++)
        failures[i].seen = 0;
}

static bool matches(const struct failure *failure, const char *name, bool resolved)
{
    if (failure->route != BY_ANY && (failure->route == BY_RESOLVED) != resolved)
        return false;
    if (failure->prefix)
        return strncmp(name, failure->name, strlen(failure->name)) == 0;
    return strcmp(name, failure->name) == 0;
}

CUresult failure_next(const char *name, bool resolved)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < failure_count; i++) {
        struct failure *failure = &failures[i];
        if (!matches(failure, name, resolved))
            continue;
        failure->seen++;
        if (result == CUDA_SUCCESS && failure->seen >= failure->first &&
            failure->seen <= failure->last)
            result = failure->result;
    }
    return result;
}
