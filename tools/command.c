/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

    if (optopt > 0 && optopt < COMMAND_OPTION_LONG && strncmp(word, "--", 2) != 0) {
        snprintf(text, size, "-%c", optopt);
    } else {
        snprintf(text, size, "%s", word);
    }
}

void command_list_option(const char *name, bool argument, int letter)
{
    printf("--%s%s", name, argument ? "=" : "");
    if (letter > 0 && letter < COMMAND_OPTION_LONG) {
        printf(" -%c", letter);
    }
    putchar('\n');
}

/* The table of options, from which the shell completion is made: a line each, --NAME or, with an
 * argument, --NAME=; behind it the short form. */
static void list_options(const struct option *options)
{
    for (; options->name != NULL; options++) {
        command_list_option(options->name, options->has_arg != no_argument, options->val);
    }
}

int command_option(const struct command *command, int argc, char **argv, const char *short_options,
                   const struct option *long_options)
{
    char text[200];
    int option;

    if (argc > 1 && strcmp(argv[1], COMMAND_LIST_OPTIONS) == 0) {
        list_options(long_options);
        exit(command_finish(COMMAND_SUCCESS));
    }
    opterr = 0;
    option = getopt_long(argc, argv, short_options, long_options, NULL);
    if (option != '?' && option != ':') {
        return option;
    }
    name_option(argv, text, sizeof(text));
    if (option == ':') {
        command_usage_error(command, "option '%s' needs an argument", text);
    } else if (optopt != 0 && strncmp(text, "--", 2) == 0) {
        command_usage_error(command, "option '%s' takes no argument", text);
    } else {
        command_usage_error(command, "unknown option '%s'", text);
    }
    return '?';
}

int command_help(const struct command *command)
{
    printf("Usage: cudapolicy %s %s\n\n%s", command->name, command->usage, command->help);
    return command_finish(COMMAND_SUCCESS);
}

void command_hold_descriptors(void)
{
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++) {
        if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) {
            /* The lowest number that is free is this one. */
            (void)!open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

int command_finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    command_error("cannot write to standard output: %s", strerror(errno));
    return status == COMMAND_SUCCESS ? COMMAND_FAILURE : status;
}
