/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_SEARCH_H
#define CUDAPOLICY_TOOLS_TUNE_SEARCH_H

/*
 * Finds the candidate that helps most, and then finds out whether it helps.
 *
 * The search compares all candidates with the baseline in few runs, and takes the one that looks
 * best. Of many candidates the best-looking one is always lucky: its figure is too good, and where
 * none helps there is a best-looking one all the same. So the search proves nothing. What is said
 * of the winner comes from the confirmation: new runs of that one candidate and the baseline, with
 * a seed of their own and the whole sequential plan, in which no run of the search has a part.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis.h"
#include "execute.h"
#include "experiment.h"
#include "live.h"
#include "space.h"

enum search_baseline {
    SEARCH_AGAINST_BASE, /* the policy as it stands */
    SEARCH_AGAINST_NONE, /* no preload */
    SEARCH_AGAINST_OBSERVE,
};

/* Whether the candidates alternate inside running processes while they are searched. */
enum search_live {
    SEARCH_LIVE_AUTO, /* where it is possible, and tells what decides */
    SEARCH_LIVE_YES,
    SEARCH_LIVE_NO,
};

struct search {
    const char *policy, *policy_sha256; /* the base's file, as it was read */
    const struct space *space;
    char *const *files; /* the candidates' policies, by candidate, absolute */
    enum search_baseline baseline;
    bool with_base; /* the base is a candidate: it has rules, and is not the baseline */
    char *const *command;
    const struct ab_metric *metrics;
    size_t metric_count;
    const struct ab_execution *execution; /* trial.folder: each stage gets a folder in it */
    const char *same_output;              /* NULL: not asked */
    double relative, absolute;
    const char *gpus; /* of this host; NULL: not known */
    json_t *options;  /* with which all runs are made (run_options.h) */
    bool resume;      /* the folder has what an earlier search left */
    enum search_live live;
    uint32_t live_runs;            /* of the command, for each batch of candidates */
    struct ab_live_plan live_plan; /* but for its seed */
    bool no_repeat;                /* the baseline once only, also in the confirmation */
    uint32_t blocks;               /* of the search */
    bool halving;                  /* the worse half of the candidates is dropped again and again */
    struct ab_plan plan; /* of the confirmation, but for its seed; its seed is that of all */
    bool quiet, wide;    /* no tables between the stages; not shortened */
};

/* What the search saw of a candidate. */
struct search_score {
    bool tried;
    bool broken; /* changes results, or fails more often than the baseline */
    bool idle; /* neither its rules nor the baseline's changed anything: any difference is noise */
    size_t blocks;
    double ratio;     /* to the baseline, over all blocks; NaN */
    double low, high; /* interval of the last round that it was in; NaN */
    double level;
};

enum search_end {
    SEARCH_CONFIRMED,    /* the best candidate is better than the baseline */
    SEARCH_NOTHING,      /* it is shown that it is not, or is not by more than the margin */
    SEARCH_INCONCLUSIVE, /* too few runs to say, or interrupted */
    SEARCH_BROKEN,       /* all candidates are broken, or the best is */
    SEARCH_NO_BASELINE,  /* the baseline does not work: there is nothing to compare with */
    SEARCH_FAILED,       /* it could not be made: the reason was printed */
};

struct search_result {
    enum search_end end;
    struct search_score *scores; /* by candidate */
    size_t best;                 /* SIZE_MAX: none */
    uint64_t search_seed, confirmation_seed;
    size_t rounds;
    bool interrupted;         /* during the search */
    bool live;                /* the search was */
    char *why_not_live;       /* where it was not; NULL: nobody asked */
    bool live_processes_only; /* its intervals are about the processes of its runs alone */
    size_t search_runs, search_flagged; /* of the command; and those with a GPU flag */
    struct ab_experiment search;        /* the last round of a search by processes */
    struct ab_analysis search_analysis;
    char *policy_changed; /* what became of the base's file meanwhile; NULL: nothing */
    bool confirmed;       /* the confirmation was begun: */
    struct ab_experiment confirmation;
    struct ab_analysis confirmation_analysis;
};

/* Runs all of it; prints progress and tables on standard error. */
void search_run(const struct search *search, struct search_result *result);

/* The best candidate's figures of the confirmation; NULL: there are none. */
const struct ab_comparison *search_confirmation(const struct search_result *result);

/* Whether neither the best candidate's rules nor the baseline's changed anything in any run of the
 * confirmation: then what is seen is noise, however well it is shown; and what is to be said. */
bool search_changed_nothing(const struct search_result *result);
extern const char *const search_changed_nothing_text;

/* Whether the best candidate's own rules changed nothing in any run of the confirmation, while the
 * baseline's did: the gain is what those cost. */
bool search_takes_away(const struct search_result *result);
extern const char *const search_takes_away_text;

/* What the ratios of the search are about: the primary metric, or the time of a step where the
 * search was live. */
const struct ab_metric *search_metric(const struct search *search,
                                      const struct search_result *result);

/* The candidates, best first: those that work, then by their ratio. Equals stay in their order. */
void search_sort(const struct search *search, const struct search_result *result,
                 size_t *candidates, size_t count);

/* How many times as good as the baseline a ratio of this metric is: 2 is twice as fast, or twice as
 * much where more is better. */
double search_gain(const struct ab_metric *metric, double ratio);

void search_release(struct search_result *result);

#endif
