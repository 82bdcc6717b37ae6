/* SPDX-License-Identifier: Apache-2.0 */
#include "arm.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "memory.h"
#include "policy/combine.h"
#include "policy/diagnostics.h"
#include "policy/environment.h"
#include "policy_input.h"
#include "site_input.h"

enum {
    NAME_LIMIT = 100, /* bytes: names stand in those of folders, with more before them */
};

static const char name_rule[] =
    "a name has letters, digits, '.', '_', '+', '-', blanks between these, and any characters "
    "beyond ASCII (UTF-8), 100 bytes at most";

/* Bytes of the character at text, of so many that are there, where a name may have it; else 0. */
static size_t name_character(const char *text, size_t length)
{
    size_t character = 1;
    struct policy_quotation quotation;

    if ((unsigned char)text[0] < 0x80) {
        return isalnum((unsigned char)text[0]) || strchr("._+- ", text[0]) != NULL ? 1 : 0;
    }
    while (character < length && character < 4 && ((unsigned char)text[character] & 0xc0) == 0x80) {
        character++;
    }
    policy_quote(&quotation, text, character);
    return strncmp(quotation.text, text, character) == 0 ? character : 0;
}

/* So that it can stand in paths and in lines of text. */
static bool is_name(const char *text, size_t length)
{
    size_t character = 1;

    for (size_t i = 0; i < length && character > 0; i += character) {
        character = name_character(text + i, length - i);
    }
    return character > 0 && length > 0 && length <= NAME_LIMIT && text[0] != ' ' &&
           text[length - 1] != ' ' && strncmp(text, "..", length) != 0;
}

/* Length of NAME in "NAME=what"; 0: no name is given. A path with '=' in it has a '/' before that,
 * or can be given one. */
static size_t given_name(const char *word)
{
    size_t length = strcspn(word, "=/");

    return word[length] == '=' ? length : 0;
}

static struct ab_arm *find_arm(struct ab_experiment *experiment, const char *name)
{
    for (size_t i = 0; i < experiment->arm_count; i++) {
        if (strcmp(experiment->arms[i].name, name) == 0) {
            return &experiment->arms[i];
        }
    }
    return NULL;
}

/* Takes name, and makes it unique. */
static char *unique_name(struct ab_experiment *experiment, char *name)
{
    char *candidate = memory_copy(name);

    for (int number = 2; find_arm(experiment, candidate) != NULL; number++) {
        free(candidate);
        candidate = memory_format("%s-%d", name, number);
    }
    free(name);
    return candidate;
}

/* Of a policy file: its base name without ".ini"; '-' for each character that a name cannot have.
 */
static char *name_of_file(const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash != NULL ? slash + 1 : file;
    size_t length = strlen(base), kept = 0;
    char *name = memory_allocate(length + 2, 1);

    if (length > 4 && strcmp(base + length - 4, ".ini") == 0) {
        length -= 4;
    }
    for (size_t i = 0, character; i<length; i += character> 0 ? character : 1) {
        character = name_character(base + i, length - i);
        if (kept + character > NAME_LIMIT - 10) { /* a number may follow */
            break;
        }
        memcpy(name + kept, character > 0 ? base + i : "-", character > 0 ? character : 1);
        kept += character > 0 ? character : 1;
    }
    /* No blank at an end, not dots alone, not empty. */
    if (kept == 0 || name[0] == ' ' || name[0] == '.') {
        name[0] = '-';
        kept += kept == 0;
    }
    if (name[kept - 1] == ' ') {
        name[kept - 1] = '-';
    }
    return name;
}

/* Never moves: there is room for all. */
static struct ab_arm *add(struct ab_experiment *experiment, char *name, enum ab_arm_kind kind,
                          enum ab_arm_role role)
{
    struct ab_arm *arm = &experiment->arms[experiment->arm_count++];

    *arm = (struct ab_arm){.name = name, .kind = kind, .role = role};
    return arm;
}

static void warn_of_mode(const struct policy *policy, const char *file, const struct ab_arm *arm)
{
    const enum policy_mode mode = policy_mode_choose(NULL, policy).mode;

    if (policy->mode_given && policy->mode != POLICY_MODE_ENFORCE) {
        command_error("warning: the policy '%s' only observes: the arm '%s' changes nothing", file,
                      arm->name);
    } else if (mode != POLICY_MODE_ENFORCE) {
        command_error(
            "warning: the mode is %s by the site's file (%s): the arm '%s' changes nothing",
            policy_mode_name(mode), policy->site->path, arm->name);
    }
}

static bool read_policy(struct ab_arm *arm, const char *file, bool warnings)
{
    bool unreadable;
    struct policy *policy =
        site_input_around(policy_input_require(file, warnings, &unreadable), warnings);

    if (policy == NULL) {
        command_error("the policy of the arm '%s' %s; nothing was run", arm->name,
                      unreadable ? "cannot be read" : "is wrong");
        return false;
    }
    warn_of_mode(policy, file, arm);
    arm->sets_variables = policy->variable_count > 0 && policy_applies_variables(policy, NULL);
    arm->policy_sha256 = memory_allocate(2 * sizeof policy->sha256 + 1, 1);
    for (size_t i = 0; i < sizeof policy->sha256; i++) {
        snprintf(arm->policy_sha256 + 2 * i, 3, "%02x", policy->sha256[i]);
    }
    policy_free(policy);
    arm->policy = realpath(file, NULL);
    if (arm->policy == NULL) {
        command_error("cannot find '%s': %s", file, strerror(errno));
    }
    return arm->policy != NULL;
}

static void warn_of_equal(const struct ab_experiment *experiment, const struct ab_arm *arm)
{
    for (const struct ab_arm *other = experiment->arms; other < arm; other++) {
        if (other->policy_sha256 != NULL && strcmp(other->policy_sha256, arm->policy_sha256) == 0) {
            command_error("warning: the arms '%s' and '%s' have the same policy", other->name,
                          arm->name);
            return;
        }
    }
}

static enum arm_result add_word(struct ab_experiment *experiment, const char *word,
                                enum ab_arm_role role, bool warnings, char *error, size_t size)
{
    size_t length = given_name(word);
    const char *what = word + (length > 0 ? length + 1 : 0);
    enum ab_arm_kind kind = strcmp(what, "none") == 0      ? AB_ARM_NONE
                            : strcmp(what, "observe") == 0 ? AB_ARM_OBSERVE
                                                           : AB_ARM_POLICY;
    char *name = length > 0 ? memory_format("%.*s", (int)length, word) : name_of_file(what);
    struct ab_arm *arm;

    if (length > 0 && !is_name(word, length)) {
        snprintf(error, size,
                 "'%s' is no name for an arm: %s (a file with '=' in its name is given as ./%s)",
                 name, name_rule, word);
    } else if (length > 0 && find_arm(experiment, name) != NULL) {
        snprintf(error, size, "two arms are called '%s'", name);
    } else if (strcmp(what, "-") == 0 || what[0] == '\0') {
        snprintf(error, size, "'%s' is no arm: none, observe, or a policy file", word);
    } else {
        arm = add(experiment, length > 0 ? name : unique_name(experiment, name), kind, role);
        if (kind != AB_ARM_POLICY) {
            return ARM_FINE;
        }
        if (!read_policy(arm, what, warnings)) {
            return ARM_UNFIT;
        }
        warn_of_equal(experiment, arm);
        return ARM_FINE;
    }
    free(name);
    return ARM_MISUSED;
}

static bool any_word_is(const struct arm_request *request, const char *what)
{
    for (size_t i = 0; i < request->count; i++) {
        size_t length = given_name(request->words[i]);

        if (strcmp(request->words[i] + (length > 0 ? length + 1 : 0), what) == 0) {
            return true;
        }
    }
    return false;
}

static void add_repeat(struct ab_experiment *experiment)
{
    const struct ab_arm *baseline = &experiment->arms[0];
    char *name = unique_name(experiment, memory_format("%s-again", baseline->name));
    struct ab_arm *arm = add(experiment, name, baseline->kind, AB_ROLE_REPEAT);

    arm->policy = baseline->policy != NULL ? memory_copy(baseline->policy) : NULL;
    arm->policy_sha256 =
        baseline->policy_sha256 != NULL ? memory_copy(baseline->policy_sha256) : NULL;
}

enum arm_result arm_add_all(struct ab_experiment *experiment, const struct arm_request *request,
                            char *error, size_t size)
{
    experiment->arms = memory_allocate(request->count + 2, sizeof *experiment->arms);
    for (size_t i = 0; i < request->count; i++) {
        enum ab_arm_role role = i == 0 ? AB_ROLE_BASELINE : AB_ROLE_CANDIDATE;
        enum arm_result result =
            add_word(experiment, request->words[i], role, request->warnings, error, size);

        if (result != ARM_FINE) {
            return result;
        }
    }
    /* Behind the others, so that no name of theirs depends on what is added. */
    if (!request->no_repeat) {
        add_repeat(experiment);
    }
    if (any_word_is(request, "none") && !any_word_is(request, "observe")) {
        add(experiment, unique_name(experiment, memory_copy("observe")), AB_ARM_OBSERVE,
            AB_ROLE_COST);
    }
    if (experiment->arm_count < 2) {
        snprintf(error, size, "nothing to compare '%s' with: give another arm",
                 experiment->arms[0].name);
        return ARM_MISUSED;
    }
    return ARM_FINE;
}
