/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_MATCH_H
#define CUDAPOLICY_TOOLS_MATCH_H

/*
 * Which rules match a kernel of which more or less is known: typed in by a person, or recorded,
 * where one kernel stands for many launches. What is not known makes an answer "perhaps". The
 * library decides on single launches of which it knows all; where all is known here too, its own
 * functions answer, and a test holds both to the same decisions.
 */

#include <stdbool.h>
#include <stdint.h>

#include "decide/kernel_name.h"
#include "policy/policy.h"

enum match_answer {
    MATCH_NO,
    MATCH_PERHAPS,
    MATCH_YES,
};

struct match_extent {
    bool known;
    int64_t least, most; /* all launches lie in between */
};

/* What is known of a kernel's launches. */
struct match_facts {
    struct kernel_name name;
    bool nameless;      /* it is known to have none */
    bool form_known[3]; /* by enum policy_name_form: whether that form of the name is */
    const char
        *library; /* base name; "": the launch was seen, its caller not told; NULL: not known */
    struct match_extent grid_blocks, block_threads, shared_memory;
    bool shapes_unnoted; /* these are not known because a report does not have them */
    struct match_extent rank, local_rank, world_size, device, launch_stream, arm;
    const char *host;               /* or NULL */
    bool stream_known;              /* then stream_rule is the rule the stream matched, */
    const char *stream_rule;        /* NULL for none */
    enum policy_layer stream_layer; /* in which that rule stands */
    enum policy_choice captured;    /* POLICY_CHOICE_ANY: not known */
};

struct match_verdict {
    enum match_answer answer;
    const char *key;  /* the first selector that fails, or else the first that is not known */
    char detail[400]; /* about it, one line: "128 is not in 1..4" */
};

/* Whether a kernel rule matches. */
void match_rule(const struct policy_rule *rule, const struct match_facts *facts,
                struct match_verdict *verdict);

/* A form of the name under which one of the rule's patterns would match where it does not in the
 * form that the rule asks for. False when there is none; *pattern is one that matches. */
bool match_other_form(const struct policy_selectors *selectors, const struct kernel_name *name,
                      enum policy_name_form *form, const char **pattern);

/* The word for a form: name, signature, mangled; and the name in that form. */
const char *match_form_word(enum policy_name_form form);
const char *match_form_text(const struct kernel_name *name, enum policy_name_form form);

#endif
