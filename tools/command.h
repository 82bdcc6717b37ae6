/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_COMMAND_H
#define CUDAPOLICY_TOOLS_COMMAND_H

/*
 * What the subcommands of cudapolicy share: how they are called, how they report mistakes, and the
 * statuses with which they end. One file a subcommand; cudapolicy.c lists them.
 */

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    COMMAND_SUCCESS = 0,
    COMMAND_FAILURE = 1,     /* the input is wrong or cannot be read */
    COMMAND_EXPECTATION = 3, /* run --strict-expect: something was not as expected */
    COMMAND_USAGE = 64,      /* the command line is wrong (EX_USAGE of sysexits.h) */

    /* Of the subcommands that start a program; otherwise they end as the program did. The same
     * numbers as env, nice and timeout use. */
    COMMAND_RUN_FAILED = 125,
    COMMAND_RUN_CANNOT_EXECUTE = 126,
    COMMAND_RUN_NOT_FOUND = 127,
    COMMAND_RUN_SIGNAL = 128, /* plus the signal's number */
};

/* getopt_long values of options that have no short form. */
enum {
    COMMAND_OPTION_LONG = 256,
};

/* For the build, which makes the shell completion: as the first word behind a subcommand, its
 * options are listed and nothing is done. In no help, since it is not for people. */
#define COMMAND_LIST_OPTIONS "--list-options"

struct command {
    const char *name;
    const char *summary; /* one line, for the list of subcommands */
    const char *usage;   /* what follows "cudapolicy NAME " */
    const char *help;    /* options and examples */
    int (*main)(const struct command *command, int argc, char **argv);
};

extern const struct command command_run;
extern const struct command command_check;
extern const struct command command_ctl;
extern const struct command command_diff;
extern const struct command command_explain;
extern const struct command command_record;
extern const struct command command_report;
extern const struct command command_show;
extern const struct command command_ab;
extern const struct command command_tune;

/* Prints "cudapolicy: message" on stderr. */
void command_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints "cudapolicy: NAME: message" and where help is to be had; returns COMMAND_USAGE. */
int command_usage_error(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The next option of a subcommand, as getopt_long gives it: -1 at the end, '?' after an unknown
 * option or a missing argument, whose message is already printed. Options end at the first word
 * that is none. */
int command_option(const struct command *command, int argc, char **argv, const char *short_options,
                   const struct option *long_options);

/* For a subcommand that reads options itself: one of them, as COMMAND_LIST_OPTIONS lists them.
 * letter: its short form, or 0. */
void command_list_option(const char *name, bool argument, int letter);

/* Prints the help of a subcommand on stdout. */
int command_help(const struct command *command);

/* Opens what is closed of standard input, output and error, so that no file gets their numbers and
 * what is printed is not written into it. What is printed is lost all the same: on standard output
 * it is an error. */
void command_hold_descriptors(void);

/* Flushes stdout; status, or COMMAND_FAILURE with a message when not all of it could be written. */
int command_finish(int status);

#endif
