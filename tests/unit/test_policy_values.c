/* SPDX-License-Identifier: Apache-2.0 */
/* Values: how each kind is read, and what is said of one that cannot be read. */
#include "test_policy_support.h"

/* ---- ranges --------------------------------------------------------------------------------- */

static void ranges_have_open_and_closed_ends(void **state)
{
    static const struct policy_range expected[] = {
        {3, 3}, {1, 4}, {INT64_MIN, 4}, {4, INT64_MAX}, {7, 7}, {8, 8}, {10, 20}, {9, 9},
    };
    struct policy *policy = expect_clean_kernel("grid_blocks = 3\ngrid_blocks = 1..4\n"
                                                "grid_blocks = ..4\ngrid_blocks = 4..\n"
                                                "grid_blocks = 7,8,\t10..20 , 9");
    const struct policy_ranges *ranges = &policy->rules[0].selectors.grid_blocks;

    (void)state;
    assert_int_equal(ranges->count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < ranges->count; i++) {
        assert_true(ranges->ranges[i].low == expected[i].low);
        assert_true(ranges->ranges[i].high == expected[i].high);
    }
    policy_free(policy);
}

static void ranges_hold_negative_numbers(void **state)
{
    struct policy *policy = expect_clean_stream("created_priority = -5..-1, ..-7, -2147483648");
    const struct policy_ranges *ranges = &policy->rules[0].selectors.created_priority;

    (void)state;
    assert_true(policy_ranges_hold(ranges, -5));
    assert_true(policy_ranges_hold(ranges, -1));
    assert_false(policy_ranges_hold(ranges, -6));
    assert_true(policy_ranges_hold(ranges, -7));
    assert_true(policy_ranges_hold(ranges, INT64_MIN));
    assert_false(policy_ranges_hold(ranges, 0));
    policy_free(policy);
}

static void ranges_that_are_not_given_hold_everything(void **state)
{
    struct policy *policy = expect_clean_kernel("");

    (void)state;
    assert_true(policy_ranges_hold(&policy->rules[0].selectors.grid_blocks, INT64_MIN));
    assert_true(policy_ranges_hold(&policy->rules[0].selectors.rank, -1));
    policy_free(policy);
}

static void each_numeric_selector_has_its_bounds(void **state)
{
    static const struct {
        const char *section, *key, *good, *bad, *bounds;
    } cases[] = {
        {"kernel", "launch_stream", "0..2147483647", "-1", "0 to 2147483647"},
        {"kernel", "launch_stream", "0", "2147483648", "0 to 2147483647"},
        {"kernel", "grid_blocks", "1..9223372036854775807", "0", "1 to 9223372036854775807"},
        {"kernel", "grid_blocks", "1", "9223372036854775808", "1 to 9223372036854775807"},
        {"kernel", "block_threads", "1..1024", "1025", "1 to 1024"},
        {"kernel", "shared_memory", "0..4294967295", "4294967296", "0 to 4294967295"},
        {"kernel", "arm", "0..15", "16", "0 to 15"},
        {"stream", "created_priority", "-2147483648..2147483647", "-2147483649",
         "-2147483648 to 2147483647"},
        {"stream", "index", "0..2147483647", "-1", "0 to 2147483647"},
        {"kernel", "rank", "0", "-1", "0 to 2147483647"},
        {"stream", "local_rank", "0", "-1", "0 to 2147483647"},
        {"kernel", "world_size", "1", "0", "1 to 2147483647"},
        {"kernel", "device", "0", "-1", "0 to 2147483647"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char body[200], message[200];

        snprintf(body, sizeof body, "[%s x]\npriority = 1\n%s = %s\n", cases[i].section,
                 cases[i].key, cases[i].good);
        policy_free(expect_clean(body));
        snprintf(body, sizeof body, "[%s x]\npriority = 1\n%s = %s\n", cases[i].section,
                 cases[i].key, cases[i].bad);
        snprintf(message, sizeof message, "%s: %s is out of range (%s)", cases[i].key, cases[i].bad,
                 cases[i].bounds);
        expect_error(body, 3, (unsigned)strlen(cases[i].key) + 4, message);
    }
}

static void malformed_ranges_are_errors(void **state)
{
    static const char *const values[] = {"x",   "1...4", "1..4..7", "+3",  "0x10", "1e3",
                                         "- 1", "--1",   "1 .. 4",  "1-4", "4k",   "-"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct policy_diagnostics diagnostics = {0};
        char text[200];

        snprintf(text, sizeof text, POLICY_HEADER "[kernel k]\npriority = 1\nrank = %s\n",
                 values[i]);
        assert_null(policy_parse(text, strlen(text), "test.ini", &diagnostics));
        assert_int_equal(diagnostics.error_count, 1);
        if (strstr(diagnostics.items[0].message, "is not a number or a range") == NULL) {
            fail_msg("%s: %s", values[i], diagnostics.items[0].message);
        }
        policy_diagnostics_release(&diagnostics);
    }
    expect_error("[kernel k]\npriority = 1\nrank = ..\n", 3, 8,
                 "rank: \"..\" is not a number or a range (3, 1..4, ..4 or 4..)");
    expect_error("[kernel k]\npriority = 1\nrank = 1,,2\n", 3, 10,
                 "rank: \"\" is not a number or a range (3, 1..4, ..4 or 4..)");
    expect_error("[kernel k]\npriority = 1\nrank = 1,\n", 3, 10,
                 "rank: \"\" is not a number or a range (3, 1..4, ..4 or 4..)");
}

static void range_that_holds_nothing_is_an_error(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\ngrid_blocks = 1, 4..3\n", 3, 18,
                 "grid_blocks: the range 4..3 holds nothing: its first number is the larger");
}

static void number_that_overflows_is_out_of_range(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nrank = 1..99999999999999999999999\n", 3, 11,
                 "rank: 99999999999999999999999 is out of range (0 to 2147483647)");
    /* 2^64 + 1, which would wrap to 1. */
    expect_error("[kernel k]\npriority = 18446744073709551617\n", 2, 12,
                 "priority: 18446744073709551617 is out of range (-2147483648 to 2147483647)");
    expect_error("[kernel k]\npriority = -9223372036854775809\n", 2, 12,
                 "priority: -9223372036854775809 is out of range (-2147483648 to 2147483647)");
}

static void each_error_of_a_list_is_reported(void **state)
{
    static const char text[] = POLICY_HEADER "[kernel k]\npriority = 1\nrank = x, 1, -1, 2..1\n";
    static const unsigned columns[] = {8, 14, 18};
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    assert_null(policy_parse(text, strlen(text), "test.ini", &diagnostics));
    assert_int_equal(diagnostics.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(diagnostics.items[i].place.line, 5);
        assert_int_equal(diagnostics.items[i].place.column, columns[i]);
    }
    policy_diagnostics_release(&diagnostics);
}

/* ---- devices -------------------------------------------------------------------------------- */

static void device_is_an_index_a_uuid_or_a_pci_address(void **state)
{
    struct policy *policy =
        expect_clean_kernel("device = 0, 2..3, ..1\n"
                            "device = GPU-8932f937-d72c-4106-c12f-20bd9faed9f6\n"
                            "device = gpu-8932F937-d7\n"
                            "device = GPU-8932f937-\n"
                            "device = 0000:3b:00.0, 3B:1f.0, 0001:3b:00, 00000002:af:00.0");
    const struct policy_device *devices = policy->rules[0].selectors.device.devices;
    static const uint8_t uuid[16] = {0x89, 0x32, 0xf9, 0x37, 0xd7, 0x2c, 0x41, 0x06,
                                     0xc1, 0x2f, 0x20, 0xbd, 0x9f, 0xae, 0xd9, 0xf6};

    (void)state;
    assert_int_equal(policy->rules[0].selectors.device.count, 10);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(devices[i].form, POLICY_DEVICE_INDEX);
    }
    assert_int_equal(devices[1].index.low, 2);
    assert_int_equal(devices[1].index.high, 3);
    assert_true(devices[2].index.low == INT64_MIN);
    assert_int_equal(devices[3].form, POLICY_DEVICE_UUID);
    assert_int_equal(devices[3].uuid.bytes_known, 16);
    assert_memory_equal(devices[3].uuid.bytes, uuid, 16);
    assert_int_equal(devices[4].uuid.bytes_known, 5);
    assert_memory_equal(devices[4].uuid.bytes, uuid, 5);
    assert_int_equal(devices[5].uuid.bytes_known, 4);
    assert_int_equal(devices[6].form, POLICY_DEVICE_PCI);
    assert_int_equal(devices[6].pci.domain, 0);
    assert_int_equal(devices[6].pci.bus, 0x3b);
    assert_int_equal(devices[6].pci.device, 0);
    assert_int_equal(devices[7].pci.domain, 0);
    assert_int_equal(devices[7].pci.device, 0x1f);
    assert_int_equal(devices[8].pci.domain, 1);
    assert_int_equal(devices[9].pci.domain, 2);
    assert_int_equal(devices[9].pci.bus, 0xaf);
    policy_free(policy);
}

static void malformed_devices_are_errors(void **state)
{
    static const char uuid_message[] =
        "is not a UUID (GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx), or its beginning with an even "
        "number of digits";
    static const char pci_message[] = "is not the PCI address of a GPU (like 0000:3b:00.0)";
    static const char index_message[] = "is not a number or a range";
    static const struct {
        const char *value, *message;
    } cases[] = {
        {"GPU-", uuid_message},
        {"GPU-8", uuid_message},
        {"GPU-893", uuid_message},
        {"GPU-8932f937d72c", uuid_message},
        {"GPU-8932-f937", uuid_message},
        {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6a", uuid_message},
        {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6ab", uuid_message},
        {"GPU-zz", uuid_message},
        {"3b:00.1", pci_message},
        {"3b:00.00", pci_message},
        {"3b:", pci_message},
        {":00", pci_message},
        {"3b:00:", pci_message},
        {"3b:20.0", pci_message},
        {"1:3b:00:00", pci_message},
        {"123456789:3b:00.0", pci_message},
        {"13b:00.0", pci_message},
        {"0000:3b:000.0", pci_message},
        {"0000:3g:00.0", pci_message},
        {"MIG-8932f937-d72c-4106-c12f-20bd9faed9f6", "names a MIG instance; use the index"},
        {"H200", index_message},
        {"8932f937", index_message},
        {"GP", index_message},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct policy_diagnostics diagnostics = {0};
        char text[200];

        snprintf(text, sizeof text, POLICY_HEADER "[kernel k]\npriority = 1\ndevice = 1, %s\n",
                 cases[i].value);
        assert_null(policy_parse(text, strlen(text), "test.ini", &diagnostics));
        if (diagnostics.error_count != 1 || diagnostics.items[0].place.column != 13 ||
            strstr(diagnostics.items[0].message, cases[i].message) == NULL) {
            fail_msg("%s: %s", cases[i].value, diagnostics_text(&diagnostics));
        }
        policy_diagnostics_release(&diagnostics);
    }
}

/* ---- words ---------------------------------------------------------------------------------- */

static void words_of_selectors_are_read(void **state)
{
    struct policy *policy =
        expect_clean("[kernel a]\npriority = 1\nname = x\nname_form = mangled\n"
                     "captured = no\n"
                     "[kernel b]\npriority = 1\nname = x\nname_form = signature\n"
                     "captured = yes\n"
                     "[kernel c]\npriority = 1\nname = x\nname_form = name\n"
                     "[stream d]\npriority = 1\nflags = blocking\n"
                     "[stream e]\npriority = 1\nflags = non_blocking\n"
                     "[stream f]\npriority = 1\nkind = legacy\nkind=per_thread\n"
                     "[stream g]\npriority = 1\nkind = created\nkind = legacy\n");
    const struct policy_rule *rules = policy->rules;

    (void)state;
    assert_int_equal(rules[0].selectors.name_form, POLICY_NAME_FORM_MANGLED);
    assert_int_equal(rules[0].selectors.captured, POLICY_CHOICE_NO);
    assert_int_equal(rules[1].selectors.name_form, POLICY_NAME_FORM_SIGNATURE);
    assert_int_equal(rules[1].selectors.captured, POLICY_CHOICE_YES);
    assert_int_equal(rules[2].selectors.name_form, POLICY_NAME_FORM_NAME);
    assert_int_equal(rules[2].selectors.captured, POLICY_CHOICE_ANY);
    assert_int_equal(rules[3].selectors.flags, POLICY_STREAM_FLAGS_BLOCKING);
    assert_int_equal(rules[3].selectors.kinds, POLICY_STREAM_KIND_CREATED);
    assert_int_equal(rules[4].selectors.flags, POLICY_STREAM_FLAGS_NON_BLOCKING);
    assert_int_equal(rules[5].selectors.kinds,
                     POLICY_STREAM_KIND_LEGACY | POLICY_STREAM_KIND_PER_THREAD);
    assert_int_equal(rules[6].selectors.kinds,
                     POLICY_STREAM_KIND_CREATED | POLICY_STREAM_KIND_LEGACY);
    policy_free(policy);
}

static void wrong_word_is_an_error_with_all_right_words_and_the_nearest(void **state)
{
    (void)state;
    expect_error("[kernel k]\nmem_sync_domain = remot\n", 2, 19,
                 "mem_sync_domain: \"remot\" is not default, remote, leave or unset; did you mean "
                 "\"remote\"?");
    expect_error("[kernel k]\nmem_sync_domain = Remote\n", 2, 19,
                 "mem_sync_domain: \"Remote\" is not default, remote, leave or unset; did you mean "
                 "\"remote\"?");
    expect_error("[kernel k]\npriority = 1\nname = x\nname_form = demangled\n", 4, 13,
                 "name_form: \"demangled\" is not name, signature or mangled; did you mean "
                 "\"mangled\"?");
    expect_error("[stream s]\npriority = 1\nflags = non-blocking\n", 3, 9,
                 "flags: \"non-blocking\" is not blocking or non_blocking; did you mean "
                 "\"non_blocking\"?");
    expect_error("[stream s]\npriority = 1\nkind = thread\n", 3, 8,
                 "kind: \"thread\" is not created, legacy or per_thread");
    expect_error(
        "[kernel k]\ncluster_scheduling = balanced\n", 2, 22,
        "cluster_scheduling: \"balanced\" is not default, spread, load_balancing, leave or "
        "unset");
    expect_error("[kernel k]\npriority = 1\nwhen_set = replaced\n", 3, 12,
                 "when_set: \"replaced\" is not replace or keep; did you mean \"replace\"?");
}

static void yes_and_no_are_the_only_truth_values(void **state)
{
    static const char *const yes[] = {"true", "True", "TRUE", "on", "1", "enabled"};
    static const char *const no[] = {"false", "off", "0", "disable"};
    char body[100], message[200];

    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        snprintf(body, sizeof body, "[kernel k]\npriority = 1\nfinal = %s\n", yes[i]);
        snprintf(message, sizeof message, "final: \"%s\" is not yes or no; did you mean \"yes\"?",
                 yes[i]);
        expect_error(body, 3, 9, message);
    }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        snprintf(body, sizeof body, "[kernel k]\npriority = 1\ngraph_nodes = %s\n", no[i]);
        snprintf(message, sizeof message,
                 "graph_nodes: \"%s\" is not yes or no; did you mean \"no\"?", no[i]);
        expect_error(body, 3, 15, message);
    }
    expect_error(
        "[kernel k]\nnvlink_util_centric = true\n", 2, 23,
        "nvlink_util_centric: \"true\" is not yes, no, leave or unset; did you mean \"yes\"?");
    expect_error("[kernel k]\npriority = 1\ncaptured = maybe\n", 3, 12,
                 "captured: \"maybe\" is not yes or no");
}

/* ---- settings ------------------------------------------------------------------------------- */

static const struct policy_setting_value *first_setting(const struct policy *policy,
                                                        enum policy_setting setting)
{
    return &policy->rules[0].settings[setting];
}

static void domain_map_takes_two_domains_with_blanks_or_a_comma(void **state)
{
    static const char *const values[] = {"0 2", "0,2", "0 , 2", "0\t2", "0,  2", "00 002"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct policy_diagnostics diagnostics = {0};
        char text[200];

        snprintf(text, sizeof text, POLICY_HEADER "[kernel k]\nmem_sync_domain_map = %s\n",
                 values[i]);
        struct policy *policy = policy_parse(text, strlen(text), "test.ini", &diagnostics);
        assert_non_null(policy);
        const union policy_value *value =
            &first_setting(policy, POLICY_SETTING_MEM_SYNC_DOMAIN_MAP)->value;
        assert_int_equal(value->mem_sync_domain_map.default_domain, 0);
        assert_int_equal(value->mem_sync_domain_map.remote_domain, 2);
        policy_free(policy);
        policy_diagnostics_release(&diagnostics);
    }
}

static void malformed_domain_maps_are_errors(void **state)
{
    (void)state;
    expect_error(
        "[kernel k]\nmem_sync_domain_map = 2\n", 2, 23,
        "mem_sync_domain_map: \"2\" is not two physical domains (like 0 2: for default, for "
        "remote); one for both is physical_domain = 2");
    expect_error(
        "[kernel k]\nmem_sync_domain_map = 0 1 2\n", 2, 23,
        "mem_sync_domain_map: \"0 1 2\" is not two physical domains (like 0 2: for default, "
        "for remote)");
    expect_error(
        "[kernel k]\nmem_sync_domain_map = 0,,1\n", 2, 23,
        "mem_sync_domain_map: \"0,,1\" is not two physical domains (like 0 2: for default, "
        "for remote)");
    expect_error(
        "[kernel k]\nmem_sync_domain_map = 0 x\n", 2, 25,
        "mem_sync_domain_map: \"x\" is not two physical domains (like 0 2: for default, for "
        "remote)");
    expect_error("[kernel k]\nmem_sync_domain_map = 0 256\n", 2, 25,
                 "mem_sync_domain_map: 256 is out of range (0 to 255)");
    expect_error("[kernel k]\nmem_sync_domain_map = 0 -1\n", 2, 25,
                 "mem_sync_domain_map: -1 is out of range (0 to 255)");
}

static void physical_domain_is_both_entries_of_the_map(void **state)
{
    struct policy *policy = expect_clean("[kernel k]\nphysical_domain = 0\n");

    (void)state;
    assert_int_equal(first_setting(policy, POLICY_SETTING_MEM_SYNC_DOMAIN_MAP)->action,
                     POLICY_ACTION_SET);
    policy_free(policy);

    struct policy_diagnostics diagnostics = {0};
    static const char text[] = POLICY_HEADER "[stream s]\nphysical_domain = 255\n";
    policy = policy_parse(text, strlen(text), "test.ini", &diagnostics);
    assert_non_null(policy);
    const union policy_value *value =
        &first_setting(policy, POLICY_SETTING_MEM_SYNC_DOMAIN_MAP)->value;
    assert_int_equal(value->mem_sync_domain_map.default_domain, 255);
    assert_int_equal(value->mem_sync_domain_map.remote_domain, 255);
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);

    expect_error("[kernel k]\nphysical_domain = 256\n", 2, 19,
                 "physical_domain: 256 is out of range (0 to 255)");
    expect_error("[kernel k]\nphysical_domain = 0 2\n", 2, 19,
                 "physical_domain: \"0 2\" is not a whole number");
}

static void cluster_takes_one_to_three_dimensions(void **state)
{
    static const struct {
        const char *value;
        uint32_t x, y, z;
    } cases[] = {
        {"4", 4, 1, 1},     {"4,2", 4, 2, 1},     {"4,2,3", 4, 2, 3},
        {"4 2 3", 4, 2, 3}, {"4, 2 ,3", 4, 2, 3}, {"2147483647", 2147483647, 1, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char lines[100];

        snprintf(lines, sizeof lines, "name = x\ncluster_dim = %s", cases[i].value);
        struct policy *policy = expect_clean_kernel(lines);
        const struct policy_setting_value *setting =
            first_setting(policy, POLICY_SETTING_CLUSTER_DIM);
        assert_int_equal(setting->action, POLICY_ACTION_SET);
        assert_int_equal(setting->when_set, POLICY_WHEN_SET_KEEP);
        assert_int_equal(setting->value.cluster_dim.x, cases[i].x);
        assert_int_equal(setting->value.cluster_dim.y, cases[i].y);
        assert_int_equal(setting->value.cluster_dim.z, cases[i].z);
        policy_free(policy);
    }
}

static void malformed_clusters_are_errors(void **state)
{
    (void)state;
    expect_error("[kernel k]\nname = x\ncluster_dim = 0\n", 3, 15,
                 "cluster_dim: 0 is out of range (1 to 2147483647)");
    expect_error("[kernel k]\nname = x\ncluster_dim = 2,2147483648\n", 3, 17,
                 "cluster_dim: 2147483648 is out of range (1 to 2147483647)");
    expect_error("[kernel k]\nname = x\ncluster_dim = 1,1,1,1\n", 3, 15,
                 "cluster_dim: \"1,1,1,1\" is not one to three dimensions (like 4 or 4,1,1)");
    expect_error("[kernel k]\nname = x\ncluster_dim = 4x2\n", 3, 15,
                 "cluster_dim: \"4x2\" is not one to three dimensions (like 4 or 4,1,1)");
    expect_error("[kernel k]\nname = x\ncluster_dim = 4,\n", 3, 15,
                 "cluster_dim: \"4,\" is not one to three dimensions (like 4 or 4,1,1)");
    expect_error("[kernel k]\nname = x\ncluster_dim = 65536,32768\n", 3, 15,
                 "cluster_dim: a cluster of 65536,32768 is too large");
    /* 2^64, which would wrap to 0. */
    expect_error("[kernel k]\nname = x\ncluster_dim = 1073741824,1073741824,16\n", 3, 15,
                 "cluster_dim: a cluster of 1073741824,1073741824,16 is too large");
    expect_error("[kernel k]\nname = x\ncluster_dim = 2147483647,1,2147483647\n", 3, 15,
                 "cluster_dim: a cluster of 2147483647,1,2147483647 is too large");
}

static void carveout_is_a_word_or_a_percentage(void **state)
{
    static const struct {
        const char *value;
        int carveout;
    } cases[] = {
        {"default", -1}, {"max_l1", 0}, {"max_shared", 100}, {"0", 0},
        {"50", 50},      {"50%", 50},   {"7 %", 7},          {"100%", 100},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char lines[100];

        snprintf(lines, sizeof lines, "shared_memory_carveout = %s", cases[i].value);
        struct policy *policy = expect_clean_kernel(lines);
        assert_int_equal(first_setting(policy, POLICY_SETTING_SHARED_MEMORY_CARVEOUT)
                             ->value.shared_memory_carveout,
                         cases[i].carveout);
        policy_free(policy);
    }
    expect_error("[kernel k]\nshared_memory_carveout = 101%\n", 2, 26,
                 "shared_memory_carveout: 101 is out of range (0 to 100)");
    expect_error("[kernel k]\nshared_memory_carveout = -1\n", 2, 26,
                 "shared_memory_carveout: -1 is out of range (0 to 100)");
    expect_error(
        "[kernel k]\nshared_memory_carveout = 5%%\n", 2, 26,
        "shared_memory_carveout: \"5%\" is not a percentage, default, max_l1 or max_shared");
    expect_error("[kernel k]\nshared_memory_carveout = max_11\n", 2, 26,
                 "shared_memory_carveout: \"max_11\" is not default, max_l1, max_shared, leave or "
                 "unset; did you mean \"max_l1\"?");
}

static void priority_is_a_whole_number(void **state)
{
    struct policy *policy = expect_clean("[kernel k]\npriority = -2147483648\n");

    (void)state;
    assert_true(first_setting(policy, POLICY_SETTING_PRIORITY)->value.priority == INT32_MIN);
    policy_free(policy);
    expect_error("[kernel k]\npriority = high\n", 2, 12,
                 "priority: \"high\" is not a whole number");
    expect_error("[kernel k]\npriority = 1.5\n", 2, 12, "priority: \"1.5\" is not a whole number");
}

static void remaining_settings_are_read(void **state)
{
    struct policy *policy = expect_clean("[kernel k]\nmem_sync_domain = default\n"
                                         "cluster_scheduling = load_balancing\n"
                                         "nvlink_util_centric = yes\n"
                                         "programmatic_serialization = unset\n"
                                         "preferred_cluster_dim = leave\n");

    (void)state;
    assert_int_equal(first_setting(policy, POLICY_SETTING_MEM_SYNC_DOMAIN)->value.mem_sync_domain,
                     POLICY_MEM_SYNC_DOMAIN_DEFAULT);
    assert_int_equal(first_setting(policy, POLICY_SETTING_MEM_SYNC_DOMAIN)->when_set,
                     POLICY_WHEN_SET_REPLACE);
    assert_int_equal(first_setting(policy, POLICY_SETTING_MEM_SYNC_DOMAIN)->place.line, 4);
    assert_int_equal(
        first_setting(policy, POLICY_SETTING_CLUSTER_SCHEDULING)->value.cluster_scheduling,
        POLICY_CLUSTER_SCHEDULING_LOAD_BALANCING);
    assert_true(
        first_setting(policy, POLICY_SETTING_NVLINK_UTIL_CENTRIC)->value.nvlink_util_centric);
    assert_int_equal(first_setting(policy, POLICY_SETTING_PROGRAMMATIC_SERIALIZATION)->action,
                     POLICY_ACTION_UNSET);
    assert_int_equal(first_setting(policy, POLICY_SETTING_PREFERRED_CLUSTER_DIM)->action,
                     POLICY_ACTION_LEAVE);
    assert_int_equal(first_setting(policy, POLICY_SETTING_PRIORITY)->action, POLICY_ACTION_ABSENT);
    policy_free(policy);
}

static void programmatic_serialization_cannot_be_injected(void **state)
{
    static const char *const values[] = {"yes", "no", "1", "set"};
    char body[100], message[300];

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        snprintf(body, sizeof body, "[kernel k]\nprogrammatic_serialization = %s\n", values[i]);
        snprintf(message, sizeof message,
                 "programmatic_serialization: \"%s\" is not unset or leave; adding programmatic "
                 "dependent launch to a kernel would be a race",
                 values[i]);
        expect_error(body, 2, 30, message);
    }
    policy_free(expect_clean("[kernel k]\nprogrammatic_serialization = leave\n"));
}

static void every_setting_can_be_left_alone(void **state)
{
    (void)state;
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        char body[100];

        snprintf(body, sizeof body, "[kernel k]\n%s = leave\n",
                 policy_setting_key((enum policy_setting)setting));
        struct policy *policy = expect_clean(body);
        assert_int_equal(first_setting(policy, (enum policy_setting)setting)->action,
                         POLICY_ACTION_LEAVE);
        policy_free(policy);
    }
    policy_free(expect_clean("[stream s]\nphysical_domain = leave\n"));
    policy_free(expect_clean("[stream s]\nlocality_domain = leave\n"));
}

/* A partition is no attribute: test_policy_partition.c. */
static void every_attribute_of_a_kernel_can_be_taken_away(void **state)
{
    (void)state;
    for (int setting = 0; setting < POLICY_SETTING_PARTITION; setting++) {
        char body[100];

        snprintf(body, sizeof body, "[kernel k]\n%s = unset\n%s",
                 policy_setting_key((enum policy_setting)setting),
                 setting == POLICY_SETTING_CLUSTER_DIM ? "unsafe_cluster = yes\n" : "");
        struct policy *policy = expect_clean(body);
        assert_int_equal(first_setting(policy, (enum policy_setting)setting)->action,
                         POLICY_ACTION_UNSET);
        policy_free(policy);
    }
}

static void nothing_can_be_taken_away_from_a_new_stream(void **state)
{
    (void)state;
    expect_error("[stream s]\npriority = unset\n", 2, 12,
                 "priority: unset cannot stand in [stream]: there is nothing to take away when a "
                 "stream is created");
}

static void when_set_holds_for_all_settings_of_its_rule(void **state)
{
    struct policy *policy = expect_clean("[kernel k]\nname = x\nmem_sync_domain = default\n"
                                         "when_set = keep\npriority = 1\ncluster_dim = 2\n");

    (void)state;
    assert_int_equal(first_setting(policy, POLICY_SETTING_MEM_SYNC_DOMAIN)->when_set,
                     POLICY_WHEN_SET_KEEP);
    assert_int_equal(first_setting(policy, POLICY_SETTING_PRIORITY)->when_set,
                     POLICY_WHEN_SET_KEEP);
    assert_int_equal(first_setting(policy, POLICY_SETTING_CLUSTER_DIM)->when_set,
                     POLICY_WHEN_SET_KEEP);
    policy_free(policy);
}

static void modifiers_are_read(void **state)
{
    struct policy *policy = expect_clean("[kernel k]\nname = x\ncluster_dim = 2\nfinal = yes\n"
                                         "graph_nodes = yes\nunsafe_cluster = yes\n"
                                         "when_set = replace\n"
                                         "[kernel l]\nname = y\npriority = 1\nfinal = no\n"
                                         "graph_nodes = no\nunsafe_cluster = no\n");

    (void)state;
    assert_true(policy->rules[0].final);
    assert_true(policy->rules[0].graph_nodes);
    assert_true(policy->rules[0].unsafe_cluster);
    assert_false(policy->rules[1].final);
    assert_false(policy->rules[1].graph_nodes);
    assert_false(policy->rules[1].unsafe_cluster);
    policy_free(policy);
}

static void repeated_selectors_add_up(void **state)
{
    struct policy *policy =
        expect_clean("[stream a]\n[kernel k]\npriority = 1\n"
                     "name = a\nname = b\nname = c\nnot_name = d\nnot_name = e\n"
                     "library = f\nlibrary = g\nnot_library = h\nhost = i\n"
                     "host = j\nstream = a\n");
    const struct policy_selectors *selectors = &policy->rules[1].selectors;

    (void)state;
    assert_int_equal(selectors->name.count, 3);
    assert_string_equal(selectors->name.patterns[2], "c");
    assert_int_equal(selectors->not_name.count, 2);
    assert_int_equal(selectors->library.count, 2);
    assert_int_equal(selectors->not_library.count, 1);
    assert_int_equal(selectors->host.count, 2);
    assert_int_equal(selectors->stream.count, 1);
    assert_string_equal(selectors->stream.patterns[0], "a");
    policy_free(policy);
}

static void malformed_patterns_are_errors(void **state)
{
    (void)state;
    expect_error("[kernel k]\npriority = 1\nname = abc[def\n", 3, 11,
                 "name: '[' without a closing ']' (write \\[ for the character itself)");
    expect_error("[kernel k]\npriority = 1\nlibrary = \"lib\\\"\n", 3, 15,
                 "library: a backslash at the end escapes nothing (write \\\\ for the character "
                 "itself)");
    expect_error("[kernel k]\npriority = 1\nhost = [z-a]\n", 3, 9,
                 "host: a range in a set must go upwards");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_have_open_and_closed_ends),
        cmocka_unit_test(ranges_hold_negative_numbers),
        cmocka_unit_test(ranges_that_are_not_given_hold_everything),
        cmocka_unit_test(each_numeric_selector_has_its_bounds),
        cmocka_unit_test(malformed_ranges_are_errors),
        cmocka_unit_test(range_that_holds_nothing_is_an_error),
        cmocka_unit_test(number_that_overflows_is_out_of_range),
        cmocka_unit_test(each_error_of_a_list_is_reported),
        cmocka_unit_test(device_is_an_index_a_uuid_or_a_pci_address),
        cmocka_unit_test(malformed_devices_are_errors),
        cmocka_unit_test(words_of_selectors_are_read),
        cmocka_unit_test(wrong_word_is_an_error_with_all_right_words_and_the_nearest),
        cmocka_unit_test(yes_and_no_are_the_only_truth_values),
        cmocka_unit_test(domain_map_takes_two_domains_with_blanks_or_a_comma),
        cmocka_unit_test(malformed_domain_maps_are_errors),
        cmocka_unit_test(physical_domain_is_both_entries_of_the_map),
        cmocka_unit_test(cluster_takes_one_to_three_dimensions),
        cmocka_unit_test(malformed_clusters_are_errors),
        cmocka_unit_test(carveout_is_a_word_or_a_percentage),
        cmocka_unit_test(priority_is_a_whole_number),
        cmocka_unit_test(remaining_settings_are_read),
        cmocka_unit_test(programmatic_serialization_cannot_be_injected),
        cmocka_unit_test(every_setting_can_be_left_alone),
        cmocka_unit_test(every_attribute_of_a_kernel_can_be_taken_away),
        cmocka_unit_test(nothing_can_be_taken_away_from_a_new_stream),
        cmocka_unit_test(when_set_holds_for_all_settings_of_its_rule),
        cmocka_unit_test(modifiers_are_read),
        cmocka_unit_test(repeated_selectors_add_up),
        cmocka_unit_test(malformed_patterns_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
