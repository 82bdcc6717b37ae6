/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy: the list of subcommands, and what they share. */

#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct command *const commands[] = {
    &command_run, &command_check, &command_explain, &command_record, &command_report, &command_show,
};
enum {
    COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]),
};

void command_error(const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fputs("cudapolicy: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

int command_usage_error(const struct command *command, const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fprintf(stderr, "cudapolicy: %s: ", command->name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry 'cudapolicy %s --help'.\n", command->name);
    return COMMAND_USAGE;
}

/* The option's text as the user wrote it. A long option is the word just passed; of short ones only
 * the letter is known, since several may stand in one word. */
static void name_option(char **argv, char *text, size_t size)
{
    const char *word = argv[optind - 1];

    if (optopt > 0 && optopt < COMMAND_OPTION_LONG && strncmp(word, "--", 2) != 0)
        snprintf(text, size, "-%c", optopt);
    else
        snprintf(text, size, "%s", word);
}

int command_option(const struct command *command, int argc, char **argv, const char *short_options,
                   const struct option *long_options)
{
    char text[200];
    int option;

    opterr = 0;
    option = getopt_long(argc, argv, short_options, long_options, NULL);
    if (option != '?' && option != ':')
        return option;
    name_option(argv, text, sizeof(text));
    if (option == ':')
        command_usage_error(command, "option '%s' needs an argument", text);
    else if (optopt != 0 && strncmp(text, "--", 2) == 0)
        command_usage_error(command, "option '%s' takes no argument", text);
    else
        command_usage_error(command, "unknown option '%s'", text);
    return '?';
}

int command_help(const struct command *command)
{
    printf("Usage: cudapolicy %s %s\n\n%s", command->name, command->usage, command->help);
    return command_finish(COMMAND_SUCCESS);
}

int command_finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    command_error("cannot write to standard output: %s", strerror(errno));
    return status == COMMAND_SUCCESS ? COMMAND_FAILURE : status;
}

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
         "  cudapolicy explain -p p.ini --kernel NAME  what would happen to this kernel?");
    return command_finish(COMMAND_SUCCESS);
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct command *command;

    if (argc < 2) {
        fputs("cudapolicy: no command given\nTry 'cudapolicy --help'.\n", stderr);
        return COMMAND_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return print_version();
    if (strcmp(argv[1], "help") == 0) {
        command = argc > 2 ? find_command(argv[2]) : NULL;
        if (argc < 3)
            return print_help();
        if (command != NULL)
            return command_help(command);
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
