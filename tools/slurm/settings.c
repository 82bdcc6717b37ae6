/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "installed_beside.h"
#include "node_report.h"
#include "report/template.h"

const char *slurm_mode_name(enum policy_mode mode)
{
    switch (mode) {
    case POLICY_MODE_ENFORCE:
        return "enforce";
    case POLICY_MODE_OBSERVE:
        return "observe";
    default:
        return "off";
    }
}

/* The value of argument, if it is the one with this name. */
static const char *value_of(const char *argument, const char *name)
{
    size_t length = strlen(name);

    return strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1
                                                                           : NULL;
}

/* A path that every node and every folder understands; NULL with a message else. */
static const char *absolute(const char *name, const char *value, char *message)
{
    if (value[0] == '/') {
        return value;
    }
    snprintf(message, SLURM_MESSAGE_SIZE, "%s=%s: not an absolute path", name, value);
    return NULL;
}

static bool take_template(struct slurm_settings *settings, const char *value, char *message)
{
    const struct report_template_values values = {.host = "h", .pid = 1, .job = "1", .rank = "0"};
    char path[4096];

    if (absolute("reports", value, message) == NULL) {
        return false;
    }
    if (!report_expand_template(value, &values, path, sizeof path, message, SLURM_MESSAGE_SIZE)) {
        return false;
    }
    if (slurm_node_report_is_folder(value) && slurm_node_report_check(value, message) != 0) {
        return false;
    }
    settings->reports = value;
    return true;
}

static bool take_argument(struct slurm_settings *settings, const char *argument, char *message)
{
    const char *value, *path;

    if ((value = value_of(argument, "library")) != NULL) {
        if ((path = absolute("library", value, message)) == NULL) {
            return false;
        }
        settings->library = path;
        return true;
    }
    if ((value = value_of(argument, "command")) != NULL) {
        if ((path = absolute("command", value, message)) == NULL) {
            return false;
        }
        settings->command = path;
        return true;
    }
    if ((value = value_of(argument, "default_policy")) != NULL) {
        settings->default_policy = absolute("default_policy", value, message);
        return settings->default_policy != NULL;
    }
    if ((value = value_of(argument, "reports")) != NULL) {
        return take_template(settings, value, message);
    }
    if ((value = value_of(argument, "mode_ceiling")) != NULL) {
        if (!policy_mode_parse(value, &settings->mode_ceiling)) {
            snprintf(message, SLURM_MESSAGE_SIZE,
                     "mode_ceiling=%s: the modes are enforce, observe and off", value);
            return false;
        }
        return true;
    }
    snprintf(
        message, SLURM_MESSAGE_SIZE,
        "'%s' is none of library=PATH, command=PATH, default_policy=FILE, reports=TEMPLATE and "
        "mode_ceiling=MODE",
        argument);
    return false;
}

int slurm_settings_read(struct slurm_settings *settings, int count, char *const arguments[],
                        char *message)
{
    char further[SLURM_MESSAGE_SIZE];
    int result = 0;

    *settings = (struct slurm_settings){
        .library = slurm_own_library(),
        .command = slurm_own_command(),
        .mode_ceiling = POLICY_MODE_ENFORCE,
    };
    for (int i = 0; i < count; i++) {
        if (!take_argument(settings, arguments[i], result == 0 ? message : further)) {
            result = -1;
        }
    }
    return result;
}
