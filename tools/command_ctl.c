/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy ctl: what processes that run under a policy are told, and asked. */

#include "command.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "json_output.h"
#include "memory.h"
#include "printable.h"
#include "results.h"
#include "table.h"

static int ctl_main(const struct command *command, int argc, char **argv);

const struct command command_ctl = {
    .name = "ctl",
    .summary = "change mode or policy of processes that run, or ask how they are",
    .usage = "[OPTION]... TARGET off|observe|enforce|reload|status",
    .help =
        "Reaches running processes through the counters' files that they have mapped, so they "
        "must\n"
        "have been started with a report (cudapolicy run, or CUDAPOLICY_REPORT) and have launched\n"
        "a kernel. They act at their next launch.\n\n"
        "TARGET is\n"
        "  PID, pid:N   a process; when it has no counters itself (mpirun, a shell), all below it\n"
        "  ID, job:ID   the processes of a job on this host, as their reports name it\n"
        "  FILE         a counters' file\n"
        "  FOLDER       all running processes with counters in it and in its folders\n\n"
        "What to do:\n"
        "  off          decide nothing: launches are made as they come. Streams, graphs and\n"
        "               partitions that were made stay as they are\n"
        "  observe      decide and report, change nothing\n"
        "  enforce      decide and apply. Not for a process started with CUDAPOLICY_MODE=off\n"
        "  reload       read the policy file again. New kernel rules hold for launches and graph\n"
        "               nodes from then on; stream rules for streams created from then on, and "
        "for\n"
        "               default streams. The partitions must be the same. A policy with errors is\n"
        "               not sent, and refused by the process: the one before stays. At most 100\n"
        "               times a process\n"
        "  status       mode, policy, counts\n\n"
        "Options:\n"
        "      --children       the processes below PID too, when it has counters itself\n"
        "      --timeout SECONDS  how long reload waits for an answer (default 10); 0: not at all\n"
        "      --json           print a JSON document\n"
        "  -w, --wide           do not shorten names to the terminal's width\n"
        "  -h, --help           print this help\n\n"
        "Exit status: 0 when it was done for every process; 1 when it was not for some or all, or\n"
        "there is no such process; 64 when the command line is wrong.\n\n"
        "Examples:\n"
        "  cudapolicy ctl 4711 status\n"
        "  cudapolicy ctl $(pgrep -n torchrun) observe\n"
        "  cudapolicy ctl job:123456 reload --timeout 60\n",
    .main = ctl_main,
};

enum {
    OPTION_CHILDREN = COMMAND_OPTION_LONG,
    OPTION_TIMEOUT,
    OPTION_JSON,
};

enum action {
    ACTION_OFF,
    ACTION_OBSERVE,
    ACTION_ENFORCE,
    ACTION_RELOAD,
    ACTION_STATUS,
    ACTION_COUNT
};

static const char *const action_names[ACTION_COUNT] = {"off", "observe", "enforce", "reload",
                                                       "status"};

struct ctl_options {
    enum action action;
    bool children, json, wide;
    double timeout;
};

/* ---- Output ------------------------------------------------------------------------------------
 */

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_output_string(text) : json_null();
}

static json_t *process_json(const struct control_process *process, enum action action)
{
    json_t *object = json_pack("{s:o, s:o, s:o, s:s, s:o}", "pid",
                               process->pid != 0 ? json_integer(process->pid) : json_null(),
                               "program", text_or_null(process->program), "counters",
                               text_or_null(process->target->counters), "outcome",
                               control_outcome_name(process->outcome), "message",
                               text_or_null(process->message));

    if (process->report == NULL) {
        return object;
    }
    json_object_set_new(object, "host", text_or_null(process->host));
    json_object_set_new(object, "started", text_or_null(process->started));
    json_object_set_new(object, "mode", text_or_null(process->mode));
    json_object_set_new(object, "generation", json_integer(process->generation));
    json_object_set_new(object, "acted_on", json_integer(process->acted));
    json_object_set_new(object, "policy", text_or_null(process->policy_path));
    json_object_set_new(object, "sha256", text_or_null(process->policy_sha256));
    json_object_set_new(object, "last_reload", text_or_null(process->last_reload));
    json_object_set_new(object, "launches", json_integer(process->launches));
    if (action == ACTION_STATUS) {
        json_object_set(object, "rules", json_object_get(process->report, "rules"));
    }
    return object;
}

static void print_json(const struct control_process *processes, size_t count, enum action action,
                       bool all)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, process_json(&processes[i], action));
    }
    json_output_print(
        json_pack("{s:s, s:b, s:o}", "action", action_names[action], "all", all, "processes", list),
        stdout);
}

/* "process 4711 (python)". To be freed. */
static char *name_of(const struct control_process *process)
{
    char *name, *printable;

    if (process->pid == 0) {
        name = memory_copy(process->target->counters != NULL ? process->target->counters : "?");
    } else if (process->program == NULL || process->program[0] == '\0') {
        name = memory_format("process %ld", process->pid);
    } else {
        const char *slash = strrchr(process->program, '/');

        name = memory_format("process %ld (%s)", process->pid,
                             slash != NULL ? slash + 1 : process->program);
    }
    printable = printable_copy(name);
    free(name);
    return printable;
}

/* As the exit status has it: with a timeout of 0, what was sent is all that was asked. */
static bool went_well(const struct control_process *process, const struct ctl_options *options)
{
    return process->outcome == CONTROL_DONE ||
           (process->outcome == CONTROL_SENT && options->timeout <= 0);
}

static void print_outcome(const struct control_process *process, const struct ctl_options *options)
{
    char *name = name_of(process), *message = printable_copy(process->message);

    if (went_well(process, options)) {
        printf("%s: %s\n", name, message);
    } else {
        command_error("%s: %s", name, message);
    }
    free(name);
    free(message);
}

static void print_status(const struct control_process *processes, size_t count, bool wide)
{
    struct table *table = table_new();

    table_column(table, "PID", TABLE_RIGHT, false);
    table_column(table, "PROGRAM", TABLE_LEFT, true);
    table_column(table, "MODE", TABLE_LEFT, false);
    table_column(table, "LAUNCHES", TABLE_RIGHT, false);
    table_column(table, "SINCE", TABLE_LEFT, false);
    table_column(table, "SHA-256", TABLE_LEFT, false);
    table_column(table, "POLICY", TABLE_LEFT, true);
    table_column(table, "LAST RELOAD", TABLE_LEFT, true);
    for (size_t i = 0; i < count; i++) {
        const struct control_process *process = &processes[i];

        if (process->report == NULL) {
            continue;
        }
        table_cell(table, "%ld", process->pid);
        table_cell(table, "%s", process->program);
        table_cell(table, "%s", process->mode);
        table_count(table, process->launches);
        table_cell(table, "%s", process->started);
        table_cell(table, "%.12s", process->policy_sha256);
        table_cell(table, "%s", process->policy_path);
        table_cell(table, "%s", process->last_reload[0] != '\0' ? process->last_reload : "never");
    }
    if (table_rows(table) > 0) {
        table_print(table, stdout, wide, "");
    }
    table_free(table);
}

static void print_rules(const struct control_process *processes, size_t count, bool wide)
{
    struct results results = {0};
    struct table *table = table_new();
    const char *error;

    for (size_t i = 0; i < count; i++) {
        if (processes[i].report != NULL) {
            results_add(&results, processes[i].report, &error);
        }
    }
    table_column(table, "RULE", TABLE_LEFT, true);
    table_column(table, "LAUNCHES", TABLE_RIGHT, false);
    table_column(table, "APPLIED", TABLE_RIGHT, false);
    table_column(table, "STREAMS", TABLE_RIGHT, false);
    for (size_t i = 0; i < results.rule_count; i++) {
        const struct results_rule *rule = &results.rules[i];
        char *title = results_rule_title(rule);

        table_cell(table, "%s", title);
        free(title);
        table_count(table, rule->launches.total);
        table_count(table, rule->launch_outcomes.applied);
        table_count(table, rule->streams);
    }
    if (table_rows(table) > 0) {
        putchar('\n');
        table_print(table, stdout, wide, "");
    }
    table_free(table);
    results_release(&results);
}

/* ---- Doing it ----------------------------------------------------------------------------------
 */

static void act(struct control_process *process, enum action action)
{
    switch (action) {
    case ACTION_OFF:
        control_set_mode(process, POLICY_MODE_OFF);
        break;
    case ACTION_OBSERVE:
        control_set_mode(process, POLICY_MODE_OBSERVE);
        break;
    case ACTION_ENFORCE:
        control_set_mode(process, POLICY_MODE_ENFORCE);
        break;
    case ACTION_RELOAD:
        control_reload(process);
        break;
    case ACTION_STATUS:
    case ACTION_COUNT:
        break;
    }
}

/* Sends to all before it waits for the first, so that the ranks of a job change together. */
static bool act_on_all(struct control_process *processes, size_t count,
                       const struct ctl_options *options)
{
    const double deadline = control_now() + options->timeout;
    bool all = true;

    for (size_t i = 0; i < count; i++) {
        if (processes[i].outcome != CONTROL_FAILED) {
            act(&processes[i], options->action);
        }
    }
    for (size_t i = 0; i < count; i++) {
        control_await(&processes[i], deadline);
        all = all && went_well(&processes[i], options);
    }
    return all;
}

static int control_targets(const struct targets *targets, const struct ctl_options *options)
{
    struct control_process *processes = memory_allocate(targets->count, sizeof *processes);
    bool all;

    for (size_t i = 0; i < targets->count; i++) {
        control_look(&processes[i], &targets->items[i]);
    }
    all = act_on_all(processes, targets->count, options);
    if (options->json) {
        print_json(processes, targets->count, options->action, all);
    } else if (options->action == ACTION_STATUS) {
        print_status(processes, targets->count, options->wide);
        print_rules(processes, targets->count, options->wide);
    }
    for (size_t i = 0; i < targets->count; i++) {
        if (!options->json && processes[i].message != NULL) {
            print_outcome(&processes[i], options);
        }
        control_release(&processes[i]);
    }
    free(processes);
    return command_finish(all ? COMMAND_SUCCESS : COMMAND_FAILURE);
}

/* ---- The command line --------------------------------------------------------------------------
 */

static bool parse_seconds(const char *text, double *seconds)
{
    char *end;

    errno = 0;
    *seconds = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && isfinite(*seconds) && *seconds >= 0;
}

static bool parse_action(const char *text, enum action *action)
{
    for (int i = 0; i < ACTION_COUNT; i++) {
        if (strcmp(text, action_names[i]) == 0) {
            *action = (enum action)i;
            return true;
        }
    }
    return false;
}

/* False: status says how to end. */
static bool read_options(const struct command *command, int argc, char **argv,
                         struct ctl_options *options, int *status)
{
    static const struct option long_options[] = {
        {"children", no_argument, NULL, OPTION_CHILDREN},
        {"timeout", required_argument, NULL, OPTION_TIMEOUT},
        {"json", no_argument, NULL, OPTION_JSON},
        {"wide", no_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int option;

    while ((option = command_option(command, argc, argv, ":wh", long_options)) != -1) {
        switch (option) {
        case OPTION_CHILDREN:
            options->children = true;
            break;
        case OPTION_TIMEOUT:
            if (!parse_seconds(optarg, &options->timeout)) {
                *status = command_usage_error(command, "'%s' is no number of seconds for --timeout",
                                              optarg);
                return false;
            }
            break;
        case OPTION_JSON:
            options->json = true;
            break;
        case 'w':
            options->wide = true;
            break;
        case 'h':
            *status = command_help(command);
            return false;
        default:
            *status = COMMAND_USAGE;
            return false;
        }
    }
    return true;
}

static int ctl_main(const struct command *command, int argc, char **argv)
{
    struct ctl_options options = {.timeout = 10};
    struct targets targets = {0};
    int status, count;
    char **words;

    if (!read_options(command, argc, argv, &options, &status)) {
        return status;
    }
    words = argv + optind;
    count = argc - optind;
    if (count < 2) {
        return command_usage_error(command, count == 0 ? "no process given"
                                                       : "nothing given that is to be done");
    }
    if (count > 2) {
        return command_usage_error(command, "'%s' is one word too many", words[2]);
    }
    if (!parse_action(words[1], &options.action)) {
        return command_usage_error(command, "'%s' is none of off, observe, enforce, reload, status",
                                   words[1]);
    }
    if (words[0][0] == '\0' || strcmp(words[0], "pid:") == 0 || strcmp(words[0], "job:") == 0) {
        return command_usage_error(command, "'%s' names no process", words[0]);
    }
    if (!targets_find(&targets, words[0], options.children)) {
        if (options.json) {
            print_json(NULL, 0, options.action, false);
        }
        targets_release(&targets);
        return COMMAND_FAILURE;
    }
    status = control_targets(&targets, &options);
    targets_release(&targets);
    return status;
}
