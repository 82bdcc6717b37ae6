/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_LIVE_SESSION_H
#define CUDAPOLICY_TOOLS_AB_LIVE_SESSION_H

/* What the files that make ab --live share: live_command.c, live_runs.c. */

#include "live_option.h"
#include "output_file.h"
#include "trial.h"

/* Arms of what is run. */
enum {
    LIVE_TRIAL_BASELINE, /* the baseline alone, once, where outputs are compared with its */
    LIVE_TRIAL_LIVE,     /* all arms, alternating: the policy that has the rules of all */
    LIVE_TRIAL_COUNT,
};

struct live_session {
    struct ab_live_options options;
    struct ab_experiment experiment; /* its arms are those that alternate; it has no runs */
    struct ab_live_design design;    /* of it */
    struct ab_experiment trial;      /* what is run */
    struct ab_trial_options running;
    char *library, *folder, *policy, *journal;
    bool folder_is_ours; /* made for this experiment alone, to be removed when all went well */
    char *variable;      /* CUDAPOLICY_LIVE */
    size_t run_count;
    struct ab_live_run *runs;
    size_t *places; /* by run: of the trial's */
    struct output_file *exports;
    size_t exports_open;
};

/* How the runs ended. */
enum live_end {
    LIVE_MADE,   /* all of them, or those before the user ended the experiment */
    LIVE_BROKEN, /* a check failed, or an output differed: the reason was printed */
    LIVE_FAILED, /* no comparison can be made: the reason was printed */
};

/* Makes the runs that are missing. */
enum live_end live_make_runs(struct live_session *session);

/* Begins or continues the journal; false with a message. */
bool live_begin_journal(struct live_session *session);

#endif
