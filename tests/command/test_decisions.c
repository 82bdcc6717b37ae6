/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What `explain` says of a kernel of which all is known is what the library decides for its launch:
 * both are asked about kernels under policies made at random, from a fixed seed, and have to name
 * the same rule for each setting. Where something is left out, explain may say "perhaps", but
 * nothing that the library denies.
 */
#include "test_decide_support.h"

#include <inttypes.h>

#include "decide/capture.h"
#include "decision.h"

enum {
    POLICIES = 400,
    LAUNCHES = 15, /* of each policy */
    DEVICES = 3,
};

static uint64_t random_state;

/* A number below the limit. */
static unsigned chance(unsigned limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(random_state >> 33) % limit;
}

#define ONE_OF(list) list[chance(sizeof list / sizeof *list)]

static const char *const kernels[] = {
    NULL,
    "f",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "ncclDevKernel_Broadcast_RING_LL",
    "_ZN2at6native4copyIfEEvPT_i",
    "_ZN2at6native4copyIdEEvPT_i",
    "_Z4axpyv",
    "_ZN12_GLOBAL__N_14fillEPf",
    "__nv_static_20__5dfc5b90_4_t_cu_c_k__Z1kPi",
    "_Znot_a_name",
};
static const char *const libraries[] = {NULL, "libnccl.so.2", "libtorch_cuda.so", "app"};
static const char *const hosts[] = {"node7", "login1"};

/* ---- Policies at random
 * ----------------------------------------------------------------------------- */

static char text[16384];

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void add(const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(text + length, sizeof text - length, format, arguments);
    va_end(arguments);
    assert_true(added >= 0 && (size_t)added < sizeof text - length);
}

static void add_ranges(const char *key, unsigned least, unsigned most)
{
    unsigned low = least + chance(most - least + 1), high = low + chance(most - low + 1);
    switch (chance(5)) {
    case 0:
        add("%s = %u\n", key, low);
        return;
    case 1:
        add("%s = %u..%u\n", key, low, high);
        return;
    case 2:
        add("%s = ..%u\n", key, high);
        return;
    case 3:
        add("%s = %u..\n", key, low);
        return;
    default:
        add("%s = %u..%u, %u\n", key, low, high, least);
    }
}

static void add_names(const char *key)
{
    static const char *const patterns[] = {
        "*",
        "f",
        "nccl*",
        "*AllReduce*",
        "at::native::copy",
        "copy",
        "fill",
        "k",
        "*copy<float>*",
        "_Z*",
        "*axpy*",
        "*::*",
        "_ZN2at*",
        "[!n]*",
        "void at::*",
        "(anonymous*",
        "__nv*",
        "ncclDevKernel_?*",
        "axpy()",
        "_Znot_a_name",
    };
    for (unsigned i = chance(2) + 1; i > 0; i--)
        add("%s = %s\n", key, ONE_OF(patterns));
}

static void add_place(void)
{
    static const char *const patterns[] = {"node*", "login1", "*", "node?"};
    switch (chance(4)) {
    case 0:
        add_ranges("rank", 0, 3);
        return;
    case 1:
        add_ranges("local_rank", 0, 1);
        return;
    case 2:
        add_ranges("world_size", 1, 4);
        return;
    default:
        add("host = %s\n", ONE_OF(patterns));
    }
}

static void add_library(const char *key)
{
    static const char *const patterns[] = {"libnccl.so*", "lib*", "app", "*", "libtorch*"};
    add("%s = %s\n", key, ONE_OF(patterns));
}

static void add_selectors(bool streams)
{
    static const char *const forms[] = {"name", "signature", "mangled"};
    bool named = chance(3) > 0;
    if (named) {
        add_names("name");
        if (chance(4) == 0)
            add_names("not_name");
        if (chance(2) == 0)
            add("name_form = %s\n", ONE_OF(forms));
    }
    if (chance(4) == 0)
        add_library("library");
    if (chance(5) == 0)
        add_library("not_library");
    if (chance(3) == 0)
        add_ranges("grid_blocks", 1, 6);
    if (chance(5) == 0)
        add_ranges("block_threads", 1, 4);
    if (chance(5) == 0)
        add_ranges("shared_memory", 0, 3);
    if (chance(5) == 0)
        add("captured = %s\n", chance(2) == 0 ? "yes" : "no");
    if (chance(5) == 0)
        add_ranges("device", 0, DEVICES - 1);
    if (chance(4) == 0)
        add_place();
    if (streams && chance(4) == 0)
        add("stream = %s\n", chance(2) == 0 ? "high" : "low");
    if (chance(6) == 0)
        add_ranges("launch_stream", 0, 1);
}

/* Settings of every group; those that a kernel rule can give without anything that it asks for. */
static void add_settings(void)
{
    unsigned before = (unsigned)strlen(text);
    while (strlen(text) == before) {
        if (chance(3) == 0)
            add("mem_sync_domain = %s\n", chance(4) == 0 ? "leave" : "remote");
        if (chance(4) == 0)
            add("mem_sync_domain_map = 0 %u\n", chance(3));
        if (chance(4) == 0)
            add("cluster_dim = %s\n", chance(3) == 0 ? "unset\nunsafe_cluster = yes" : "2");
        if (chance(4) == 0)
            add("priority = -%u\n", chance(3));
        if (chance(4) == 0)
            add("shared_memory_carveout = %u%%\n", chance(100));
        if (chance(4) == 0)
            add("programmatic_serialization = unset\n");
        if (chance(6) == 0)
            add("nvlink_util_centric = yes\n");
    }
}

static struct policy *random_policy(bool *streams)
{
    text[0] = '\0';
    *streams = chance(2) == 0;
    if (*streams)
        add("[stream high]\ncreated_priority = ..-1\npriority = leave\n"
            "[stream low]\ncreated_priority = 0..\npriority = leave\n");
    for (unsigned rule = 0, rules = 1 + chance(7); rule < rules; rule++) {
        add("[kernel r%u]\n", rule);
        add_selectors(*streams);
        add_settings();
        if (chance(5) == 0)
            add("final = yes\n");
    }
    return parse_policy(text);
}

/* ---- Launches at random
 * ------------------------------------------------------------------------------ */

struct launch {
    const char *kernel, *library;
    unsigned grid, block, shared_memory, device;
    bool captured;
};

static struct match_extent exactly(int64_t value)
{
    return (struct match_extent){.known = true, .least = value, .most = value};
}

static void fill_facts(const struct launch *launch, const char *stream_rule,
                       struct match_facts *facts)
{
    *facts = (struct match_facts){
        .nameless = launch->kernel == NULL,
        .form_known = {true, true, true},
        .library = launch->library != NULL ? launch->library : "",
        .grid_blocks = exactly(launch->grid),
        .block_threads = exactly(launch->block),
        .shared_memory = exactly(launch->shared_memory),
        .rank = exactly(this_process.rank),
        .local_rank = exactly(this_process.local_rank),
        .world_size = exactly(this_process.world_size),
        .device = exactly(launch->device),
        .launch_stream = exactly(0),
        .host = this_process.host,
        .stream_known = true,
        .stream_rule = stream_rule,
        .captured = launch->captured ? POLICY_CHOICE_YES : POLICY_CHOICE_NO,
    };
    assert_true(
        kernel_name_make(launch->kernel != NULL ? launch->kernel : "(unknown)", &facts->name));
}

/* The rules that the library takes, by setting; -1: none. */
static void ask_library(const struct launch *launch, CUstream stream,
                        int rules[POLICY_SETTING_COUNT])
{
    static struct fake_function functions[sizeof kernels / sizeof *kernels];
    static struct trial trial;
    size_t which = 0;
    while (kernels[which] != launch->kernel)
        which++;
    functions[which] = fake_function_of(launch->kernel);
    trial_of(&trial, &functions[which]);
    trial.config.gridDimX = launch->grid;
    trial.config.blockDimX = launch->block;
    trial.config.sharedMemBytes = launch->shared_memory;
    trial.config.hStream = stream;
    trial.launch.library = launch->library;
    fake.capturing = launch->captured;
    if (launch->captured)
        decide_capture_began(stream, false);
    decide_trial(&trial);
    if (launch->captured)
        decide_capture_ended(stream, false);
    fake.capturing = false;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        struct report_result result = result_of(&trial.verdict, (enum policy_setting)setting);
        rules[setting] = result.rule == REPORT_RULE_NONE ? -1 : result.rule;
    }
}

static int rule_of(const struct decision *decision, unsigned setting)
{
    const struct decision_source *source = &decision->sources[setting];
    return source->value == NULL || source->from_stream ? -1 : source->rule->index;
}

static void tell(const struct policy *policy, const struct launch *launch, unsigned setting,
                 int library, int explained)
{
    fail_msg("%s: the library takes rule %d, explain %d (%zu rules), for %s of %s, grid %u, block "
             "%u, shared %u, device %u, captured %d, rank %" PRId64 ", host %s, under\n%s",
             policy_setting_key((enum policy_setting)setting), library, explained,
             policy->rule_count, launch->kernel, launch->library, launch->grid, launch->block,
             launch->shared_memory, launch->device, launch->captured, this_process.rank,
             this_process.host, text);
}

static void compare_certain(const struct policy *policy, const struct launch *launch,
                            const struct match_facts *facts,
                            const int library[POLICY_SETTING_COUNT])
{
    struct decision decision;
    decision_make(policy, facts, &decision);
    for (size_t i = 0; i < decision.rule_count; i++)
        assert_int_not_equal(decision.rules[i].verdict.answer, MATCH_PERHAPS);
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (rule_of(&decision, setting) != library[setting])
            tell(policy, launch, setting, library[setting], rule_of(&decision, setting));
    }
    decision_release(&decision);
}

/* The rule taken is the certain one, or one of those that perhaps match; and the certain one, where
 * none of those stands before it. */
static void compare_uncertain(const struct policy *policy, const struct launch *launch,
                              const struct match_facts *facts,
                              const int library[POLICY_SETTING_COUNT])
{
    struct decision decision;
    decision_make(policy, facts, &decision);
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        unsigned group = 1u << policy_setting_group((enum policy_setting)setting);
        bool allowed = false, open = false;
        for (size_t i = 0; i < decision.rule_count; i++) {
            const struct decision_rule *row = &decision.rules[i];
            open |= row->may_end || (row->perhaps & group) != 0;
            allowed |= (row->perhaps & group) != 0 && row->rule->index == library[setting];
        }
        allowed |=
            rule_of(&decision, setting) == library[setting] || (open && library[setting] == -1);
        if (!allowed)
            tell(policy, launch, setting, library[setting], rule_of(&decision, setting));
    }
    decision_release(&decision);
}

static void forget_something(struct match_facts *facts)
{
    struct match_extent *const extents[] = {
        &facts->grid_blocks, &facts->block_threads, &facts->shared_memory, &facts->rank,
        &facts->local_rank,  &facts->world_size,    &facts->device,        &facts->launch_stream,
    };
    for (unsigned i = 0; i < sizeof extents / sizeof *extents; i++) {
        if (chance(2) == 0)
            extents[i]->known = false;
        else if (chance(2) == 0)
            extents[i]->most += chance(3);
    }
    if (chance(2) == 0)
        facts->library = NULL;
    if (chance(2) == 0)
        facts->host = NULL;
    if (chance(2) == 0)
        facts->stream_known = false;
    if (chance(2) == 0)
        facts->captured = POLICY_CHOICE_ANY;
    for (unsigned form = 0; form < 3; form++)
        facts->form_known[form] = chance(3) > 0;
}

static unsigned decided; /* settings that some rule decided, all in all */

static void one_launch(const struct policy *policy, bool streams, unsigned number)
{
    struct launch launch = {
        .kernel = ONE_OF(kernels),
        .library = ONE_OF(libraries),
        .grid = 1 + chance(8),
        .block = 1 + chance(5),
        .shared_memory = chance(5),
        .device = (unsigned)fake.current_device,
        .captured = chance(3) == 0,
    };
    struct match_facts facts;
    int library[POLICY_SETTING_COUNT];
    /* The stream was made before; its priority says which of the stream rules it matched. */
    const char *stream_rule = !streams ? NULL : number % 2 == 0 ? "high" : "low";
    fill_facts(&launch, stream_rule, &facts);
    ask_library(&launch, (CUstream)0x3000, library);
    compare_certain(policy, &launch, &facts, library);
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        decided += library[setting] != -1;
    for (int times = 0; times < 4; times++) {
        struct match_facts less = facts;
        forget_something(&less);
        compare_uncertain(policy, &launch, &less, library);
    }
    kernel_name_release(&facts.name);
}

static void explain_and_the_library_take_the_same_rules(void **state)
{
    (void)state;
    random_state = 20261130;
    for (unsigned number = 0; number < POLICIES; number++) {
        bool streams;
        this_process = (struct decide_process){chance(4), chance(2), 4, ONE_OF(hosts)};
        struct policy *policy = random_policy(&streams);
        struct decide_stream_request request = {.priority_given = true,
                                                .priority = number % 2 == 0 ? -1 : 0};
        fake.device_count = DEVICES;
        fake.current_device = (int)chance(DEVICES);
        start_parsed(policy);
        decide_stream_created((CUstream)0x3000, &request);
        for (int launch = 0; launch < LAUNCHES; launch++)
            one_launch(policy, streams, number);
        decide_stream_gone((CUstream)0x3000);
    }
    assert_true(decided > POLICIES * LAUNCHES / 2); /* it was not about nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(explain_and_the_library_take_the_same_rules),
    };
    return cmocka_run_group_tests_name("decisions", tests, start_group, NULL);
}
