/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings.h"

static const char *value_of(slurm_lookup *lookup, void *environment, const char *name)
{
    const char *value = lookup(environment, name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* A switch is read by its value: a variable that says 0 asks for nothing. */
static int read_switch(const char *name, const char *value, bool *on, char *message)
{
    static const char *const yes[] = {"1", "yes", "true"}, *const no[] = {"0", "no", "false"};

    *on = false;
    for (size_t i = 0; value != NULL && i < sizeof yes / sizeof yes[0]; i++) {
        if (strcmp(value, yes[i]) == 0) {
            *on = true;
            return 0;
        }
        if (strcmp(value, no[i]) == 0) {
            return 0;
        }
    }
    if (value == NULL) {
        return 0;
    }
    snprintf(message, SLURM_MESSAGE_SIZE, "%s=%s: it is 1 or 0", name, value);
    return -1;
}

int slurm_request_read(struct slurm_request *request, slurm_lookup *lookup, void *environment,
                       char *message)
{
    enum policy_mode mode;

    *request = (struct slurm_request){
        .policy = value_of(lookup, environment, SLURM_REQUEST_POLICY),
        .mode = value_of(lookup, environment, SLURM_REQUEST_MODE),
        .report = value_of(lookup, environment, SLURM_REQUEST_REPORT),
    };
    if (read_switch(SLURM_REQUEST_NO_POLICY, value_of(lookup, environment, SLURM_REQUEST_NO_POLICY),
                    &request->no_policy, message) != 0) {
        return -1;
    }
    if (request->no_policy && request->policy != NULL) {
        snprintf(message, SLURM_MESSAGE_SIZE,
                 "%s=%s and %s are both set; unset one, or say --cuda-policy=FILE or "
                 "--no-cuda-policy",
                 SLURM_REQUEST_POLICY, request->policy, SLURM_REQUEST_NO_POLICY);
        return -1;
    }
    if (request->mode != NULL && !policy_mode_parse(request->mode, &mode)) {
        snprintf(message, SLURM_MESSAGE_SIZE, "%s=%s: the modes are enforce, observe and off",
                 SLURM_REQUEST_MODE, request->mode);
        return -1;
    }
    return 0;
}

void slurm_request_override(struct slurm_request *request, const struct slurm_request *options)
{
    if (options->policy != NULL || options->no_policy) {
        request->policy = options->policy;
        request->no_policy = options->no_policy;
    }
    if (options->mode != NULL) {
        request->mode = options->mode;
    }
    if (options->report != NULL) {
        request->report = options->report;
    }
}

char *slurm_request_absolute(const char *path, bool of_template)
{
    char folder[PATH_MAX], *result, *end;

    if (path[0] == '/') {
        return strdup(path);
    }
    if (getcwd(folder, sizeof folder) == NULL) {
        return NULL;
    }
    result = malloc(2 * strlen(folder) + strlen(path) + 2);
    if (result == NULL) {
        return NULL;
    }
    end = result;
    for (const char *next = folder; *next != '\0'; next++) {
        *end++ = *next;
        if (of_template && *next == '%') {
            *end++ = '%';
        }
    }
    *end++ = '/';
    strcpy(end, path);
    return result;
}
