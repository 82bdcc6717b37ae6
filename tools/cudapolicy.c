/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy: the list of subcommands, and which of them is called. */

#include "command.h"

#include <string.h>

static const struct command *const commands[] = {
    &command_run,  &command_check, &command_explain, &command_record, &command_report,
    &command_show, &command_ab,    &command_tune,    &command_ctl,    &command_diff,
};
enum {
    COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]),
};

static int print_version(void)
{
    puts("cudapolicy " CUDAPOLICY_VERSION);
    return command_finish(COMMAND_SUCCESS);
}

static int print_help(void)
{
    puts("Usage: cudapolicy COMMAND [OPTION]...\n\n"
         "Applies a policy to the kernel launches and streams of an unmodified CUDA program.\n\n"
         "Commands:");
    for (int i = 0; i < COMMAND_COUNT; i++)
        printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
    puts("\nOptions:\n"
         "  -h, --help     print this help; after a command, the command's\n"
         "  -V, --version  print the version\n\n"
         "Examples:\n"
         "  cudapolicy record -- ./app                 which kernels does it launch?\n"
         "  cudapolicy check p.ini                     is the policy right?\n"
         "  cudapolicy run -p p.ini -- ./app           run it under the policy\n"
         "  cudapolicy explain -p p.ini --kernel NAME  what would happen to this kernel?\n"
         "  cudapolicy ab none p.ini -- ./app          does it help?\n"
         "  cudapolicy tune -p p.ini -- ./app          which settings help most?");
    return command_finish(COMMAND_SUCCESS);
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct command *command;

    if (argc < 2) {
        fputs("cudapolicy: no command given\nTry 'cudapolicy --help'.\n", stderr);
        return COMMAND_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        return print_help();
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        return print_version();
    }
    if (strcmp(argv[1], "help") == 0) {
        command = argc > 2 ? find_command(argv[2]) : NULL;
        if (argc < 3) {
            return print_help();
        }
        if (command != NULL) {
            return command_help(command);
        }
        argv++;
    }
    command = find_command(argv[1]);
    if (command == NULL) {
        fprintf(stderr, "cudapolicy: unknown %s '%s'\nTry 'cudapolicy --help'.\n",
                argv[1][0] == '-' ? "option" : "command", argv[1]);
        return COMMAND_USAGE;
    }
    return command->main(command, argc - 1, argv + 1);
}
