/* SPDX-License-Identifier: Apache-2.0 */
#include "tune_option.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum {
    DEFAULT_LIMIT = 64,
    LARGEST_LIMIT = 100000,
    DEFAULT_SEARCH_BLOCKS = 10,
    LARGEST_SEARCH_BLOCKS = 100000,
    LARGEST_LIVE_RUNS = 10000,
    EXTRA_WORDS = 5, /* what ab's parser needs besides: two arms, "--", a command, the end */
};

/* Options that ab does not have. */
enum own_option {
    OWN_POLICY,
    OWN_OUTPUT,
    OWN_FORCE,
    OWN_VARY,
    OWN_EACH,
    OWN_LIMIT,
    OWN_BASELINE,
    OWN_SEARCH_BLOCKS,
    OWN_HALVING,
    OWN_LIVE,
    OWN_LIVE_RUNS,
    OWN_SLICE,
    OWN_DROP,
    OWN_WARM_UP_STEPS,
    OWN_SUGGEST,
    OWN_COUNT,
};

enum argument { ARGUMENT_NONE, ARGUMENT_NEEDED, ARGUMENT_ATTACHED /* or none */ };

static const struct {
    const char *name;
    char letter; /* '\0': none */
    enum argument argument;
} own_options[OWN_COUNT] = {
    [OWN_POLICY] = {"policy", 'p', ARGUMENT_NEEDED},
    [OWN_OUTPUT] = {"output", 'o', ARGUMENT_NEEDED},
    [OWN_FORCE] = {"force", 'f', ARGUMENT_NONE},
    [OWN_VARY] = {"vary", '\0', ARGUMENT_NEEDED},
    [OWN_EACH] = {"each", '\0', ARGUMENT_NONE},
    [OWN_LIMIT] = {"limit", '\0', ARGUMENT_NEEDED},
    [OWN_BASELINE] = {"baseline", '\0', ARGUMENT_NEEDED},
    [OWN_SEARCH_BLOCKS] = {"search-blocks", '\0', ARGUMENT_NEEDED},
    [OWN_HALVING] = {"halving", '\0', ARGUMENT_NONE},
    [OWN_LIVE] = {"live", '\0', ARGUMENT_ATTACHED},
    [OWN_LIVE_RUNS] = {"live-runs", '\0', ARGUMENT_NEEDED},
    [OWN_SLICE] = {"slice", '\0', ARGUMENT_NEEDED},
    [OWN_DROP] = {"drop", '\0', ARGUMENT_NEEDED},
    [OWN_WARM_UP_STEPS] = {"warm-up-steps", '\0', ARGUMENT_NEEDED},
    [OWN_SUGGEST] = {"suggest", '\0', ARGUMENT_NEEDED},
};

static void list_own_options(void)
{
    for (int i = 0; i < OWN_COUNT; i++) {
        command_list_option(own_options[i].name, own_options[i].argument, own_options[i].letter);
    }
}

/* The own option that a word is; *attached: its argument, where it is in the same word, else NULL.
 * OWN_COUNT: it is none. */
static enum own_option own_option_of(const char *word, const char **attached)
{
    *attached = NULL;
    for (int i = 0; i < OWN_COUNT; i++) {
        size_t length = strlen(own_options[i].name);

        if (strncmp(word, "--", 2) == 0 && strncmp(word + 2, own_options[i].name, length) == 0 &&
            (word[2 + length] == '\0' || word[2 + length] == '=')) {
            *attached = word[2 + length] == '=' ? word + 3 + length : NULL;
            return (enum own_option)i;
        }
        if (own_options[i].letter != '\0' && word[0] == '-' && word[1] == own_options[i].letter &&
            (word[2] == '\0' || own_options[i].argument != ARGUMENT_NONE)) {
            *attached = word[2] != '\0' ? word + 2 : NULL;
            return (enum own_option)i;
        }
    }
    return OWN_COUNT;
}

static bool read_count(const char *text, uint32_t least, uint32_t most, uint32_t *count)
{
    char *end;
    unsigned long number;

    errno = 0;
    number = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < least ||
        number > most) {
        return false;
    }
    *count = (uint32_t)number;
    return true;
}

static bool take_count(const struct command *command, enum own_option option, const char *argument,
                       uint32_t least, uint32_t most, uint32_t *count)
{
    if (read_count(argument, least, most, count)) {
        return true;
    }
    command_usage_error(command, "--%s: '%s' is not a number from %u to %u",
                        own_options[option].name, argument, (unsigned)least, (unsigned)most);
    return false;
}

static bool take_live(const struct command *command, struct tune_options *options,
                      const char *argument)
{
    static const char *const words[] = {
        [SEARCH_LIVE_AUTO] = "auto", [SEARCH_LIVE_YES] = "yes", [SEARCH_LIVE_NO] = "no"};

    options->live = SEARCH_LIVE_YES;
    for (int i = 0; argument != NULL && i < (int)(sizeof words / sizeof words[0]); i++) {
        if (strcmp(words[i], argument) == 0) {
            options->live = (enum search_live)i;
            return true;
        }
    }
    if (argument != NULL) {
        command_usage_error(command, "--live: '%s' is not auto, yes or no", argument);
    }
    return argument == NULL;
}

/* True when the option is fine; else the message is printed. */
static bool take_own(const struct command *command, struct tune_options *options,
                     enum own_option option, const char *argument)
{
    switch (option) {
    case OWN_POLICY:
        options->policy = argument;
        break;
    case OWN_OUTPUT:
        options->output = argument;
        break;
    case OWN_FORCE:
        options->ab.force = true;
        break;
    case OWN_VARY:
        options->vary = memory_grow(options->vary, options->vary_count, &options->vary_capacity,
                                    sizeof *options->vary);
        options->vary[options->vary_count++] = argument;
        break;
    case OWN_EACH:
        options->each = true;
        break;
    case OWN_LIMIT:
        return take_count(command, option, argument, 1, LARGEST_LIMIT, &options->limit);
    case OWN_BASELINE:
        options->baseline = argument;
        if (strcmp(argument, "none") != 0 && strcmp(argument, "observe") != 0 &&
            strcmp(argument, "base") != 0) {
            command_usage_error(command, "--baseline: '%s' is not base, none or observe", argument);
            return false;
        }
        break;
    case OWN_SEARCH_BLOCKS:
        return take_count(command, option, argument, 1, LARGEST_SEARCH_BLOCKS, &options->blocks);
    case OWN_HALVING:
        options->halving = true;
        break;
    case OWN_LIVE:
        return take_live(command, options, argument);
    case OWN_LIVE_RUNS:
        return take_count(command, option, argument, 1, LARGEST_LIVE_RUNS, &options->live_runs);
    case OWN_SLICE:
        return take_count(command, option, argument, 2, INT32_MAX, &options->live_plan.slice);
    case OWN_DROP:
        return take_count(command, option, argument, 0, INT32_MAX, &options->live_plan.drop);
    case OWN_WARM_UP_STEPS:
        return take_count(command, option, argument, 0, INT32_MAX, &options->live_plan.warm_up);
    default:
        options->suggest = argument;
        break;
    }
    return true;
}

/* Takes the own options out of the words before "--"; the others, for ab, are left in rest, with
 * their number in *count. The index of "--", or argc; -1 after a message. */
static int take_own_options(const struct command *command, int argc, char **argv,
                            struct tune_options *options, char **rest, int *count)
{
    int i;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *argument;
        enum own_option option = own_option_of(argv[i], &argument);

        if (option == OWN_COUNT) {
            rest[(*count)++] = argv[i];
            continue;
        }
        if (own_options[option].argument == ARGUMENT_NONE && argument != NULL) {
            command_usage_error(command, "option '--%s' takes no argument",
                                own_options[option].name);
            return -1;
        }
        if (own_options[option].argument == ARGUMENT_NEEDED && argument == NULL) {
            if (i + 1 == argc || strcmp(argv[i + 1], "--") == 0) {
                command_usage_error(command, "option '--%s' needs an argument",
                                    own_options[option].name);
                return -1;
            }
            argument = argv[++i];
        }
        if (!take_own(command, options, option, argument)) {
            return -1;
        }
    }
    return i;
}

static bool is_help(char *const *words, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "-h") == 0 || strcmp(words[i], "--help") == 0) {
            return true;
        }
    }
    return false;
}

static int check_suggest(const struct command *command, const struct tune_options *options,
                         const char *word)
{
    if (options->policy != NULL || options->vary_count > 0) {
        return command_usage_error(command, "--suggest makes a policy and takes none");
    }
    if (word != NULL) {
        return command_usage_error(command, "--suggest runs nothing, so '%s' has no place here",
                                   word);
    }
    return -1;
}

/* What of ab's options has no meaning here. */
static int check_ab(const struct command *command, const struct tune_options *options)
{
    if (options->ab.plan.claim != AB_CLAIM_BETTER) {
        return command_usage_error(command, "tune asks whether something is better; for another "
                                            "claim, use cudapolicy ab");
    }
    if (options->live == SEARCH_LIVE_YES && !options->ab.watch_steps) {
        return command_usage_error(command, "--live takes a step: --step-kernel or --graph-steps");
    }
    if (options->live_plan.drop >= options->live_plan.slice) {
        return command_usage_error(command, "--drop %u leaves nothing of a slice of %u steps",
                                   (unsigned)options->live_plan.drop,
                                   (unsigned)options->live_plan.slice);
    }
    return -1;
}

/* Gives ab's parser what tune does not know: the first count words of rest, and the command at
 * argv[end]. What is missing is said after it, so that a misspelt option is named as one. */
static int parse_rest(const struct command *command, int argc, char **argv, int end, char **rest,
                      int count, struct tune_options *options)
{
    static char first_arm[] = "none", second_arm[] = "observe", dashes[] = "--", program[] = "true";
    const bool force = options->ab.force, has_command = end + 1 < argc;
    int status;

    /* ab wants arms; which they are only the space will tell. */
    rest[count++] = first_arm;
    rest[count++] = second_arm;
    for (int i = end; i < argc && has_command; i++) {
        rest[count++] = argv[i];
    }
    if (!has_command) {
        rest[count++] = dashes;
        rest[count++] = program;
    }
    rest[count] = NULL;
    optind = 1;
    status = ab_options_parse(command, count, rest, &options->ab);
    options->ab.force = options->ab.force || force;
    if (status == -1 && options->policy == NULL) {
        status = command_usage_error(command, "no policy: give one with -p");
    } else if (status == -1 && !has_command) {
        status = command_usage_error(command, "no command: it stands after '--'");
    }
    return status == -1 ? check_ab(command, options) : status;
}

int tune_options_parse(const struct command *command, int argc, char **argv,
                       struct tune_options *options)
{
    char **rest = memory_allocate((size_t)argc + EXTRA_WORDS, sizeof *rest);
    int count = 1, end, status;

    *options = (struct tune_options){.limit = DEFAULT_LIMIT,
                                     .blocks = DEFAULT_SEARCH_BLOCKS,
                                     .live_runs = AB_NESTED_RUNS,
                                     .live_plan = {.slice = 20, .drop = 5, .warm_up = 40},
                                     .words = rest};
    rest[0] = argv[0];
    if (argc > 1 && strcmp(argv[1], COMMAND_LIST_OPTIONS) == 0) {
        list_own_options(); /* ab's parser adds its own */
        return ab_options_parse(command, argc, argv, &options->ab);
    }
    end = take_own_options(command, argc, argv, options, rest, &count);
    if (end < 0) {
        status = COMMAND_USAGE;
    } else if (is_help(rest + 1, count - 1)) {
        status = command_help(command);
    } else if (options->suggest != NULL) {
        status = check_suggest(command, options,
                               count > 1        ? rest[1]
                               : end + 1 < argc ? argv[end + 1]
                                                : NULL);
    } else {
        status = parse_rest(command, argc, argv, end, rest, count, options);
    }
    return status;
}

void tune_options_release(struct tune_options *options)
{
    ab_options_release(&options->ab);
    free(options->vary);
    free(options->words);
}
