/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_EXPERIMENT_H
#define CUDAPOLICY_TOOLS_AB_EXPERIMENT_H

/*
 * What an A/B experiment is: arms, metrics, and the runs that were made. Everything else in this
 * folder either makes runs, or reads an experiment.
 *
 * Runs come in blocks: in each block every arm runs once, in an order drawn from the seed. The run
 * is the unit of every statement; values inside a run (iterations, ranks) are summarised to one
 * number a metric before anything is compared.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ab_arm_kind {
    AB_ARM_NONE,    /* without the preload */
    AB_ARM_OBSERVE, /* the preload with an empty policy that observes: what it costs itself */
    AB_ARM_POLICY,
};

enum ab_arm_role {
    AB_ROLE_BASELINE,  /* the first arm: others are compared with it */
    AB_ROLE_REPEAT,    /* the baseline again, treated like any other arm: the noise floor */
    AB_ROLE_COST,      /* observe, added because the baseline runs without the preload */
    AB_ROLE_CANDIDATE, /* what the user asks about */
};

struct ab_arm {
    char *name; /* unique; no '/' and no character of the shell but blanks: it stands in paths */
    enum ab_arm_kind kind;
    enum ab_arm_role role;
    char *policy;        /* absolute path; NULL unless a policy */
    char *policy_sha256; /* of the file as it was at the start; NULL unless a policy */
    bool sets_variables; /* it has an [env], which can change times where no rule applies */
    char *policy_copy;   /* what the runs read in its place (arm_copy.h); NULL: none */
};

enum ab_direction {
    AB_LESS_IS_BETTER,
    AB_MORE_IS_BETTER,
};

enum ab_metric_source {
    AB_METRIC_WALL,    /* seconds from start to end of the command */
    AB_METRIC_PATTERN, /* a regular expression on what it prints */
    AB_METRIC_JSON,    /* a place in a JSON document */
    AB_METRIC_STEP,    /* time of a step, from the counters of the report */
};

/* How values of one run, from several ranks, become one. */
enum ab_across {
    AB_ACROSS_MAX, /* the slowest rank is what the job waits for */
    AB_ACROSS_MEAN,
    AB_ACROSS_MEDIAN,
    AB_ACROSS_MIN,
    AB_ACROSS_SUM,
};

struct ab_metric {
    char *name;
    char *unit; /* "" when not known */
    enum ab_direction direction;
    enum ab_metric_source source;
    char *definition; /* as the user gave it: the expression, the JSON path, the step kernel */
    bool primary;     /* exactly one metric is; the others are exploratory */
    enum ab_across across;
    int skip; /* first values of a run that are warm-up; -1: found (metric.h) */
};

/* How a run ended. Only AB_OK has values that count. */
enum ab_outcome {
    AB_OK,
    AB_EXITED,         /* with a status other than 0, see ab_run.status */
    AB_SIGNALLED,      /* ended by a signal, see ab_run.status */
    AB_TIMED_OUT,      /* ended by us after the time limit */
    AB_CHECK_FAILED,   /* --check said no */
    AB_OUTPUT_DIFFERS, /* --same-output: not what the baseline printed */
    AB_METRIC_MISSING, /* the primary metric could not be read */
    AB_NOT_ATTACHED,   /* an arm with a policy in which the preload saw no launch */
    AB_INTERRUPTED,    /* by the user: as if it had not been made */
    AB_OUTCOME_COUNT,
};
/* "ok", "exited", …: as in files. */
extern const char *const ab_outcome_names[AB_OUTCOME_COUNT];

/* What the GPUs did meanwhile, as gpu_state.h reads it; ORed. */
enum ab_gpu_flag {
    AB_GPU_THROTTLED_THERMAL = 1,
    AB_GPU_THROTTLED_POWER = 2, /* held below the clocks asked for by a power limit */
    AB_GPU_THROTTLED_OTHER = 4, /* hardware slow-down, power brake */
    AB_GPU_OTHER_PROCESSES = 8, /* processes that are not ours used a GPU */
    AB_GPU_CLOCKS_CHANGED = 16, /* clocks far from those of the experiment's other runs */
};

struct ab_run_gpu {
    bool known; /* NVML was there */
    unsigned flags;
    double sm_clock_mhz, temperature_celsius, power_watts; /* means over GPUs and samples; NaN */
};

/* What the preload's reports said of the run. */
struct ab_run_policy {
    bool known; /* there was a report */
    int64_t processes, launches, applied, already_so, kept, refused;
    int64_t rules,
        rules_matched; /* of the policy: in all, and with at least one launch or stream */
};

struct ab_run_value {
    double value;           /* what is compared; NaN: none */
    int64_t count;          /* values of the run that went into it */
    int64_t warm_up;        /* values cut off before them */
    double autocorrelation; /* of the values that count, at lag 1; NaN where fewer than 3 */
};

struct ab_run {
    uint32_t block;    /* from 0; warm-up blocks count apart, also from 0 */
    uint32_t position; /* in the block, from 0 */
    uint32_t arm;      /* index */
    bool warm_up;      /* block that does not count */
    uint32_t live_run; /* of ab --live: the run of the command that the slice is of, from 0 */
    enum ab_outcome outcome;
    int status;         /* exit status or signal */
    int64_t start_time; /* nanoseconds since 1970 */
    double seconds;     /* wall time */
    char *message;      /* why, where the outcome is not AB_OK; NULL: nothing to add */
    struct ab_run_gpu gpu;
    struct ab_run_policy policy;
    struct ab_run_value *values; /* by metric */
};

/* What the user asks: decides the exit status, not what is computed. */
enum ab_claim {
    AB_CLAIM_BETTER,        /* is a candidate better? */
    AB_CLAIM_NO_DIFFERENCE, /* is it shown that no candidate differs by more than the margin? */
    AB_CLAIM_NONE,          /* nothing: only measure, for all blocks of the plan */
};

/* How it is decided when to stop and what to say. */
struct ab_plan {
    uint64_t seed;
    uint32_t warm_up_blocks;
    size_t look_count;
    uint32_t looks[16]; /* ascending counts of blocks after which results are looked at; the last
                           one is where the experiment ends in any case */
    enum ab_claim claim;
    double alpha;  /* 0.05: over all looks and arms together */
    double margin; /* 0.01: a ratio within 1/(1 + margin) .. 1 + margin is no difference that
                      matters */
};

/* Of ab --live: arms that alternate inside runs, by slices of steps. Then what is a run elsewhere
 * is a slice, or the mean of a few neighbouring ones. */
struct ab_live_design {
    uint32_t slice, drop, warm_up; /* steps */
    uint32_t runs;                 /* of the command, as planned */
    const char *step_kernel;       /* NULL: launches of graphs are steps */
    /* What was made; not part of the plan. */
    size_t runs_made, runs_failed; /* failed ones were made again */
    size_t ranks, parts;           /* see live_ranks.h; the most of any run */
    size_t left_out;               /* processes that do not count, over all runs */
    size_t blocks;                 /* over all runs */
    size_t together;               /* neighbouring blocks that are shown as one */
    bool these_processes_only;     /* intervals do not speak of other runs */
};

struct ab_experiment {
    char **command; /* ended by NULL; with {arm} and the like as the user wrote them */
    char *started;  /* ISO 8601, UTC */
    char *host;
    char *gpus; /* a line about each GPU that it may use here, as it was at the start; NULL: no NVML
                 */
    struct ab_plan plan;
    json_t *options; /* with which the runs are made (run_options.h); NULL: not known */
    size_t arm_count;
    struct ab_arm *arms; /* the baseline is the first */
    size_t metric_count;
    struct ab_metric *metrics; /* the primary one is the first */
    size_t run_count, run_capacity;
    struct ab_run *runs;               /* in the order in which they were made */
    bool interrupted;                  /* the user ended it before the last block that was wanted */
    const struct ab_live_design *live; /* NULL: arms are runs of their own */
};

/* Fills in what is run (copied), where, and that it began now. */
void ab_experiment_begin(struct ab_experiment *experiment, char *const *command);

/* Appends a run, all zero but for values that are NaN. */
struct ab_run *ab_experiment_add_run(struct ab_experiment *experiment);

/* Takes the last run away again. */
void ab_experiment_drop_run(struct ab_experiment *experiment);

/* Frees what the experiment holds, not the struct. */
void ab_experiment_release(struct ab_experiment *experiment);

/* The experiment without its runs, and one run, as JSON: lines of the journal, parts of the export.
 * NaN is null. */
json_t *ab_experiment_json(const struct ab_experiment *experiment);
json_t *ab_run_json(const struct ab_experiment *experiment, const struct ab_run *run);

/* Back again. False with a message in error[size]. */
bool ab_experiment_from_json(struct ab_experiment *experiment, const json_t *document, char *error,
                             size_t size);
bool ab_run_from_json(struct ab_experiment *experiment, const json_t *document, char *error,
                      size_t size);

#endif
