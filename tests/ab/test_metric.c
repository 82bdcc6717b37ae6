/* SPDX-License-Identifier: Apache-2.0 */

/* Metrics: options, what a regular expression finds, warm-up, the one number of a run. */

#include "metric_support.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>

#include "metric.h"

static char error[1024];

static struct ab_run_files files(void)
{
    return (struct ab_run_files){
        .seconds = 12.5, .output = output, .errors = errors, .folder = folder, .arm = "fast"};
}

static struct ab_metric pattern(const char *text)
{
    struct ab_metric metric;

    if (!ab_metric_pattern(&metric, text, error, sizeof error)) {
        fail_msg("%s", error);
    }
    return metric;
}

static struct ab_run_value read_value(struct ab_metric *metric)
{
    struct ab_run_files run = files();
    struct ab_run_value value;

    if (!ab_metric_read(metric, &run, &value, error, sizeof error)) {
        fail_msg("%s", error);
    }
    ab_metric_release(metric);
    return value;
}

static void assert_unreadable(struct ab_metric *metric, const char *part)
{
    struct ab_run_files run = files();
    struct ab_run_value value;

    assert_false(ab_metric_read(metric, &run, &value, error, sizeof error));
    assert_true(isnan(value.value) && isnan(value.autocorrelation));
    assert_int_equal(value.count + value.warm_up, 0);
    assert_contains(error, part);
    ab_metric_release(metric);
}

static double value_of(const char *option, const char *printed)
{
    struct ab_metric metric = pattern(option);

    metric.skip = 0;
    write_text(output, printed);
    return read_value(&metric).value;
}

/* ---- Options -------------------------------------------------------------------------------- */

static void options_give_name_unit_and_direction(void **state)
{
    struct ab_metric metric = pattern("time=t=([0-9]+)");

    (void)state;
    assert_string_equal(metric.name, "time");
    assert_string_equal(metric.unit, "");
    assert_string_equal(metric.definition, "t=([0-9]+)");
    assert_int_equal(metric.direction, AB_LESS_IS_BETTER);
    assert_int_equal(metric.source, AB_METRIC_PATTERN);
    assert_int_equal(metric.across, AB_ACROSS_MAX);
    assert_int_equal(metric.skip, -1);
    assert_false(metric.primary);
    ab_metric_release(&metric);
    metric = pattern("+img-per.s_1[img/s]=(.*)");
    assert_string_equal(metric.name, "img-per.s_1");
    assert_string_equal(metric.unit, "img/s");
    assert_int_equal(metric.direction, AB_MORE_IS_BETTER);
    assert_int_equal(metric.across, AB_ACROSS_MIN); /* the slowest rank */
    ab_metric_release(&metric);
}

static void assert_refused(const char *text, const char *part)
{
    struct ab_metric metric;

    error[0] = '\0';
    if (ab_metric_pattern(&metric, text, error, sizeof error)) {
        fail_msg("'%s' was taken", text);
    }
    assert_contains(error, part);
}

static void wrong_options_are_refused_with_their_place(void **state)
{
    (void)state;
    assert_refused("", "NAME=");
    assert_refused("=x", "NAME=");
    assert_refused("+=x", "NAME=");
    assert_refused("a b=x", "at offset 1");
    assert_refused("time", "at offset 4");
    assert_refused("time[=x", "a unit is");
    assert_refused("time[]=x", "a unit is");
    assert_refused("time[0123456789012345678901234567890123]=x", "a unit is");
    assert_refused("time[s]x=x", "at offset 7");
    assert_refused("time=", "empty");
    assert_refused("time\x1b=x", "time\\x1b");
    assert_refused("0123456789012345678901234567890123456789012345678901234567890123456789=x",
                   "at most 64");
}

static void wrong_expressions_are_refused_with_their_place(void **state)
{
    (void)state;
    assert_refused("time=t=([0-9]+",
                   "'t=([0-9]+' is wrong at offset 9, behind 't=([0-9]+': missing");
    assert_refused("time=*a", "quantifier");
    assert_refused("time=a\\", "\\ at end");
    assert_refused("time=(?<value>a)|(?J)(?<value>b)", "\"value\" more than once");
    assert_refused("time=\xff", "UTF-8");
}

static void words_for_ranks_are_known(void **state)
{
    enum ab_across across = AB_ACROSS_MAX;

    (void)state;
    assert_true(ab_across_parse("median", &across));
    assert_int_equal(across, AB_ACROSS_MEDIAN);
    assert_true(ab_across_parse("sum", &across));
    assert_int_equal(across, AB_ACROSS_SUM);
    assert_false(ab_across_parse("", &across));
    assert_false(ab_across_parse("maximum", &across));
}

/* ---- Patterns ------------------------------------------------------------------------------- */

static void the_number_is_the_group_called_value_or_the_first_or_all(void **state)
{
    (void)state;
    assert_true(value_of("t=[0-9.]+", "x 7.5 y\n") == 7.5);
    assert_true(value_of("t=step ([0-9]+) took ([0-9.]+)", "step 3 took 7.5\n") == 3);
    assert_true(value_of("t=step ([0-9]+) took (?<value>[0-9.]+)", "step 3 took 7.5\n") == 7.5);
    assert_true(value_of("t=\\[(?<rank>\\d+)\\] (\\S+)", "[1] 7.5\n") == 7.5);
    assert_true(value_of("t=a (\\d+)|b (\\d+)", "b 4\n") == 4);
    assert_true(value_of("t=took \\K[0-9.e-]+", "took 5e-3 s\n") == 0.005);
    assert_true(value_of("t=total ([0-9,.]+)", "total 1,234.5 ms") == 1234.5);
}

static void standard_error_is_read_where_standard_output_has_no_value(void **state)
{
    (void)state;
    write_text(errors, "t=9\n");
    assert_true(value_of("t=t=(\\d+)", "t=3\n") == 3);
    assert_true(value_of("t=t=(\\d+)", "nothing\n") == 9);
    assert_true(value_of("t=t=(\\S+)", "t=nan\n") == 9);
}

static void progress_bars_and_colours_do_not_matter(void **state)
{
    (void)state;
    assert_true(value_of("t=^(\\d+) ms$", "0%\r50%\r\x1b[2K\x1b[32m12\x1b[0m ms\rdone") == 12);
}

static void the_first_match_of_each_line_counts(void **state)
{
    struct ab_metric metric = pattern("t=t=(\\d+)");
    struct ab_run_value value;

    (void)state;
    metric.skip = 0;
    write_text(output, "t=1 t=100\nt=2\nt=6");
    value = read_value(&metric);
    assert_true(value.value == 2);
    assert_int_equal(value.count, 3);
    assert_int_equal(value.warm_up, 0);
}

static void what_is_no_text_is_passed_over(void **state)
{
    struct ab_metric metric = pattern("t=t=(\\d+)");
    static const char bytes[] = "\xff\xfe t=1 \x80\nt=2\0t\n\xc3t=3\n\0\0\0\n";

    (void)state;
    metric.skip = 0;
    write_bytes(output, bytes, sizeof bytes - 1);
    assert_int_equal(read_value(&metric).count, 3);
}

static void nan_and_inf_are_no_values(void **state)
{
    struct ab_metric metric = pattern("t=loss (\\S+)");

    (void)state;
    write_text(output, "loss nan\nloss 2\nloss inf\nloss -\n");
    assert_int_equal(read_value(&metric).count, 1);
    metric = pattern("t=loss (\\S+)");
    write_text(output, "loss nan\n");
    assert_unreadable(&metric, "'loss (\\S+)' matched 1 lines, but 'nan' is not a number");
}

static void without_a_match_the_reason_names_the_pattern(void **state)
{
    struct ab_metric metric = pattern("t=step (\\d+)");

    (void)state;
    assert_unreadable(&metric, "no line matched 'step (\\d+)': the command printed nothing");
    metric = pattern("t=step (\\d+)");
    write_text(output, "one\ntwo\n");
    assert_unreadable(&metric, "no line matched 'step (\\d+)', of 2 on standard output");
    metric = pattern("t=time=[0-9]+");
    write_text(output, "time=5\n");
    assert_unreadable(&metric, "'time=5' is not a number");
}

static void an_expression_that_backtracks_without_end_is_an_error(void **state)
{
    struct ab_metric metric = pattern("t=^(a+)+$");
    char line[200];

    (void)state;
    memset(line, 'a', sizeof line);
    memcpy(line + sizeof line - 2, "!", 2);
    write_text(output, line);
    assert_unreadable(&metric, "'^(a+)+$' takes too long on a line of 199 bytes");
    assert_contains(error, ", line 1 of ");
}

static void an_expression_that_nests_without_end_is_an_error(void **state)
{
    struct ab_metric metric = pattern("t=(?<x>a(?&x)?b|(?&x)?c)");
    char line[16000];

    (void)state;
    memset(line, 'a', sizeof line);
    line[sizeof line - 1] = '\0';
    write_text(output, line);
    assert_unreadable(&metric, "takes too long");
}

static void values_beyond_a_million_are_not_kept(void **state)
{
    struct ab_metric metric = pattern("t=\\d");
    FILE *file = fopen(output, "we");

    (void)state;
    metric.skip = 0;
    for (int i = 0; i < 1000100; i++) {
        fputs(i < 1000000 ? "1\n" : "9\n", file);
    }
    fclose(file);
    assert_int_equal(read_value(&metric).count, 1000000);
}

/* ---- Ranks ---------------------------------------------------------------------------------- */

static double across(const char *word)
{
    struct ab_metric metric = pattern("t=rank (?<rank>\\d+) t=(?<value>\\d+)");

    metric.skip = 0;
    assert_true(ab_across_parse(word, &metric.across));
    return read_value(&metric).value;
}

static void ranks_are_summarised_before_they_become_one(void **state)
{
    (void)state;
    /* medians 2, 8, 5 */
    write_text(output, "rank 0 t=1\nrank 1 t=8\nrank 0 t=2\nrank 2 t=5\nrank 1 t=1\nrank 0 t=90\n"
                       "rank 1 t=9\n");
    assert_true(across("max") == 8);
    assert_true(across("min") == 2);
    assert_true(across("mean") == 5);
    assert_true(across("median") == 5);
    assert_true(across("sum") == 15);
}

static void warm_up_is_cut_from_every_rank(void **state)
{
    struct ab_metric metric = pattern("t=r(?<rank>\\d+) (?<value>\\d+)");
    struct ab_run_value value;

    (void)state;
    metric.skip = 1;
    write_text(output, "r0 100\nr1 200\nr0 1\nr1 2\nr0 1\nr1 2\n");
    value = read_value(&metric);
    assert_true(value.value == 2);
    assert_int_equal(value.count, 4);
    assert_int_equal(value.warm_up, 2);
    metric = pattern("t=r(?<rank>\\d+) (?<value>\\d+)");
    metric.skip = 3;
    assert_unreadable(&metric, "all 3 values of a rank are warm-up: 3 are skipped");
    metric = pattern("t=r(?<rank>\\d+) (?<value>\\d+)");
    metric.skip = 1;
    write_text(output, "r0 1\nr0 2\nr1 3\n");
    assert_unreadable(&metric, "all 1 values of a rank are warm-up: 1 are skipped");
}

static void autocorrelation_is_that_of_the_values_that_count(void **state)
{
    struct ab_metric metric = pattern("t=\\d+");

    (void)state;
    metric.skip = 1;
    write_text(output, "50\n1\n2\n1\n2\n1\n2\n1\n2\n");
    assert_true(read_value(&metric).autocorrelation < -0.8);
    metric = pattern("t=\\d+");
    write_text(output, "1\n2\n");
    assert_true(isnan(read_value(&metric).autocorrelation));
    metric = pattern("t=\\d+");
    write_text(output, "3\n3\n3\n3\n");
    assert_true(isnan(read_value(&metric).autocorrelation));
}

/* ---- Warm-up -------------------------------------------------------------------------------- */

static void warm_up_is_found_where_values_settle(void **state)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    double values[300];

    (void)state;
    gsl_rng_set(random, 7);
    for (size_t i = 0; i < 300; i++) {
        values[i] = (i < 40 ? 20 - (double)i / 4 : 10) + gsl_ran_gaussian(random, 0.2);
    }
    assert_in_range(ab_warm_up_find(values, 300), 30, 60);
    gsl_rng_free(random);
}

static void warm_up_is_found_in_few_values(void **state)
{
    static const double values[] = {90, 40, 11, 10, 10, 11, 10, 11, 10, 10, 11, 10};
    static const double same[50] = {0};

    (void)state;
    assert_int_equal(ab_warm_up_find(values, 12), 2);
    assert_int_equal(ab_warm_up_find(values, 9), 0); /* too few to tell */
    assert_int_equal(ab_warm_up_find(same, 50), 0);
    assert_int_equal(ab_warm_up_find(same, 0), 0);
}

static void of_stationary_values_most_are_kept(void **state)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    double values[200];
    size_t cut = 0;

    (void)state;
    gsl_rng_set(random, 3);
    for (size_t run = 0; run < 200; run++) {
        for (size_t i = 0; i < 200; i++) {
            values[i] = gsl_ran_gaussian(random, 1);
        }
        cut += ab_warm_up_find(values, 200);
    }
    assert_in_range(cut, 0, 200 * 200 / 50);
    gsl_rng_free(random);
}

static void warm_up_is_never_more_than_half(void **state)
{
    double values[200];

    (void)state;
    for (size_t count = 10; count <= 200; count++) {
        for (size_t i = 0; i < count; i++) {
            values[i] = (double)(count - i); /* never settles */
        }
        assert_true(ab_warm_up_find(values, count) <= count / 2);
    }
}

static void a_warm_up_that_was_found_is_told(void **state)
{
    struct ab_metric metric = pattern("t=\\d+");
    struct ab_run_value value;

    (void)state;
    write_text(output, "90\n40\n11\n10\n10\n11\n10\n11\n10\n10\n11\n10\n");
    value = read_value(&metric);
    assert_int_equal(value.warm_up, 2);
    assert_int_equal(value.count, 10);
    assert_true(value.value == 10);
}

static void wall_time_is_the_time_of_the_run(void **state)
{
    struct ab_metric metric;

    (void)state;
    ab_metric_wall(&metric);
    assert_string_equal(metric.name, "wall");
    assert_string_equal(metric.unit, "s");
    assert_true(read_value(&metric).value == 12.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_give_name_unit_and_direction),
        cmocka_unit_test(wrong_options_are_refused_with_their_place),
        cmocka_unit_test(wrong_expressions_are_refused_with_their_place),
        cmocka_unit_test(words_for_ranks_are_known),
        in_its_folder(the_number_is_the_group_called_value_or_the_first_or_all),
        in_its_folder(standard_error_is_read_where_standard_output_has_no_value),
        in_its_folder(progress_bars_and_colours_do_not_matter),
        in_its_folder(the_first_match_of_each_line_counts),
        in_its_folder(what_is_no_text_is_passed_over),
        in_its_folder(nan_and_inf_are_no_values),
        in_its_folder(without_a_match_the_reason_names_the_pattern),
        in_its_folder(an_expression_that_backtracks_without_end_is_an_error),
        in_its_folder(an_expression_that_nests_without_end_is_an_error),
        in_its_folder(values_beyond_a_million_are_not_kept),
        in_its_folder(ranks_are_summarised_before_they_become_one),
        in_its_folder(warm_up_is_cut_from_every_rank),
        in_its_folder(autocorrelation_is_that_of_the_values_that_count),
        cmocka_unit_test(warm_up_is_found_where_values_settle),
        cmocka_unit_test(warm_up_is_found_in_few_values),
        cmocka_unit_test(of_stationary_values_most_are_kept),
        cmocka_unit_test(warm_up_is_never_more_than_half),
        in_its_folder(a_warm_up_that_was_found_is_told),
        in_its_folder(wall_time_is_the_time_of_the_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
