/* SPDX-License-Identifier: Apache-2.0 */

/* What is read of the GPUs during a run, against a library that stands in for NVML. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiment.h"
#include "gpu_process.h"
#include "gpu_state.h"
#include "nvml_double.h"
#include "nvml_library.h"
#include "skip.h"

#if defined(__has_include)
#if __has_include(<nvml.h>)
#include <nvml.h>

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)
SAME(NVML_LIBRARY_SUCCESS, NVML_SUCCESS);
SAME(NVML_LIBRARY_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(NVML_LIBRARY_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME(NVML_LIBRARY_CLOCK_SM, NVML_CLOCK_SM);
SAME(NVML_LIBRARY_TEMPERATURE_GPU, NVML_TEMPERATURE_GPU);
SAME(NVML_LIBRARY_GPU_IDLE, nvmlClocksThrottleReasonGpuIdle);
SAME(NVML_LIBRARY_APPLICATIONS_CLOCKS, nvmlClocksThrottleReasonApplicationsClocksSetting);
SAME(NVML_LIBRARY_SW_POWER_CAP, nvmlClocksThrottleReasonSwPowerCap);
SAME(NVML_LIBRARY_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
SAME(NVML_LIBRARY_SW_THERMAL, nvmlClocksThrottleReasonSwThermalSlowdown);
SAME(NVML_LIBRARY_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME(NVML_LIBRARY_HW_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME(sizeof(struct nvml_library_process_v1), sizeof(nvmlProcessInfo_v1_t));
SAME(sizeof(struct nvml_library_process_v2), sizeof(nvmlProcessInfo_t));
SAME(offsetof(struct nvml_library_process_v2, pid), offsetof(nvmlProcessInfo_t, pid));
#endif
#endif

static const char *const nvml_names[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"};

struct fixture {
    void *library;
    struct nvml_double *nvml;
    struct gpu_state *gpu;
    pid_t group; /* of a run that does nothing */
    char error[256];
};

static void prepare_gpus(struct nvml_double *nvml)
{
    static const char *const uuids[NVML_DOUBLE_GPUS] = {"GPU-aaaa0000-1111", "GPU-aaab0000-2222",
                                                        "GPU-bbbb0000-3333", "GPU-cccc0000-4444"};

    memset(nvml, 0, sizeof *nvml);
    nvml->gpu_count = 2;
    for (size_t i = 0; i < NVML_DOUBLE_GPUS; i++) {
        nvml->gpus[i] = (struct nvml_double_gpu){
            .name = "NVIDIA Test",
            .uuid = uuids[i],
            .clock = 1000 + 100 * (unsigned)i,
            .clock_most = 1980,
            .temperature = 40 + 10 * (unsigned)i,
            .power = 100000 + 100000 * (unsigned)i,
            .power_limit = 700000,
        };
    }
}

/* What a process of a test does; it does not outlive the test, should that fail. */
static _Noreturn void wait_to_be_killed(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        pause();
    }
}

/* A process in a group of its own, which waits until it is killed. */
static pid_t start_process(pid_t group)
{
    pid_t pid = fork();

    if (pid == 0) {
        wait_to_be_killed();
    }
    assert_true(pid > 0);
    assert_int_equal(setpgid(pid, group), 0);
    return pid;
}

/* Whoever started the test. */
static unsigned somebody_else(void)
{
    return getppid() > 0 ? (unsigned)getppid() : 1;
}

static void end_process(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static int load(void **state, const char *path)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    for (size_t i = 0; i < sizeof nvml_names / sizeof *nvml_names; i++) {
        unsetenv(nvml_names[i]);
    }
    /* The tool asks for it by its soname, under which it is loaded then. */
    fixture->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (fixture->library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        free(fixture);
        return -1;
    }
    fixture->nvml = dlsym(fixture->library, "nvml_double");
    prepare_gpus(fixture->nvml);
    fixture->group = start_process(0);
    *state = fixture;
    return 0;
}

static int set_up(void **state)
{
    return load(state, NVML_DOUBLE);
}

static int set_up_old(void **state)
{
    return load(state, NVML_DOUBLE_OLD);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    int started;

    gpu_state_close(fixture->gpu);
    started = fixture->nvml->started;
    end_process(fixture->group);
    dlclose(fixture->library);
    free(fixture);
    return started; /* each start has its shutdown */
}

static void open_gpus(struct fixture *fixture)
{
    fixture->gpu = gpu_state_open(fixture->error, sizeof fixture->error);
    if (fixture->gpu == NULL) {
        fail_msg("%s", fixture->error);
    }
}

static struct ab_run_gpu one_sample(struct fixture *fixture)
{
    struct ab_run_gpu gpu;

    gpu_state_begin(fixture->gpu, fixture->group);
    gpu_state_sample(fixture->gpu);
    gpu_state_end(fixture->gpu, &gpu);
    return gpu;
}

/* ---- Opening ---- */

static void no_library_is_a_reason(void **state)
{
    char error[256];
    void *real = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    (void)state;
    if (real != NULL) {
        dlclose(real);
        skip_because("NVML is there");
    }
    assert_null(gpu_state_open(error, sizeof error));
    assert_non_null(strstr(error, "NVML cannot be loaded: libnvidia-ml.so.1"));
}

static void a_start_that_fails_is_a_reason_in_nvml_s_words(void **state)
{
    struct fixture *fixture = *state;

    fixture->nvml->init_fails = 9;
    assert_null(gpu_state_open(fixture->error, sizeof fixture->error));
    assert_string_equal(fixture->error, "NVML does not start: Driver Not Loaded");
}

static void no_gpu_is_a_reason(void **state)
{
    struct fixture *fixture = *state;

    fixture->nvml->gpu_count = 0;
    assert_null(gpu_state_open(fixture->error, sizeof fixture->error));
    assert_string_equal(fixture->error, "NVML finds no GPU");
}

static void gpus_are_described_a_line_each(void **state)
{
    struct fixture *fixture = *state;
    char *text;

    open_gpus(fixture);
    text = gpu_state_describe(fixture->gpu);
    assert_string_equal(text, "GPU 0: NVIDIA Test, GPU-aaaa0000-1111, SM clock up to 1980 MHz, "
                              "power limit 700 W\n"
                              "GPU 1: NVIDIA Test, GPU-aaab0000-2222, SM clock up to 1980 MHz, "
                              "power limit 700 W");
    free(text);
}

/* ---- A run ---- */

static void means_are_over_gpus_and_samples(void **state)
{
    struct fixture *fixture = *state;
    struct ab_run_gpu gpu;

    open_gpus(fixture);
    gpu_state_begin(fixture->gpu, fixture->group);
    gpu_state_sample(fixture->gpu);
    fixture->nvml->gpus[0].clock = 1400;
    fixture->nvml->gpus[0].temperature = 60;
    fixture->nvml->gpus[1].power = 400000;
    gpu_state_sample(fixture->gpu);
    gpu_state_end(fixture->gpu, &gpu);

    assert_true(gpu.known);
    assert_int_equal(gpu.flags, 0);
    assert_float_equal(gpu.sm_clock_mhz, (1000 + 1100 + 1400 + 1100) / 4.0, 1e-9);
    assert_float_equal(gpu.temperature_celsius, (40 + 50 + 60 + 50) / 4.0, 1e-9);
    assert_float_equal(gpu.power_watts, (100 + 200 + 100 + 400) / 4.0, 1e-9);
}

static void each_reason_has_its_flag(void **state)
{
    static const struct {
        unsigned long long reasons;
        unsigned flags;
    } cases[] = {
        {0, 0},
        {NVML_LIBRARY_APPLICATIONS_CLOCKS, 0},
        {0x10 /* boost of several GPUs together */, 0},
        {NVML_LIBRARY_SW_POWER_CAP, AB_GPU_THROTTLED_POWER},
        {NVML_LIBRARY_SW_THERMAL, AB_GPU_THROTTLED_THERMAL},
        {NVML_LIBRARY_HW_THERMAL, AB_GPU_THROTTLED_THERMAL},
        {NVML_LIBRARY_HW_THERMAL | NVML_LIBRARY_HW_SLOWDOWN, AB_GPU_THROTTLED_THERMAL},
        {NVML_LIBRARY_HW_SLOWDOWN, AB_GPU_THROTTLED_OTHER},
        {NVML_LIBRARY_HW_POWER_BRAKE | NVML_LIBRARY_HW_SLOWDOWN, AB_GPU_THROTTLED_OTHER},
        {NVML_LIBRARY_SW_POWER_CAP | NVML_LIBRARY_SW_THERMAL,
         AB_GPU_THROTTLED_POWER | AB_GPU_THROTTLED_THERMAL},
    };
    struct fixture *fixture = *state;

    open_gpus(fixture);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture->nvml->gpus[1].reasons = cases[i].reasons;
        assert_int_equal(one_sample(fixture).flags, cases[i].flags);
    }
}

static void a_flag_of_one_sample_stays_for_the_run_and_not_longer(void **state)
{
    struct fixture *fixture = *state;
    struct ab_run_gpu gpu;

    open_gpus(fixture);
    gpu_state_begin(fixture->gpu, fixture->group);
    gpu_state_sample(fixture->gpu);
    fixture->nvml->gpus[0].reasons = NVML_LIBRARY_SW_THERMAL;
    gpu_state_sample(fixture->gpu);
    fixture->nvml->gpus[0].reasons = 0;
    gpu_state_sample(fixture->gpu);
    gpu_state_end(fixture->gpu, &gpu);
    assert_int_equal(gpu.flags, AB_GPU_THROTTLED_THERMAL);
    assert_int_equal(one_sample(fixture).flags, 0);
}

static void an_idle_gpu_is_not_throttled_and_its_clock_does_not_count(void **state)
{
    struct fixture *fixture = *state;
    struct ab_run_gpu gpu;

    fixture->nvml->gpus[0].reasons = NVML_LIBRARY_GPU_IDLE;
    fixture->nvml->gpus[0].clock = 210;
    open_gpus(fixture);
    gpu = one_sample(fixture);
    assert_int_equal(gpu.flags, 0);
    assert_float_equal(gpu.sm_clock_mhz, 1100, 1e-9);

    fixture->nvml->gpus[1].reasons = NVML_LIBRARY_GPU_IDLE;
    gpu = one_sample(fixture);
    assert_true(gpu.known);
    assert_true(isnan(gpu.sm_clock_mhz));
    assert_float_equal(gpu.temperature_celsius, 45, 1e-9);
}

static void a_gpu_lost_in_the_middle_is_not_asked_again(void **state)
{
    struct fixture *fixture = *state;
    struct ab_run_gpu gpu;
    unsigned asked;

    open_gpus(fixture);
    gpu_state_begin(fixture->gpu, fixture->group);
    gpu_state_sample(fixture->gpu);
    fixture->nvml->gpus[0].fails = NVML_LIBRARY_GPU_IS_LOST;
    asked = fixture->nvml->gpus[0].asked;
    gpu_state_sample(fixture->gpu);
    gpu_state_sample(fixture->gpu);
    assert_int_equal(fixture->nvml->gpus[0].asked, asked + 1);
    gpu_state_end(fixture->gpu, &gpu);
    assert_true(gpu.known);
    assert_int_equal(gpu.flags, 0);
    assert_float_equal(gpu.sm_clock_mhz, (1000 + 3 * 1100) / 4.0, 1e-9);

    fixture->nvml->gpus[1].fails = NVML_LIBRARY_GPU_IS_LOST;
    gpu = one_sample(fixture);
    assert_false(gpu.known);
    assert_true(isnan(gpu.sm_clock_mhz));
    assert_true(isnan(gpu.temperature_celsius));
    assert_true(isnan(gpu.power_watts));
}

static void a_run_without_a_sample_is_not_known(void **state)
{
    struct fixture *fixture = *state;
    struct ab_run_gpu gpu;

    open_gpus(fixture);
    gpu_state_begin(fixture->gpu, fixture->group);
    gpu_state_end(fixture->gpu, &gpu);
    assert_false(gpu.known);
    assert_true(isnan(gpu.sm_clock_mhz));
}

static void an_old_nvml_without_reasons_still_tells_clocks_and_processes(void **state)
{
    struct fixture *fixture = *state;
    struct ab_run_gpu gpu;

    fixture->nvml->gpus[0].reasons = NVML_LIBRARY_SW_THERMAL; /* which it cannot say */
    open_gpus(fixture);
    gpu = one_sample(fixture);
    assert_true(gpu.known);
    assert_int_equal(gpu.flags, 0);
    assert_float_equal(gpu.sm_clock_mhz, 1050, 1e-9);

    fixture->nvml->gpus[0].pid_count = 3;
    fixture->nvml->gpus[0].pids[0] = (unsigned)fixture->group;
    fixture->nvml->gpus[0].pids[2] = somebody_else();
    assert_int_equal(one_sample(fixture).flags, AB_GPU_OTHER_PROCESSES);
}

/* ---- Whose processes ---- */

static unsigned flags_with_pid(struct fixture *fixture, pid_t pid)
{
    fixture->nvml->gpus[1].pid_count = 1;
    fixture->nvml->gpus[1].pids[0] = (unsigned)pid;
    return one_sample(fixture).flags;
}

static void processes_of_the_run_are_not_other(void **state)
{
    struct fixture *fixture = *state;
    pid_t member = start_process(fixture->group);
    unsigned flags;

    open_gpus(fixture);
    flags = flags_with_pid(fixture, member);
    end_process(member);
    assert_int_equal(flags, 0);
    assert_int_equal(flags_with_pid(fixture, fixture->group), 0);
}

/* torchrun starts each of its ranks in a session of its own. */
static void a_descendant_in_another_group_is_not_other(void **state)
{
    struct fixture *fixture = *state;
    int channel[2];
    pid_t leader, descendant;
    unsigned flags;

    assert_int_equal(pipe(channel), 0);
    leader = fork();
    if (leader == 0) {
        pid_t child;

        setpgid(0, 0);
        child = fork();
        if (child == 0) {
            setsid();
            child = getpid();
            if (write(channel[1], &child, sizeof child) != sizeof child) {
                _exit(1);
            }
        }
        wait_to_be_killed();
    }
    assert_int_equal(read(channel[0], &descendant, sizeof descendant), sizeof descendant);
    fixture->nvml->gpus[0].pid_count = 1;
    fixture->nvml->gpus[0].pids[0] = (unsigned)descendant;
    end_process(fixture->group);
    fixture->group = leader;
    open_gpus(fixture);
    flags = one_sample(fixture).flags;
    kill(descendant, SIGKILL);
    close(channel[0]);
    close(channel[1]);
    assert_int_equal(flags, 0);
}

static void a_process_of_somebody_else_is_flagged(void **state)
{
    struct fixture *fixture = *state;

    open_gpus(fixture);
    assert_int_equal(flags_with_pid(fixture, (pid_t)somebody_else()), AB_GPU_OTHER_PROCESSES);
    assert_int_equal(flags_with_pid(fixture, fixture->group), 0);
}

static void ids_that_say_nothing_here_are_nobody_s(void **state)
{
    struct fixture *fixture = *state;
    pid_t ended;

    open_gpus(fixture);
    assert_int_equal(flags_with_pid(fixture, 0), 0);
    assert_int_equal(flags_with_pid(fixture, INT32_MAX), 0);
    assert_int_equal(flags_with_pid(fixture, -1), 0);
    ended = start_process(0);
    kill(ended, SIGKILL);
    waitid(P_PID, (id_t)ended, NULL, WEXITED | WNOWAIT); /* ended, and not yet waited for */
    assert_int_equal(flags_with_pid(fixture, ended), 0);
    waitpid(ended, NULL, 0);
}

static void a_list_longer_than_there_was_room_for_is_asked_again(void **state)
{
    struct fixture *fixture = *state;

    fixture->nvml->gpus[0].pid_count = NVML_DOUBLE_PIDS;
    fixture->nvml->gpus[0].pids[NVML_DOUBLE_PIDS - 1] = somebody_else();
    open_gpus(fixture);
    assert_int_equal(one_sample(fixture).flags, AB_GPU_OTHER_PROCESSES);
}

static void processes_that_may_not_be_listed_are_no_flag(void **state)
{
    struct fixture *fixture = *state;

    fixture->nvml->gpus[0].fails_processes = 4; /* no permission */
    open_gpus(fixture);
    assert_int_equal(one_sample(fixture).flags, 0);
    assert_true(one_sample(fixture).known);
}

/* ---- CUDA_VISIBLE_DEVICES ---- */

/* Opens with a value; the mean clock tells which GPUs are read. 0: none. */
static double clock_with(struct fixture *fixture, const char *visible)
{
    struct ab_run_gpu gpu;

    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    fixture->gpu = gpu_state_open(fixture->error, sizeof fixture->error);
    if (fixture->gpu == NULL) {
        return 0;
    }
    gpu = one_sample(fixture);
    gpu_state_close(fixture->gpu);
    fixture->gpu = NULL;
    return gpu.sm_clock_mhz;
}

static void only_visible_gpus_are_read(void **state)
{
    struct fixture *fixture = *state;

    fixture->nvml->gpu_count = 4;
    assert_float_equal(clock_with(fixture, "1"), 1100, 1e-9);
    assert_float_equal(clock_with(fixture, "3,0"), 1150, 1e-9);
    assert_float_equal(clock_with(fixture, " 2 , 3 "), 1250, 1e-9);
    assert_float_equal(clock_with(fixture, "GPU-bbbb0000-3333"), 1200, 1e-9);
    assert_float_equal(clock_with(fixture, "GPU-aaab"), 1100, 1e-9);
    /* CUDA stops at the first that it does not understand */
    assert_float_equal(clock_with(fixture, "1,-1,2"), 1100, 1e-9);
    assert_float_equal(clock_with(fixture, "1,9,2"), 1100, 1e-9);
}

static void a_list_that_allows_nothing_is_a_reason(void **state)
{
    static const char *const lists[] = {"", "-1", "NoDevFiles", "7", "GPU-", "GPU-aaa", "GPU-dddd"};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_float_equal(clock_with(fixture, lists[i]), 0, 0);
        assert_non_null(strstr(fixture->error, "CUDA_VISIBLE_DEVICES='"));
        assert_non_null(strstr(fixture->error, "' allows no GPU"));
    }
}

static void an_index_among_unlike_gpus_does_not_tell_which_one_it_is(void **state)
{
    struct fixture *fixture = *state;

    fixture->nvml->gpus[1].name = "NVIDIA Other";
    assert_float_equal(clock_with(fixture, "1"), 1050, 1e-9);
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    assert_float_equal(clock_with(fixture, "1"), 1100, 1e-9);
}

static void a_part_has_its_gpu_s_clock_and_its_own_processes(void **state)
{
    struct fixture *fixture = *state;

    fixture->nvml->gpus[1].mig = "MIG-5555";
    fixture->nvml->gpus[1].pid_count = 1;
    fixture->nvml->gpus[1].pids[0] = somebody_else();
    assert_float_equal(clock_with(fixture, "MIG-5555"), 1100, 1e-9);

    open_gpus(fixture);
    assert_int_equal(one_sample(fixture).flags, 0);
    fixture->nvml->gpus[1].mig_pid_count = 1;
    fixture->nvml->gpus[1].mig_pids[0] = somebody_else();
    assert_int_equal(one_sample(fixture).flags, AB_GPU_OTHER_PROCESSES);
}

static void a_part_that_is_not_known_leaves_all_gpus(void **state)
{
    struct fixture *fixture = *state;

    assert_float_equal(clock_with(fixture, "MIG-6666"), 1050, 1e-9);
}

/* ---- Clocks of an experiment ---- */

static void runs_with_clocks_far_from_the_median_are_marked(void **state)
{
    static const double clocks[] = {1000, 1010, 990, 1000, 1029, 971, 1031, 969, NAN, 500, 700};
    enum { COUNT = sizeof clocks / sizeof *clocks };
    struct ab_run runs[COUNT];
    struct ab_experiment experiment = {.run_count = COUNT, .runs = runs};

    (void)state;
    memset(runs, 0, sizeof runs);
    for (size_t i = 0; i < COUNT; i++) {
        runs[i].gpu = (struct ab_run_gpu){.known = true, .sm_clock_mhz = clocks[i]};
    }
    runs[0].gpu.flags = AB_GPU_CLOCKS_CHANGED | AB_GPU_THROTTLED_POWER; /* of an earlier time */
    runs[9].warm_up = true;
    runs[10].gpu.known = false;
    gpu_state_mark_clocks(&experiment);
    assert_int_equal(runs[0].gpu.flags, AB_GPU_THROTTLED_POWER);
    for (size_t i = 1; i < COUNT; i++) {
        assert_int_equal(runs[i].gpu.flags, i == 6 || i == 7 ? AB_GPU_CLOCKS_CHANGED : 0);
    }
}

static void an_experiment_without_clocks_has_no_marks(void **state)
{
    struct ab_run run = {.gpu = {.known = true, .sm_clock_mhz = NAN}};
    struct ab_experiment experiment = {.run_count = 1, .runs = &run};

    (void)state;
    gpu_state_mark_clocks(&experiment);
    assert_int_equal(run.gpu.flags, 0);
    experiment.run_count = 0;
    gpu_state_mark_clocks(&experiment);
}

int main(void)
{
#define WITH_NVML(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define WITH_OLD_NVML(test) cmocka_unit_test_setup_teardown(test, set_up_old, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_library_is_a_reason),
        WITH_NVML(a_start_that_fails_is_a_reason_in_nvml_s_words),
        WITH_NVML(no_gpu_is_a_reason),
        WITH_NVML(gpus_are_described_a_line_each),
        WITH_NVML(means_are_over_gpus_and_samples),
        WITH_NVML(each_reason_has_its_flag),
        WITH_NVML(a_flag_of_one_sample_stays_for_the_run_and_not_longer),
        WITH_NVML(an_idle_gpu_is_not_throttled_and_its_clock_does_not_count),
        WITH_NVML(a_gpu_lost_in_the_middle_is_not_asked_again),
        WITH_NVML(a_run_without_a_sample_is_not_known),
        WITH_OLD_NVML(an_old_nvml_without_reasons_still_tells_clocks_and_processes),
        WITH_NVML(processes_of_the_run_are_not_other),
        WITH_NVML(a_descendant_in_another_group_is_not_other),
        WITH_NVML(a_process_of_somebody_else_is_flagged),
        WITH_NVML(ids_that_say_nothing_here_are_nobody_s),
        WITH_NVML(a_list_longer_than_there_was_room_for_is_asked_again),
        WITH_NVML(processes_that_may_not_be_listed_are_no_flag),
        WITH_NVML(only_visible_gpus_are_read),
        WITH_NVML(a_list_that_allows_nothing_is_a_reason),
        WITH_NVML(an_index_among_unlike_gpus_does_not_tell_which_one_it_is),
        WITH_NVML(a_part_has_its_gpu_s_clock_and_its_own_processes),
        WITH_NVML(a_part_that_is_not_known_leaves_all_gpus),
        cmocka_unit_test(runs_with_clocks_far_from_the_median_are_marked),
        cmocka_unit_test(an_experiment_without_clocks_has_no_marks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
