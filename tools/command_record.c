/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy record: which kernels, streams and libraries does a program have? */

#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inventory.h"
#include "job.h"
#include "json_output.h"
#include "memory.h"
#include "output_file.h"
#include "reach.h"
#include "site_input.h"

static int record_main(const struct command *command, int argc, char **argv);

const struct command command_record = {
    .name = "record",
    .summary = "run a program and list its kernels, libraries and streams",
    .usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
    .help =
        "Runs PROGRAM with libcudapolicy.so preloaded and an empty policy, which changes nothing,\n"
        "and prints on standard error which kernels were launched, how often and in which shapes,\n"
        "by which libraries, and which streams were created. Standard output, signals and the\n"
        "exit status are the program's own.\n\n"
        "Options:\n"
        "  -o, --output FILE   write to FILE instead; '-' is standard output\n"
        "  -f, --force         overwrite FILE if it is there\n"
        "      --json          print JSON\n"
        "      --policy        print a policy to start from, in observe mode: a rule for each\n"
        "                      kernel whose name speaks of communication, the others as comments\n"
        "      --library PATH  libcudapolicy.so (default: $CUDAPOLICY_LIBRARY, else the one that\n"
        "                      belongs to this command)\n"
        "  -w, --wide          do not shorten names to the terminal's width\n"
        "  -h, --help          print this help\n\n"
        "Exit status: as that of cudapolicy run.\n\n"
        "Examples:\n"
        "  cudapolicy record -- ./app\n"
        "  cudapolicy record --json -o kernels.json -- python train.py\n"
        "  cudapolicy record --policy -o start.ini -- mpirun -n 2 ./app\n",
    .main = record_main,
};

enum {
    OPTION_JSON = COMMAND_OPTION_LONG,
    OPTION_POLICY,
    OPTION_LIBRARY,
};

struct record_options {
    struct job job;
    const char *output;
    bool force, json, policy, wide;
};

/* On standard error, or standard output for "-", unless a file is given. */
static bool open_output(const struct record_options *options, struct output_file *file)
{
    if (options->output == NULL || strcmp(options->output, "-") == 0) {
        *file = (struct output_file){.stream = options->output == NULL ? stderr : stdout};
        return true;
    }
    return output_file_open(file, options->output, options->force);
}

static bool close_output(struct output_file *file)
{
    if (file->path != NULL) {
        return output_file_close(file);
    }
    if (fflush(file->stream) == 0 && !ferror(file->stream)) {
        return true;
    }
    command_error("cannot write to standard %s: %s", file->stream == stdout ? "output" : "error",
                  strerror(errno));
    return false;
}

static void print_inventory(const struct record_options *options, const struct results *results,
                            const char *program, FILE *output)
{
    if (results->process_count == 0) {
        char *reason = site_input_unseen(program);

        if (reason == NULL) {
            reason = reach_explain(program, &options->job.opened);
        }
        command_error("no kernel launch of '%s' was seen: %s", program, reason);
        free(reason);
    }
    if (options->json) {
        json_output_print(inventory_json(results), output);
    } else if (options->policy) {
        inventory_print_policy(results, output);
    } else if (results->process_count > 0) {
        inventory_print(results, options->wide, output);
    }
}

static int record(struct record_options *options, char **argv)
{
    struct output_file output;
    struct results results = {0};
    int status;

    if (!open_output(options, &output)) {
        return COMMAND_RUN_FAILED;
    }
    status = job_run(&options->job, argv);
    if (options->job.started) {
        job_collect(&options->job, &results);
        output_file_begin(&output);
        print_inventory(options, &results, argv[0], output.stream);
    }
    job_release(&options->job);
    results_release(&results);
    if (!options->job.started && output.path != NULL) {
        output_file_abandon(&output);
    } else if (!close_output(&output) && status == 0) {
        /* A lost inventory must not pass for success; the status of a program that failed says
         * more. */
        status = COMMAND_RUN_FAILED;
    }
    return status;
}

static int record_main(const struct command *command, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"output", required_argument, NULL, 'o'},
        {"force", no_argument, NULL, 'f'},
        {"json", no_argument, NULL, OPTION_JSON},
        {"policy", no_argument, NULL, OPTION_POLICY},
        {"library", required_argument, NULL, OPTION_LIBRARY},
        {"wide", no_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct record_options options = {.job.mode = "observe"};
    int option;

    while ((option = command_option(command, argc, argv, "+:o:fwh", long_options)) != -1) {
        switch (option) {
        case 'o':
            options.output = optarg;
            break;
        case 'f':
            options.force = true;
            break;
        case OPTION_JSON:
            options.json = true;
            break;
        case OPTION_POLICY:
            options.policy = true;
            break;
        case OPTION_LIBRARY:
            options.job.library = optarg;
            break;
        case 'w':
            options.wide = true;
            break;
        case 'h':
            return command_help(command);
        default:
            return COMMAND_USAGE;
        }
    }
    if (options.json && options.policy) {
        return command_usage_error(command, "--json and --policy are two different outputs");
    }
    if (optind == argc) {
        return command_usage_error(command, "no program given");
    }
    memory_failure_status = COMMAND_RUN_FAILED;
    if (!reach_check(argv[optind], false)) {
        return COMMAND_RUN_CANNOT_EXECUTE;
    }
    return record(&options, argv + optind);
}
