/* SPDX-License-Identifier: Apache-2.0 */

/* An experiment in words and in files: what the answer says, and what stands in each format. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"
#include "export.h"
#include "html_axis.h"
#include "html_text.h"
#include "memory.h"
#include "print.h"
#include "wording.h"

static int set_up(void **state)
{
    struct example *example = calloc(1, sizeof *example);

    unsetenv("COLUMNS");
    example_make(example, EXAMPLE_ARMS, 20);
    *state = example;
    return 0;
}

static int tear_down(void **state)
{
    example_release(*state);
    free(*state);
    return 0;
}

static char *exported(const struct example *example, enum ab_format format)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    ab_export(&example->experiment, &example->analysis, format, stream);
    fclose(stream);
    return text;
}

static char *printed(const struct example *example)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    ab_print(&example->experiment, &example->analysis, true, stream);
    fclose(stream);
    return text;
}

/* Leaves this arm the only candidate, with numbers that are easy to read. */
static struct ab_comparison *only(struct example *example, unsigned arm, double ratio)
{
    struct ab_comparison *comparison = example_comparison(example, arm, 0);

    for (unsigned i = 1; i < EXAMPLE_ARMS; i++) {
        example->experiment.arms[i].role = i == arm ? AB_ROLE_CANDIDATE : AB_ROLE_REPEAT;
    }
    comparison->ratio = ratio;
    comparison->low = ratio * 0.9;
    comparison->high = ratio * 1.1;
    comparison->margin_low = 0.996;
    comparison->margin_high = 1.004;
    comparison->pairs = 20;
    return comparison;
}

static void assert_answer(const struct example *example, const char *expected)
{
    char *answer = ab_answer(&example->experiment, &example->analysis);

    assert_string_equal(answer, expected);
    free(answer);
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' is not in:\n%s", part, text);
    }
}

/* No number that is none, in any case of letters, as a word of its own. */
static void assert_no_nan(const char *text)
{
    for (const char *at = text; (at = strcasestr(at, "nan")) != NULL; at++) {
        bool begins = at == text || !isalpha((unsigned char)at[-1]);

        if (begins && !isalpha((unsigned char)at[3]) && strncmp(at - 8, "loss is ", 8) != 0) {
            fail_msg("not a number: %.60s", at > text + 20 ? at - 20 : text);
        }
    }
}

/* ---- The answer ---- */

static void less_time_is_times_as_fast_with_the_inverse_interval(void **state)
{
    struct example *example = *state;
    struct ab_comparison *comparison = only(example, EXAMPLE_FAST, 0.7);

    comparison->low = 1 / 1.55;
    comparison->high = 1 / 1.31;
    comparison->ratio = 1 / 1.42;
    assert_answer(example, "fast is 1.42 times as fast as none (95 % interval 1.31 .. 1.55, 20 "
                           "blocks)");
}

static void more_time_is_times_as_long(void **state)
{
    struct example *example = *state;
    struct ab_comparison *comparison = only(example, EXAMPLE_SLOW, 1.42);

    comparison->low = 1.31;
    comparison->high = 1.55;
    assert_answer(example, "slow is slower: it takes 1.42 times as long as none (95 % interval "
                           "1.31 .. 1.55, 20 blocks)");
}

static void what_is_no_time_says_which_way_is_better(void **state)
{
    struct example *example = *state;

    only(example, EXAMPLE_FAST, 1.42);
    example->experiment.metrics[0].direction = AB_MORE_IS_BETTER;
    free(example->experiment.metrics[0].name);
    example->experiment.metrics[0].name = memory_copy("rate");
    assert_answer(example, "fast is better: it has 1.42 times the rate of none, where more is "
                           "better (95 % interval 1.28 .. 1.56, 20 blocks)");
    example_comparison(example, EXAMPLE_FAST, 0)->verdict = AB_VERDICT_WORSE;
    example_comparison(example, EXAMPLE_FAST, 0)->ratio = 0.5;
    example_comparison(example, EXAMPLE_FAST, 0)->low = 0.4;
    example_comparison(example, EXAMPLE_FAST, 0)->high = 0.6;
    assert_answer(example, "fast is worse: it has 0.50 times the rate of none, where more is "
                           "better (95 % interval 0.40 .. 0.60, 20 blocks)");
}

static void no_difference_names_the_margin_and_its_interval(void **state)
{
    struct example *example = *state;

    only(example, EXAMPLE_SAME, 1);
    example->experiment.plan.margin = 0.01;
    assert_answer(example, "same and none: no difference larger than 1 % in step (90 % interval "
                           "0.996 .. 1.004, 20 blocks)");
}

static void not_enough_says_what_was_seen_and_what_would_do(void **state)
{
    struct example *example = *state;
    struct ab_comparison *comparison = only(example, EXAMPLE_FEW, 1 / 1.03);

    comparison->low = 1 / 1.09;
    comparison->high = 1 / 0.97;
    comparison->pairs = 12;
    example->experiment.plan.margin = 0.01;
    assert_answer(example,
                  "not enough runs to say whether few and none differ: seen was that few is 1.03 "
                  "times as fast as none (95 % interval 0.97 .. 1.09, 12 blocks); about 64 blocks "
                  "would show such a difference; about 210 blocks would exclude one larger than "
                  "1 %");
    comparison->blocks_for_ratio = NAN;
    comparison->blocks_for_margin = 1e9;
    comparison->ratio = 1.03;
    assert_answer(example,
                  "not enough runs to say whether few and none differ: seen was that few takes "
                  "1.03 times as long as none (95 % interval 0.92 .. 1.03, 12 blocks); more than a "
                  "million blocks would be needed to exclude one larger than 1 %");
}

static void too_few_blocks_have_no_interval(void **state)
{
    struct example *example = *state;
    struct ab_comparison *comparison = only(example, EXAMPLE_FEW, 1.25);

    comparison->low = comparison->high = NAN;
    comparison->blocks_for_ratio = comparison->blocks_for_margin = NAN;
    comparison->pairs = 2;
    assert_answer(example, "not enough runs to say whether few and none differ: seen was that few "
                           "takes 1.25 times as long as none (2 blocks, too few for an interval)");
    comparison->ratio = NAN;
    comparison->pairs = 0;
    assert_answer(example, "not enough runs to compare few with none: there is no block in which "
                           "both have a positive value");
}

static void broken_says_how(void **state)
{
    struct example *example = *state;

    only(example, EXAMPLE_BROKEN, 0.5);
    assert_answer(example, "broken is broken: it changes results; 7 of its 20 runs failed (3 ended "
                           "by a signal, 4 check failed), 1 of 20 of none");
    example->analysis.arms[EXAMPLE_BROKEN].outcomes[AB_CHECK_FAILED] = 0;
    assert_answer(example, "broken is broken: it fails more often; 3 of its 20 runs failed (3 "
                           "ended by a signal), 1 of 20 of none");
}

static void the_winner_stands_before_the_others(void **state)
{
    struct example *example = *state;
    char *answer = ab_answer(&example->experiment, &example->analysis);

    assert_int_equal(strncmp(answer, "fast is 1.4", 11), 0);
    assert_contains(answer, "; slow: worse (ratio 1.1");
    assert_contains(answer, "; same: no difference over 3 % (ratio ");
    assert_contains(answer, "; few: not enough runs (ratio ");
    assert_contains(answer, "; broken: broken (7 of 20 runs failed)");
    free(answer);
}

static void several_without_a_winner_say_so_first(void **state)
{
    struct example *example = *state;
    char *answer;

    example->analysis.winner = SIZE_MAX;
    example_comparison(example, EXAMPLE_FAST, 0)->verdict = AB_VERDICT_NOT_ENOUGH;
    answer = ab_answer(&example->experiment, &example->analysis);
    assert_contains(answer, "none of the 5 candidates is shown to be better than none: fast: not "
                            "enough runs (ratio ");
    free(answer);
    for (unsigned arm = EXAMPLE_FAST; arm < EXAMPLE_ARMS; arm++) {
        example_comparison(example, arm, 0)->verdict = AB_VERDICT_NO_DIFFERENCE;
    }
    answer = ab_answer(&example->experiment, &example->analysis);
    assert_contains(answer, "no candidate differs from none by more than 3 %: fast: no ");
    free(answer);
}

static void without_a_baseline_there_is_no_answer(void **state)
{
    struct example *example = *state;
    struct ab_arm_summary *baseline = &example->analysis.arms[0];

    baseline->ok = 0;
    baseline->outcomes[AB_OK] = 0;
    baseline->outcomes[AB_TIMED_OUT] = 20;
    assert_answer(example, "no answer: no run of the baseline none succeeded (20 timed out)");
}

static void an_early_end_is_part_of_the_evidence(void **state)
{
    struct example *example = *state;
    struct ab_comparison *comparison = only(example, EXAMPLE_SLOW, 2);

    comparison->decided_at_look = false;
    assert_answer(example, "slow is slower: it takes 2.00 times as long as none (95 % interval "
                           "1.80 .. 2.20, 20 blocks, between the planned looks)");
}

/* ---- Numbers ---- */

static void assert_quantity(const char *unit, double value, double deviation, const char *expected)
{
    char *copy = memory_copy(unit);
    struct ab_metric metric = {.unit = copy};
    struct ab_scale scale = ab_scale_of(&metric, value, deviation);
    struct ab_text text;

    assert_string_equal(ab_quantity(&text, &scale, value), expected);
    free(copy);
}

static void times_are_scaled_and_other_units_are_not(void **state)
{
    (void)state;
    assert_quantity("s", 12.3456, NAN, "12.35 s");
    assert_quantity("s", 0.0123456, NAN, "12.35 ms");
    assert_quantity("ms", 0.0123456, NAN, "12.35 \u00b5s");
    assert_quantity("us", 1234.56, NAN, "1.235 ms");
    assert_quantity("ns", 12, NAN, "12.00 ns");
    assert_quantity("img/s", 5171.3, NAN, "5171 img/s");
    assert_quantity("", 0.00012346, NAN, "0.0001235");
    /* two figures of the deviation, six of the value at most */
    assert_quantity("s", 12.3456789, 0.0012, "12.3457 s");
    assert_quantity("s", 12.3456789, 0.12, "12.35 s");
    assert_quantity("s", NAN, NAN, "-");
    assert_quantity("s", INFINITY, NAN, "-");
    assert_quantity("s", 0, NAN, "0.00 s");
    assert_quantity("", 1e300, NAN, "1e+300");
}

static void an_interval_that_excludes_1_never_reads_as_1(void **state)
{
    struct ab_text text;

    (void)state;
    assert_string_equal(
        ab_interval(&text, 1.0004, 1.0344, ab_ratio_decimals(1.017, 1.0004, 1.0344, 3)),
        "1.0004 .. 1.0344");
    assert_string_equal(ab_interval(&text, 0.645, 0.763, ab_ratio_decimals(0.704, 0.645, 0.763, 2)),
                        "0.65 .. 0.76");
    assert_string_equal(
        ab_interval(&text, 0.99981, 1.00021, ab_ratio_decimals(1.0000, 0.99981, 1.00021, 3)),
        "0.99981 .. 1.00021");
    assert_string_equal(ab_ratio(&text, NAN, 3), "-");
    assert_string_equal(ab_interval(&text, NAN, 1, 3), "-");
}

static void probabilities_are_never_nought(void **state)
{
    struct ab_text text;

    (void)state;
    assert_string_equal(ab_probability(&text, 0), "< 0.0001");
    assert_string_equal(ab_probability(&text, 0.00234), "0.0023");
    assert_string_equal(ab_probability(&text, 0.234), "0.234");
    assert_string_equal(ab_probability(&text, NAN), "-");
}

static void values_of_an_arm_are_those_of_its_runs_that_count(void **state)
{
    static const struct {
        unsigned arm;
        size_t count; /* of 22 runs, two of them warm-up */
    } cases[] = {{EXAMPLE_FAST, 20}, {EXAMPLE_NONE, 19}, {EXAMPLE_BROKEN, 13}};
    struct example *example = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count;
        double *values = ab_arm_values(&example->experiment, cases[i].arm, 0, &count);

        free(values);
        assert_int_equal(count, cases[i].count);
    }
}

static void what_is_a_time_is_known_by_unit_source_or_name(void **state)
{
    char time[] = "Step_Time", loss[] = "loss", seconds[] = "s", none[] = "", mega[] = "MB";
    const struct ab_metric named = {.name = time, .unit = none, .source = AB_METRIC_PATTERN};
    const struct ab_metric with_unit = {.name = loss, .unit = seconds, .source = AB_METRIC_JSON};
    const struct ab_metric wall = {.name = loss, .unit = none, .source = AB_METRIC_WALL};
    const struct ab_metric neither = {.name = loss, .unit = none, .source = AB_METRIC_JSON};
    const struct ab_metric other = {.name = time, .unit = mega, .source = AB_METRIC_JSON};
    const struct ab_metric more = {
        .name = time, .unit = seconds, .source = AB_METRIC_JSON, .direction = AB_MORE_IS_BETTER};

    (void)state;
    assert_true(ab_metric_is_time(&named));
    assert_true(ab_metric_is_time(&with_unit));
    assert_true(ab_metric_is_time(&wall));
    assert_false(ab_metric_is_time(&neither));
    assert_false(ab_metric_is_time(&other));
    assert_false(ab_metric_is_time(&more));
}

/* ---- Terminal ---- */

static void the_table_has_every_arm_and_what_goes_with_it(void **state)
{
    struct example *example = *state;
    char *text = printed(example);

    for (size_t i = 0; i < example->experiment.arm_count; i++) {
        assert_contains(text, example->experiment.arms[i].name);
    }
    assert_contains(text, "step [ms]");
    assert_contains(text, "95 % interval");
    assert_contains(text, "p (Holm)");
    assert_contains(text, "3 ended by a signal, 4 check failed");
    assert_contains(text, "Ratios are step of the arm / step of none; below 1 is better.");
    assert_contains(text, "Noise floor, none against itself (none-again): ratio ");
    assert_contains(text, "The preload's own cost, observe against none: ratio ");
    assert_contains(text, "Exploratory: ");
    assert_contains(text, "rate [img/s]");
    assert_contains(text, "Warnings\n  none: its runs fall into two groups");
    assert_contains(text, "Seed     20260304\n");
    assert_contains(text, "20 complete after 2 to warm up; 176 runs");
    assert_contains(text, "at 10 and 20 blocks; the last one at 20; alpha spent 0.05 of 0.05");
    assert_contains(text,
                    "state read in 176 of 176 runs, 1 flagged; SM clock 1,755 MHz, 61 \u00b0C, "
                    "412 W on average");
    assert_contains(text, "'--note=<script>alert('\\''1'\\'')</script> & \"more\"'");
    assert_contains(text, "\nfast is 1.4");
    assert_no_nan(text);
    free(text);
}

/* An experiment that has no number at all. */
static void empty_analysis(struct example *example)
{
    struct ab_analysis *analysis = &example->analysis;

    for (size_t i = 0; i < analysis->comparison_count; i++) {
        struct ab_comparison *comparison = &analysis->comparisons[i];

        *comparison = (struct ab_comparison){comparison->arm,
                                             comparison->metric,
                                             0,
                                             NAN,
                                             NAN,
                                             NAN,
                                             NAN,
                                             NAN,
                                             NAN,
                                             NAN,
                                             NAN,
                                             NAN,
                                             AB_VERDICT_NOT_ENOUGH,
                                             false,
                                             NAN,
                                             NAN,
                                             NAN};
    }
    for (size_t i = 0; i < example->experiment.arm_count; i++) {
        analysis->arms[i] = (struct ab_arm_summary){.failure_p = NAN,
                                                    .mean = NAN,
                                                    .median = NAN,
                                                    .deviation = NAN,
                                                    .least = NAN,
                                                    .most = NAN,
                                                    .modes = {NAN, NAN},
                                                    .drift = NAN};
    }
    for (size_t i = 0; i < example->experiment.run_count; i++) {
        struct ab_run *run = &example->experiment.runs[i];

        run->outcome = AB_INTERRUPTED;
        run->values[0].value = run->values[1].value = NAN;
        run->gpu = (struct ab_run_gpu){
            .sm_clock_mhz = NAN, .temperature_celsius = NAN, .power_watts = NAN};
    }
    analysis->look = SIZE_MAX;
    analysis->winner = SIZE_MAX;
    analysis->blocks = 0;
}

static void where_there_is_no_number_there_is_a_dash_and_the_reason(void **state)
{
    struct example *example = *state;
    char *text;

    empty_analysis(example);
    text = printed(example);
    assert_contains(text,
                    "none-again, observe, fast, slow, same, few, broken against none: no ratio of "
                    "step and rate: there is no block in which both have a positive value.");
    assert_contains(text, "none taken yet");
    assert_contains(text, "state not read (no NVML)");
    assert_contains(text, "no answer: no run of the baseline none succeeded");
    assert_no_nan(text);
    free(text);
    for (int format = AB_FORMAT_JSON; format <= AB_FORMAT_HTML; format++) {
        text = exported(example, (enum ab_format)format);
        assert_no_nan(text);
        free(text);
    }
}

static void an_experiment_without_runs_is_shown_too(void **state)
{
    struct example *example = *state;
    size_t runs = example->experiment.run_count;

    empty_analysis(example);
    example->experiment.run_count = 0;
    for (int format = AB_FORMAT_JSON; format <= AB_FORMAT_HTML; format++) {
        char *text = exported(example, (enum ab_format)format);

        assert_true(strlen(text) > 100);
        free(text);
    }
    free(printed(example));
    example->experiment.run_count = runs;
}

/* ---- Files ---- */

static void the_format_is_that_of_the_suffix(void **state)
{
    enum ab_format format;

    (void)state;
    assert_true(ab_format_of("a.json", &format));
    assert_int_equal(format, AB_FORMAT_JSON);
    assert_true(ab_format_of("/x/a.b.csv", &format));
    assert_int_equal(format, AB_FORMAT_CSV);
    assert_true(ab_format_of("a.MD", &format));
    assert_int_equal(format, AB_FORMAT_MARKDOWN);
    assert_true(ab_format_of("a.html", &format));
    assert_int_equal(format, AB_FORMAT_HTML);
    assert_false(ab_format_of("a.txt", &format));
    assert_false(ab_format_of("json", &format));
    assert_false(ab_format_of("", &format));
}

static const json_t *at(const json_t *document, const char *first, const char *second, size_t index)
{
    const json_t *array = json_object_get(json_object_get(document, first), second);

    assert_true(index < json_array_size(array));
    return json_array_get(array, index);
}

static void json_has_all_of_the_analysis(void **state)
{
    struct example *example = *state;
    char *text = exported(example, AB_FORMAT_JSON);
    json_t *document = json_loads(text, 0, NULL);
    const json_t *analysis = json_object_get(document, "analysis"), *comparison;

    assert_non_null(document);
    assert_string_equal(json_string_value(json_object_get(document, "format")), "cudapolicy ab");
    assert_int_equal(json_integer_value(json_object_get(document, "version")), 1);
    assert_int_equal(json_array_size(json_object_get(document, "runs")), 176);
    assert_string_equal(json_string_value(json_object_get(analysis, "winner")), "fast");
    assert_string_equal(json_string_value(json_object_get(analysis, "result")), "shown");
    assert_int_equal(json_array_size(json_object_get(analysis, "comparisons")), 14);
    comparison = at(document, "analysis", "comparisons", 2);
    assert_string_equal(json_string_value(json_object_get(comparison, "arm")), "fast");
    assert_string_equal(json_string_value(json_object_get(comparison, "verdict")), "better");
    assert_float_equal(json_real_value(json_object_get(comparison, "ratio")),
                       example_comparison(example, EXAMPLE_FAST, 0)->ratio, 0);
    comparison = at(document, "analysis", "arms", EXAMPLE_BROKEN);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(comparison, "outcomes"),
                                                        ab_outcome_names[AB_SIGNALLED])),
                     3);
    json_decref(document);
    free(text);
}

static void json_can_be_read_back_run_by_run(void **state)
{
    struct example *example = *state;
    char *text = exported(example, AB_FORMAT_JSON), error[256];
    json_t *document = json_loads(text, 0, NULL);
    struct ab_experiment again = {0};
    const json_t *run;
    size_t i;

    assert_true(ab_experiment_from_json(&again, json_object_get(document, "experiment"), error,
                                        sizeof error));
    json_array_foreach(json_object_get(document, "runs"), i, run)
    {
        assert_true(ab_run_from_json(&again, run, error, sizeof error));
    }
    assert_int_equal(again.run_count, example->experiment.run_count);
    for (i = 0; i < again.run_count; i++) {
        const struct ab_run *then = &example->experiment.runs[i], *now = &again.runs[i];

        assert_int_equal(now->arm, then->arm);
        assert_int_equal(now->outcome, then->outcome);
        assert_true(isnan(now->values[0].value) ? isnan(then->values[0].value)
                                                : now->values[0].value == then->values[0].value);
    }
    ab_experiment_release(&again);
    json_decref(document);
    free(text);
}

/* Reads a field and what ends it, as RFC 4180 says. */
static const char *read_field(const char *at_field, char *field, size_t size)
{
    size_t length = 0;
    bool quoted = *at_field == '"';

    at_field += quoted;
    while (*at_field != '\0') {
        if (quoted && at_field[0] == '"' && at_field[1] != '"') {
            at_field++;
            break;
        }
        if (!quoted && strchr(",\r", *at_field) != NULL) {
            break;
        }
        at_field += quoted && *at_field == '"';
        assert_true(length + 1 < size);
        field[length++] = *at_field++;
    }
    field[length] = '\0';
    return at_field;
}

static void csv_has_a_row_a_run_with_as_many_fields_each(void **state)
{
    struct example *example = *state;
    char *text = exported(example, AB_FORMAT_CSV), field[512];
    size_t fields = 0, rows = 0, expected = 0, messages = 0;

    for (const char *here = text; *here != '\0';) {
        here = read_field(here, field, sizeof field);
        fields++;
        messages +=
            strcmp(field, "the check said: <b>loss is nan</b>, \"expected\" 0.5\n=> bad") == 0;
        if (*here == ',') {
            here++;
            continue;
        }
        assert_int_equal(strncmp(here, "\r\n", 2), 0);
        here += 2;
        expected = rows == 0 ? fields : expected;
        assert_int_equal(fields, expected);
        fields = 0;
        rows++;
    }
    assert_int_equal(rows, 1 + example->experiment.run_count);
    assert_int_equal(messages, 7);
    assert_contains(text, ",step,step.values,step.warm_up,step.autocorrelation,rate,");
    free(text);
}

static void markdown_has_tables_and_no_markup_of_others(void **state)
{
    struct example *example = *state;
    char *text = exported(example, AB_FORMAT_MARKDOWN);

    assert_int_equal(strncmp(text, "**fast is 1.4", 13), 0);
    assert_contains(text, "\n| arm | role | runs | failed | step \\[ms\\] | sd | median |");
    assert_contains(text, "\n| fast | candidate | 20 | 0 | 8.6");
    assert_contains(text, " | better |\n");
    assert_contains(text, "- none-again: a value of &lt;b&gt;99 s&lt;/b&gt; is far");
    assert_contains(text, "- Seed: ` 20260304 `\n");
    assert_null(strstr(text, "\n| few | candidate | 20 | 0 | 12.30 | nan"));
    free(text);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)) != NULL; text++) {
        count++;
    }
    return count;
}

static void the_page_escapes_what_is_not_its_own(void **state)
{
    struct example *example = *state;
    char *text = exported(example, AB_FORMAT_HTML);

    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "<b>"));
    assert_contains(text, "&lt;script&gt;alert(");
    assert_contains(text, "node&lt;7&gt;");
    assert_contains(text, "/policies/&lt;b&gt;fast&lt;/b&gt;.ini");
    assert_int_equal(count_of(text, "<use class=\"dot "), example->experiment.run_count);
    assert_null(strstr(text, "http:"));
    assert_null(strstr(text, "https:"));
    free(text);
}

static void a_long_message_is_cut_between_two_characters(void **state)
{
    static const char *const expected[] = {
        "a\u20acb\nc", "a\u20acb\n...", "a\u20acb...", "a\u20ac...", "a...", "a...", "a...", "..."};

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char *text;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        html_message(stream, "a\u20acb\nc", 7 - i);
        fclose(stream);
        assert_string_equal(text, expected[i]);
        free(text);
    }
}

static void a_page_of_a_thousand_runs_is_small(void **state)
{
    struct example example;
    char *text;

    (void)state;
    example_make(&example, EXAMPLE_ARMS, 125);
    assert_int_equal(example.experiment.run_count, 1016);
    text = exported(&example, AB_FORMAT_HTML);
    assert_true(strlen(text) < 2000000);
    assert_int_equal(count_of(text, "<use class=\"dot "), 1016);
    free(text);
    example_release(&example);
}

/* ---- Axes ---- */

static void an_axis_holds_all_and_has_ticks(void **state)
{
    static const double ranges[][2] = {{0.99, 1.01}, {0.5, 2},    {0.01, 100}, {1, 1},
                                       {0.9999, 1},  {1e-9, 1e9}, {NAN, NAN},  {1.2, 1.3}};

    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        struct html_axis axis = html_axis_ratios(ranges[i][0], ranges[i][1]);

        assert_true(axis.low < 1 && axis.high > 1);
        assert_in_range(axis.tick_count, 2, HTML_TICK_LIMIT);
        assert_true(html_axis_percent(&axis, 1) > 0 && html_axis_percent(&axis, 1) < 100);
        axis = html_axis_numbers(ranges[i][0], ranges[i][1]);
        assert_in_range(axis.tick_count, 2, HTML_TICK_LIMIT);
        if (isfinite(ranges[i][0])) {
            assert_true(html_axis_holds(&axis, ranges[i][0]));
            assert_true(html_axis_holds(&axis, ranges[i][1]));
        }
    }
}

static void one_value_far_out_does_not_flatten_the_others(void **state)
{
    const double values[] = {10, 10.1, 10.2, 10.3, 10.4, 5000}, others[] = {40, 41};
    double low = NAN, high = NAN;

    (void)state;
    html_axis_widen(&low, &high, values, 6);
    assert_float_equal(low, 10, 0);
    assert_float_equal(high, 10.4, 0);
    /* but a whole arm that is elsewhere is seen */
    html_axis_widen(&low, &high, others, 2);
    assert_float_equal(high, 41, 0);
}

int main(void)
{
#define WITH_EXAMPLE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_EXAMPLE(less_time_is_times_as_fast_with_the_inverse_interval),
        WITH_EXAMPLE(more_time_is_times_as_long),
        WITH_EXAMPLE(what_is_no_time_says_which_way_is_better),
        WITH_EXAMPLE(no_difference_names_the_margin_and_its_interval),
        WITH_EXAMPLE(not_enough_says_what_was_seen_and_what_would_do),
        WITH_EXAMPLE(too_few_blocks_have_no_interval),
        WITH_EXAMPLE(broken_says_how),
        WITH_EXAMPLE(the_winner_stands_before_the_others),
        WITH_EXAMPLE(several_without_a_winner_say_so_first),
        WITH_EXAMPLE(without_a_baseline_there_is_no_answer),
        WITH_EXAMPLE(an_early_end_is_part_of_the_evidence),
        cmocka_unit_test(times_are_scaled_and_other_units_are_not),
        cmocka_unit_test(an_interval_that_excludes_1_never_reads_as_1),
        cmocka_unit_test(probabilities_are_never_nought),
        WITH_EXAMPLE(values_of_an_arm_are_those_of_its_runs_that_count),
        cmocka_unit_test(what_is_a_time_is_known_by_unit_source_or_name),
        WITH_EXAMPLE(the_table_has_every_arm_and_what_goes_with_it),
        WITH_EXAMPLE(where_there_is_no_number_there_is_a_dash_and_the_reason),
        WITH_EXAMPLE(an_experiment_without_runs_is_shown_too),
        cmocka_unit_test(the_format_is_that_of_the_suffix),
        WITH_EXAMPLE(json_has_all_of_the_analysis),
        WITH_EXAMPLE(json_can_be_read_back_run_by_run),
        WITH_EXAMPLE(csv_has_a_row_a_run_with_as_many_fields_each),
        WITH_EXAMPLE(markdown_has_tables_and_no_markup_of_others),
        WITH_EXAMPLE(the_page_escapes_what_is_not_its_own),
        cmocka_unit_test(a_long_message_is_cut_between_two_characters),
        cmocka_unit_test(a_page_of_a_thousand_runs_is_small),
        cmocka_unit_test(an_axis_holds_all_and_has_ticks),
        cmocka_unit_test(one_value_far_out_does_not_flatten_the_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
