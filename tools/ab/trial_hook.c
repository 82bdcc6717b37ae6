/* SPDX-License-Identifier: Apache-2.0 */

/* --prepare, --check and --cleanup. */

#include "trial_parts.h"

#include <stdlib.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"
#include "metric.h"
#include "process_group.h"

enum {
    LINES = 5, /* of what it said, in messages */
};

/* Runs a shell command; why it said no in *message, to be freed. */
enum hook_result trial_run_hook(const struct trial *trial, const char *name, const char *text,
                                char **message)
{
    char *path = memory_format("%s/%s", trial->folder, name), *command, *status, *lines;
    char shell[] = "/bin/sh", option[] = "-c";
    struct environment environment;
    struct process_group_end end;
    enum hook_result result = HOOK_NOT_RUN;
    int output = trial_open_output(path);

    command = ab_trial_expand(text, trial->experiment, trial->run, trial->folder);
    trial_hook_environment(trial, &environment);
    if (output >= 0) {
        char *argv[] = {shell, option, command, NULL};
        struct process_group group = {.argv = argv,
                                      .environment = environment.variables,
                                      .output = output,
                                      .errors = output,
                                      .time_limit = trial->options->hook_time_limit,
                                      .keep_left = true};

        if (process_group_run(&group, &end)) {
            result = end.interrupted                          ? HOOK_INTERRUPTED
                     : end.wait_status == 0 && !end.timed_out ? HOOK_FINE
                                                              : HOOK_SAYS_NO;
        }
        close(output);
    }
    if (result == HOOK_SAYS_NO) {
        status = end.timed_out
                     ? memory_format("no end after %.4g s", trial->options->hook_time_limit)
                     : trial_wait_status_text(end.wait_status);
        lines = ab_last_lines(path, LINES);
        *message = memory_format("--%s: %s%s%s", name, status, lines[0] != '\0' ? ": " : "", lines);
        free(status);
        free(lines);
    }
    environment_release(&environment);
    free(command);
    free(path);
    return result;
}

/* --prepare and --cleanup: where they fail, the experiment cannot go on. */
bool trial_run_required_hook(const struct trial *trial, const char *name, const char *text)
{
    char *message = NULL;
    enum hook_result result =
        text == NULL ? HOOK_FINE : trial_run_hook(trial, name, text, &message);

    if (result == HOOK_SAYS_NO) {
        command_error("%s", message);
    } else if (result == HOOK_INTERRUPTED) {
        trial->run->outcome = AB_INTERRUPTED;
    }
    free(message);
    return result == HOOK_FINE || result == HOOK_INTERRUPTED;
}
