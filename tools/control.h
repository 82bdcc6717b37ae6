/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_CONTROL_H
#define CUDAPOLICY_TOOLS_CONTROL_H

/* What can be done to a running process, and what is known of it, through its counters' file. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"
#include "targets.h"

enum control_outcome {
    CONTROL_DONE,
    CONTROL_SENT,    /* it will, at its next launch */
    CONTROL_REFUSED, /* by the process, or before it was asked: message says why */
    CONTROL_FAILED,  /* it cannot be reached */
};

struct control_process {
    const struct target *target;
    long pid; /* in our pid namespace; where that is not known, as the process knows itself */
    char *program, *host, *mode, *policy_path, *policy_sha256, *last_reload, *started;
    uint16_t generation, acted; /* of the control word: the latest, and that the process acted on */
    int64_t launches;
    json_t *report; /* what it did so far, as `cudapolicy report --json` reads it; NULL: not read */
    enum control_outcome outcome;
    char *message; /* NULL: nothing to add */
    uint32_t wanted;
};

/* Looks at a process. Where it cannot be: outcome FAILED. */
void control_look(struct control_process *process, const struct target *target);

/* Sets the mode, from its next launch on. */
void control_set_mode(struct control_process *process, enum policy_mode mode);

/* Checks the process's policy file as the process would, and asks it to read it again unless there
 * are errors, which are printed on stderr: then REFUSED. Else SENT, until control_await. */
void control_reload(struct control_process *process);

/* Waits for what control_reload sent, until deadline (seconds, CLOCK_MONOTONIC). */
void control_await(struct control_process *process, double deadline);
double control_now(void);

const char *control_outcome_name(enum control_outcome outcome);

void control_release(struct control_process *process);

#endif
