/* SPDX-License-Identifier: Apache-2.0 */

/* Steps: what counters tell while their process runs. */

#include "test_report_support.h"

#include <pthread.h>

#include "metric.h"
#include "report/layout.h"
#include "steps.h"

/* ---- A program with counters that does what it is told ------------------------------------- */

enum { ENTRY_GRAPH_LAUNCH = 1, ENTRY_OTHER, ENTRY_GRAPH_LAUNCH_PTSZ };

enum action {
    ACT_KERNEL, /* the kernel with this number is the one that is launched from now on */
    ACT_LAUNCH,
    ACT_LAUNCH_IN_THREAD,
    ACT_CAPTURE,
    ACT_REPLAY,
    ACT_LAUNCH_GRAPH,
    ACT_LAUNCH_GRAPH_IN_THREAD,
    ACT_OTHER_CALL,
    ACT_FINISH,
};

struct order {
    enum action action;
    uint32_t number;
};

struct program {
    pid_t pid;
    int orders, answers;
};

static const char *const kernels[] = {"_Z5outerv", "_ZN4step7forwardIfEEvPT_", "gemm_128",
                                      "_ZN4step8backwardEv"};

static uint32_t current_cell;

static void start_counting(const char *path)
{
    static const char *const settings[] = {"mem_sync_domain", "cluster_dim"};
    static const char *const entries[] = {"cuLaunchKernel", "cuGraphLaunch", "cuMemcpy",
                                          "cuGraphLaunch_ptsz"};
    static struct report_start start = {.setting_names = settings,
                                        .setting_count = SETTING_COUNT,
                                        .entry_names = entries,
                                        .entry_count = 4};
    start.path = path;
    report_start(&start);
}

static void *launch_in_thread(void *number)
{
    report_thread_shard();
    report_count_launch(current_cell, REPORT_LAUNCH_EAGER, *(uint32_t *)number);
    return NULL;
}

/* Of a thread that launches no kernel: it has no counters of its own. */
static void *launch_graph_in_thread(void *entry)
{
    report_count_entry(*(uint32_t *)entry);
    return NULL;
}

static void obey(const struct order *order)
{
    uint32_t number = order->number;
    pthread_t thread;

    switch (order->action) {
    case ACT_KERNEL:
        if (number < 4) {
            current_cell = enter_cell_unmatched(enter_kernel(kernels[number]));
        } else {
            char name[32];

            snprintf(name, sizeof name, "filler_%u", number);
            current_cell = enter_cell_unmatched(enter_kernel(name));
        }
        break;
    case ACT_LAUNCH:
        report_count_launch(current_cell, REPORT_LAUNCH_EAGER, number);
        break;
    case ACT_LAUNCH_IN_THREAD:
        expect(pthread_create(&thread, NULL, launch_in_thread, &number) == 0);
        pthread_join(thread, NULL);
        break;
    case ACT_CAPTURE:
        report_count_launch(current_cell, REPORT_LAUNCH_CAPTURED, number);
        break;
    case ACT_REPLAY:
        report_count_launch(current_cell, REPORT_LAUNCH_REPLAYED, number);
        break;
    case ACT_LAUNCH_GRAPH:
        report_count_entry(number);
        break;
    case ACT_LAUNCH_GRAPH_IN_THREAD:
        expect(pthread_create(&thread, NULL, launch_graph_in_thread, &number) == 0);
        pthread_join(thread, NULL);
        break;
    case ACT_OTHER_CALL:
        report_count_entry(ENTRY_OTHER);
        break;
    case ACT_FINISH:
        report_finish();
        break;
    }
}

static void serve(const char *path, int orders, int answers)
{
    struct order order;

    alarm(110);
    start_counting(path);
    report_thread_shard();
    expect(write(answers, "", 1) == 1);
    while (read(orders, &order, sizeof order) == sizeof order) {
        obey(&order);
        expect(write(answers, "", 1) == 1);
    }
    _exit(0);
}

static void await(const struct program *program)
{
    char answer;

    assert_int_equal(read(program->answers, &answer, 1), 1);
}

static struct program start_program(const char *name)
{
    struct program program;
    int orders[2], answers[2];

    assert_int_equal(pipe(orders), 0);
    assert_int_equal(pipe(answers), 0);
    fflush(NULL);
    program.pid = fork();
    if (program.pid == 0) {
        close(orders[1]);
        serve(in_folder(name), orders[0], answers[1]);
    }
    assert_true(program.pid > 0);
    close(orders[0]);
    close(answers[1]);
    program.orders = orders[1];
    program.answers = answers[0];
    await(&program);
    return program;
}

static void tell(const struct program *program, enum action action, uint32_t number)
{
    struct order order = {action, number};

    assert_int_equal(write(program->orders, &order, sizeof order), sizeof order);
    await(program);
}

static void end_program(const struct program *program)
{
    int status;

    close(program->orders);
    close(program->answers);
    assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- Helpers -------------------------------------------------------------------------------- */

/* Several readings: new files are not looked for at each. */
static void sample(struct ab_steps *steps)
{
    for (int i = 0; i < 5; i++) {
        ab_steps_sample(steps);
    }
}

static int64_t newest(const struct ab_steps *steps, size_t process)
{
    const struct ab_step_process *one = &steps->processes[process];

    return one->sample_count == 0 ? 0 : one->samples[one->sample_count - 1].count;
}

/* ---- Sampling ------------------------------------------------------------------------------- */

static void test_kernels_that_match_are_counted_eager_and_replayed(void **state)
{
    (void)state;
    struct program program = start_program("report.json");
    struct ab_steps steps;

    ab_steps_start(&steps, folder, "step::*");
    tell(&program, ACT_KERNEL, 0);
    tell(&program, ACT_LAUNCH, 100);
    sample(&steps);
    assert_int_equal(steps.process_count, 1);
    assert_int_equal(steps.processes[0].pid, program.pid);
    assert_int_equal(steps.processes[0].sample_count, 0);
    tell(&program, ACT_KERNEL, 1);
    tell(&program, ACT_LAUNCH, 3);
    sample(&steps);
    assert_int_equal(newest(&steps, 0), 3);
    tell(&program, ACT_CAPTURE, 50);
    sample(&steps);
    assert_int_equal(newest(&steps, 0), 3);
    tell(&program, ACT_REPLAY, 4);
    tell(&program, ACT_KERNEL, 3);
    tell(&program, ACT_LAUNCH, 1);
    sample(&steps);
    assert_int_equal(newest(&steps, 0), 8);
    assert_int_equal(steps.processes[0].sample_count, 2); /* one a change */
    ab_steps_release(&steps);
    end_program(&program);
}

static void test_names_match_as_in_a_policy_and_mangled_ones_as_such(void **state)
{
    static const struct {
        const char *glob;
        int64_t count;
    } cases[] = {{"step::forward", 1}, {"forward", 1},   {"_ZN4step7*", 1}, {"gemm_*", 1}, {"*", 4},
                 {"nothing*", 0},      {"*<float>*", 0}, {"outer", 1}};

    (void)state;
    struct program program = start_program("report.json");

    for (uint32_t i = 0; i < 4; i++) {
        tell(&program, ACT_KERNEL, i);
        tell(&program, ACT_LAUNCH, 1);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ab_steps steps;

        ab_steps_start(&steps, folder, cases[i].glob);
        sample(&steps);
        assert_int_equal(newest(&steps, 0), cases[i].count);
        ab_steps_release(&steps);
    }
    end_program(&program);
}

static void test_graph_launches_are_counted_without_a_kernel(void **state)
{
    (void)state;
    struct program program = start_program("report.json");
    struct ab_steps steps;

    ab_steps_start(&steps, folder, NULL);
    tell(&program, ACT_KERNEL, 1);
    tell(&program, ACT_LAUNCH, 7);
    tell(&program, ACT_OTHER_CALL, 0);
    sample(&steps);
    assert_int_equal(newest(&steps, 0), 0);
    tell(&program, ACT_LAUNCH_GRAPH, ENTRY_GRAPH_LAUNCH);
    tell(&program, ACT_LAUNCH_GRAPH, ENTRY_GRAPH_LAUNCH);
    tell(&program, ACT_LAUNCH_GRAPH, ENTRY_GRAPH_LAUNCH_PTSZ);
    sample(&steps);
    assert_int_equal(newest(&steps, 0), 3);
    tell(&program, ACT_LAUNCH_GRAPH_IN_THREAD, ENTRY_GRAPH_LAUNCH);
    sample(&steps);
    assert_int_equal(newest(&steps, 0), 4);
    ab_steps_release(&steps);
    end_program(&program);
}

static void test_threads_and_kernels_that_come_later_are_seen(void **state)
{
    (void)state;
    struct program program = start_program("report.json");
    struct ab_steps steps;

    ab_steps_start(&steps, folder, "step::forward");
    tell(&program, ACT_KERNEL, 1);
    tell(&program, ACT_LAUNCH, 1);
    sample(&steps);
    assert_int_equal(newest(&steps, 0), 1);
    for (uint32_t i = 10; i < 400; i++) {
        tell(&program, ACT_KERNEL, i);
    }
    tell(&program, ACT_KERNEL, 1);
    tell(&program, ACT_LAUNCH_IN_THREAD, 20);
    sample(&steps);
    assert_int_equal(newest(&steps, 0), 21);
    ab_steps_release(&steps);
    end_program(&program);
}

static void test_last_counts_are_read_after_a_process_ended_in_good_order(void **state)
{
    (void)state;
    struct program program = start_program("report.json");
    struct ab_steps steps;

    ab_steps_start(&steps, folder, "gemm_128");
    tell(&program, ACT_KERNEL, 2);
    tell(&program, ACT_LAUNCH, 1);
    sample(&steps);
    tell(&program, ACT_LAUNCH, 1);
    tell(&program, ACT_FINISH, 0);
    assert_false(exists("report.json.counters"));
    sample(&steps);
    assert_int_equal(newest(&steps, 0), 2);
    assert_null(steps.processes[0].watch);
    end_program(&program);
    /* another process under the same name is another one */
    unlink(in_folder("report.json"));
    program = start_program("report.json");
    tell(&program, ACT_KERNEL, 2);
    tell(&program, ACT_LAUNCH, 5);
    sample(&steps);
    assert_int_equal(steps.process_count, 2);
    assert_int_equal(newest(&steps, 0), 2);
    assert_int_equal(newest(&steps, 1), 5);
    ab_steps_release(&steps);
    end_program(&program);
}

static void test_every_process_of_a_job_is_watched(void **state)
{
    (void)state;
    struct program one = start_program("report.json"), other = start_program("report.json");
    struct ab_steps steps;

    ab_steps_start(&steps, folder, "gemm_128");
    tell(&one, ACT_KERNEL, 2);
    tell(&other, ACT_KERNEL, 2);
    tell(&one, ACT_LAUNCH, 1);
    tell(&other, ACT_LAUNCH, 2);
    sample(&steps);
    assert_int_equal(steps.process_count, 2);
    assert_int_equal(newest(&steps, 0) + newest(&steps, 1), 3);
    ab_steps_release(&steps);
    end_program(&other); /* has the pipes of the one before */
    end_program(&one);
}

static void test_of_very_many_changes_the_first_and_the_last_stay(void **state)
{
    (void)state;
    struct program program = start_program("report.json");
    struct ab_steps steps;
    const struct ab_step_process *process;
    enum { CHANGES = 40001 };

    ab_steps_start(&steps, folder, "gemm_128");
    tell(&program, ACT_KERNEL, 2);
    for (int i = 0; i < CHANGES; i++) {
        tell(&program, ACT_LAUNCH, 1);
        ab_steps_sample(&steps);
    }
    process = &steps.processes[0];
    assert_in_range(process->sample_count, 8192, 16384);
    assert_in_range(process->samples[0].count, 1, 5);
    assert_int_equal(newest(&steps, 0), CHANGES);
    for (size_t i = 1; i + 1 < process->sample_count; i++) {
        assert_int_equal(process->samples[i].count - process->samples[i - 1].count, 4);
        assert_true(process->samples[i].time >= process->samples[i - 1].time);
    }
    ab_steps_release(&steps);
    end_program(&program);
}

/* ---- Files that are not what they should be ------------------------------------------------- */

static void test_a_file_that_is_cut_short_tells_nothing_more(void **state)
{
    static const off_t sizes[] = {REPORT_OFFSET_SHARDS + 100, REPORT_OFFSET_CELLS, 100, 0};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct program program = start_program("report.json");
        struct ab_steps steps;

        ab_steps_start(&steps, folder, "gemm_128");
        tell(&program, ACT_KERNEL, 2);
        tell(&program, ACT_LAUNCH, 3);
        sample(&steps);
        end_program(&program);
        assert_int_equal(truncate(in_folder("report.json.counters"), sizes[i]), 0);
        sample(&steps);
        assert_int_equal(newest(&steps, 0), 3);
        assert_int_equal(steps.processes[0].sample_count, 1);
        ab_steps_release(&steps);
        ab_steps_start(&steps, folder, "gemm_128");
        sample(&steps);
        assert_true(steps.process_count == 0 || newest(&steps, 0) == 0);
        ab_steps_release(&steps);
        unlink(in_folder("report.json.counters"));
    }
}

static void put(const char *name, off_t offset, const void *bytes, size_t size)
{
    int descriptor = open(in_folder(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(descriptor >= 0);
    assert_int_equal(pwrite(descriptor, bytes, size, offset), size);
    close(descriptor);
}

static void assert_problem(const char *part)
{
    struct ab_steps steps;
    struct ab_metric metric;
    struct ab_run_value value;
    struct ab_run_files files = {.steps = &steps};
    char error[512];

    ab_steps_start(&steps, folder, "gemm_128");
    sample(&steps);
    assert_non_null(strstr(steps.problem, part));
    ab_metric_step(&metric, "gemm_128");
    assert_false(ab_metric_read(&metric, &files, &value, error, sizeof error));
    assert_non_null(strstr(error, part));
    ab_metric_release(&metric);
    ab_steps_release(&steps);
}

static void test_files_of_other_layouts_are_said_to_be(void **state)
{
    static const uint32_t version = REPORT_LAYOUT_VERSION + 1;
    static const uint32_t vocabulary = 12345;
    char said[64];

    (void)state;
    struct program program = start_program("report.json");

    tell(&program, ACT_KERNEL, 2);
    tell(&program, ACT_LAUNCH, 3);
    end_program(&program);
    put("report.json.counters", offsetof(struct report_layout, vocabulary), &vocabulary,
        sizeof vocabulary);
    assert_problem("made by another build");
    put("report.json.counters", offsetof(struct report_layout, version), &version, sizeof version);
    snprintf(said, sizeof said, "layout version %u, this is version %u", version,
             (unsigned)REPORT_LAYOUT_VERSION);
    assert_problem(said);
    put("report.json.counters", 0, "garbage!", 8);
    assert_problem("not a counters' file");
}

static void test_files_that_are_being_made_are_tried_again(void **state)
{
    (void)state;
    struct program program = start_program("report.json");
    struct ab_steps steps;
    uint64_t magic, none = 0;
    int descriptor;

    tell(&program, ACT_KERNEL, 2);
    tell(&program, ACT_LAUNCH, 3);
    descriptor = open(in_folder("report.json.counters"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(descriptor, &magic, sizeof magic, 0), sizeof magic);
    close(descriptor);
    put("report.json.counters", 0, &none, sizeof none);
    put("empty.counters", 0, "", 0);
    ab_steps_start(&steps, folder, "gemm_128");
    sample(&steps);
    assert_int_equal(steps.process_count, 0);
    put("report.json.counters", 0, &magic, sizeof magic);
    sample(&steps);
    assert_int_equal(newest(&steps, 0), 3);
    ab_steps_release(&steps);
    end_program(&program);
}

static void test_counts_that_lie_lead_nowhere(void **state)
{
    static const struct report_counts lies = {.strings = UINT64_MAX,
                                              .kernels = UINT32_MAX,
                                              .cells = UINT32_MAX,
                                              .entries = UINT32_MAX,
                                              .shards = UINT32_MAX};
    uint32_t far = UINT32_MAX;

    (void)state;
    struct program program = start_program("report.json");
    struct ab_steps steps;

    tell(&program, ACT_KERNEL, 2);
    tell(&program, ACT_LAUNCH, 3);
    end_program(&program);
    put("report.json.counters", offsetof(struct report_header, counts), &lies, sizeof lies);
    ab_steps_start(&steps, folder, "*");
    ab_steps_sample(&steps);
    assert_int_equal(newest(&steps, 0), 3);
    ab_steps_release(&steps);
    put("report.json.counters", offsetof(struct report_header, entry_names), &far, sizeof far);
    put("report.json.counters", REPORT_OFFSET_KERNELS, &far, sizeof far);
    put("report.json.counters", REPORT_OFFSET_CELLS + 5 * sizeof(struct report_cell_row), &far,
        sizeof far);
    ab_steps_start(&steps, folder, "gemm_128");
    ab_steps_sample(&steps);
    assert_int_equal(newest(&steps, 0), 3);
    ab_steps_release(&steps);
    ab_steps_start(&steps, folder, NULL);
    ab_steps_sample(&steps);
    assert_int_equal(newest(&steps, 0), 0);
    ab_steps_release(&steps);
}

static void test_other_files_and_folders_are_passed_over(void **state)
{
    struct ab_steps steps;

    (void)state;
    put("report.json", 0, "{}", 2);
    assert_int_equal(mkfifo(in_folder("pipe.counters"), 0600), 0);
    assert_int_equal(symlink("report.json", in_folder("link.counters")), 0);
    ab_steps_start(&steps, folder, NULL);
    sample(&steps);
    assert_int_equal(steps.process_count, 0);
    ab_steps_release(&steps);
    ab_steps_start(&steps, in_folder("missing"), NULL);
    sample(&steps);
    assert_int_equal(steps.process_count, 0);
    ab_steps_release(&steps);
}

#define in_its_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_its_folder(test_kernels_that_match_are_counted_eager_and_replayed),
        in_its_folder(test_names_match_as_in_a_policy_and_mangled_ones_as_such),
        in_its_folder(test_graph_launches_are_counted_without_a_kernel),
        in_its_folder(test_threads_and_kernels_that_come_later_are_seen),
        in_its_folder(test_last_counts_are_read_after_a_process_ended_in_good_order),
        in_its_folder(test_every_process_of_a_job_is_watched),
        in_its_folder(test_of_very_many_changes_the_first_and_the_last_stay),
        in_its_folder(test_a_file_that_is_cut_short_tells_nothing_more),
        in_its_folder(test_files_of_other_layouts_are_said_to_be),
        in_its_folder(test_files_that_are_being_made_are_tried_again),
        in_its_folder(test_counts_that_lie_lead_nowhere),
        in_its_folder(test_other_files_and_folders_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
