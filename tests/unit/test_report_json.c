/* SPDX-License-Identifier: Apache-2.0 */
/* What the report says, and that no file, however damaged, does more than give a wrong report. */
#include "test_report_support.h"

#include "report/json.h"
#include "report/layout.h"

static void does_everything(void)
{
    start_report(in_folder("report.json"));
    report_fact("policy", "path", "%s", "p.ini");
    report_fact("policy", "sha256", "%s", "00");
    report_fact("driver", "version", "%d", 13000);
    uint32_t kernel = report_kernel(&(struct report_kernel_info){.mangled = "_ZN3foo3barEi",
                                                                 .name = "foo::bar",
                                                                 .signature = "foo::bar(int)",
                                                                 .library = "libapp.so",
                                                                 .demangled = true});
    report_kernel_shape(kernel, 4, 128, 0);
    report_kernel_shape(kernel, 64, 32, 48 * 1024);

    const struct report_result both[SETTING_COUNT] = {
        {REPORT_OUTCOME_APPLIED, REPORT_REASON_NONE, RULE_SMALL},
        {REPORT_OUTCOME_REFUSED, REPORT_REASON_GRID_NOT_DIVISIBLE, RULE_SMALL}};
    const struct report_result by_driver[SETTING_COUNT] = {
        {REPORT_OUTCOME_APPLIED, REPORT_REASON_NONE, RULE_SMALL},
        {REPORT_OUTCOME_REFUSED, REPORT_REASON_REFUSED_BY_DRIVER, RULE_SMALL}};
    const struct report_result same[SETTING_COUNT] = {
        {REPORT_OUTCOME_ALREADY_SO, REPORT_REASON_NONE, RULE_STREAM},
        {REPORT_OUTCOME_KEPT, REPORT_REASON_OWN_VALUE, RULE_SMALL}};
    report_count_launch(report_cell(kernel, both, 0), REPORT_LAUNCH_EAGER, 1000);
    report_count_launch(report_cell(kernel, both, 0), REPORT_LAUNCH_REPLAYED, 500);
    report_count_launch(report_cell(kernel, by_driver, 912), REPORT_LAUNCH_EAGER, 1);
    report_count_launch(report_cell(kernel, same, 0), REPORT_LAUNCH_NODE, 20);
    report_count_launch(enter_cell_unmatched(kernel), REPORT_LAUNCH_CAPTURED, 7);
    report_count_launch(enter_cell_unmatched(enter_kernel("_Z5otherv")), REPORT_LAUNCH_EAGER, 9);
    enter_cell_applied(enter_kernel("_Z13neverlaunchedv"));

    const struct report_result on_stream[SETTING_COUNT] = {
        {REPORT_OUTCOME_APPLIED, REPORT_REASON_NONE, RULE_STREAM}, result_none};
    for (unsigned i = 0; i < 3; i++)
        report_stream(&(struct report_stream_info){.library = "libapp.so",
                                                   .kind = "created",
                                                   .device = 0,
                                                   .flags = 1,
                                                   .priority = -5,
                                                   .rule = RULE_STREAM,
                                                   .results = on_stream});
    report_stream(&(struct report_stream_info){
        .library = "libapp.so", .kind = "legacy", .device = -1, .rule = REPORT_RULE_NONE});
    for (unsigned i = 0; i < 2; i++)
        report_note("warning", "not attached: %s", "libx.so");
    report_finish();
}

static json_t *report_of_everything(void)
{
    int status = run_child(does_everything);
    assert_int_equal(status, 0);
    return read_report("report.json");
}

static void test_header_and_facts(void **state)
{
    (void)state;
    json_t *report = report_of_everything();
    assert_string_equal(text(report, "format"), "cudapolicy report");
    assert_int_equal(integer(report, "schema"), 1);
    assert_true(json_is_true(json_object_get(report, "complete")));
    assert_string_equal(text(report, "mode"), "enforce");
    const json_t *process = json_object_get(report, "process");
    assert_true(strlen(text(process, "host")) > 0);
    assert_true(strlen(text(process, "argv0")) > 0);
    assert_int_equal(strlen(text(process, "start")), strlen("2026-01-01T00:00:00.000Z"));
    assert_true(strcmp(text(process, "start"), text(process, "end")) <= 0);
    const json_t *facts = json_object_get(report, "facts");
    assert_int_equal(json_object_size(facts), 2);
    assert_string_equal(text(json_object_get(facts, "policy"), "path"), "p.ini");
    assert_string_equal(text(json_object_get(facts, "driver"), "version"), "13000");
    const json_t *notes = json_object_get(report, "notes");
    assert_int_equal(json_array_size(notes), 1);
    assert_string_equal(text(json_array_get(notes, 0), "severity"), "warning");
    assert_int_equal(integer(json_array_get(notes, 0), "count"), 2);
    json_decref(report);
}

static void test_kernels_are_listed_by_launches_with_what_became_of_settings(void **state)
{
    (void)state;
    json_t *report = report_of_everything();
    const json_t *kernels = json_object_get(report, "kernels");
    assert_int_equal(json_array_size(kernels), 2); /* those that were launched */
    const json_t *kernel = json_array_get(kernels, 0);
    assert_string_equal(text(kernel, "name"), "foo::bar");
    assert_string_equal(text(kernel, "signature"), "foo::bar(int)");
    assert_string_equal(text(kernel, "mangled"), "_ZN3foo3barEi");
    assert_string_equal(text(kernel, "library"), "libapp.so");
    assert_true(json_is_true(json_object_get(kernel, "demangled")));
    assert_int_equal(integer(kernel, "launches"), 1528);
    const json_t *kinds = json_object_get(kernel, "launches_by_kind");
    assert_int_equal(integer(kinds, "eager"), 1001);
    assert_int_equal(integer(kinds, "captured"), 7);
    assert_int_equal(integer(kinds, "node"), 20);
    assert_int_equal(integer(kinds, "replayed"), 500);
    const json_t *shapes = json_object_get(kernel, "shapes");
    json_t *wanted = json_pack("{s:[i,i], s:[i,i], s:[i,i]}", "grid_blocks", 4, 64, "block_threads",
                               32, 128, "shared_memory", 0, 49152);
    assert_true(json_equal(shapes, wanted));
    json_decref(wanted);

    const json_t *settings = json_object_get(kernel, "settings");
    assert_int_equal(json_array_size(settings), 5);
    const json_t *applied = find(settings, "outcome", "applied");
    assert_string_equal(text(applied, "setting"), "mem_sync_domain");
    assert_string_equal(text(applied, "rule"), "small");
    assert_string_equal(text(applied, "rule_section"), "kernel");
    assert_int_equal(integer(applied, "launches"), 1501); /* two cells in one */
    const json_t *by_driver = find(settings, "reason", "refused by the driver");
    assert_string_equal(text(by_driver, "outcome"), "refused");
    assert_int_equal(integer(by_driver, "detail"), 912);
    assert_int_equal(integer(by_driver, "launches"), 1);
    const json_t *same = find(settings, "outcome", "already so");
    assert_string_equal(text(same, "rule"), "background");
    assert_string_equal(text(same, "rule_section"), "stream");
    json_decref(report);
}

static void test_rules_are_listed_with_their_sums_and_those_that_matched_nothing(void **state)
{
    (void)state;
    json_t *report = report_of_everything();
    const json_t *rules = json_object_get(report, "rules");
    assert_int_equal(json_array_size(rules), RULE_COUNT);
    const json_t *rule = find(rules, "name", "small");
    assert_string_equal(text(rule, "section"), "kernel");
    assert_int_equal(integer(rule, "line"), 3);
    assert_true(json_is_true(json_object_get(rule, "matched")));
    assert_int_equal(integer(rule, "kernels"), 1);
    assert_int_equal(integer(rule, "launches"), 1521);
    assert_int_equal(integer(rule, "applied"), 1501);
    assert_int_equal(integer(rule, "kept"), 20);
    assert_int_equal(integer(rule, "already_so"), 0);
    const json_t *refused = json_object_get(rule, "refused");
    assert_int_equal(json_object_size(refused), 2);
    assert_int_equal(integer(refused, "grid not divisible by the cluster"), 1500);
    assert_int_equal(integer(refused, "refused by the driver"), 1);

    rule = find(rules, "name", "background");
    assert_int_equal(integer(rule, "already_so"), 20);
    assert_int_equal(integer(json_object_get(rule, "on_streams"), "streams"), 3);
    assert_int_equal(integer(json_object_get(rule, "on_streams"), "applied"), 3);

    rule = find(rules, "name", "unused");
    assert_true(json_is_false(json_object_get(rule, "matched")));
    assert_int_equal(integer(rule, "launches"), 0);

    const json_t *unmatched = json_object_get(report, "unmatched");
    assert_int_equal(json_array_size(unmatched), 2);
    assert_string_equal(text(json_array_get(unmatched, 0), "name"), "_Z5otherv");
    assert_int_equal(integer(json_array_get(unmatched, 0), "launches"), 9);
    assert_int_equal(integer(json_array_get(unmatched, 1), "launches"), 7);
    json_decref(report);
}

static void test_streams_alike_are_counted_together(void **state)
{
    (void)state;
    json_t *report = report_of_everything();
    const json_t *streams = json_object_get(report, "streams");
    assert_int_equal(json_array_size(streams), 2);
    const json_t *stream = find(streams, "kind", "created");
    assert_int_equal(integer(stream, "count"), 3);
    assert_int_equal(integer(stream, "priority"), -5);
    assert_string_equal(text(stream, "rule"), "background");
    assert_int_equal(json_array_size(json_object_get(stream, "settings")), 1);
    stream = find(streams, "kind", "legacy");
    assert_int_equal(integer(stream, "device"), -1);
    assert_true(json_is_null(json_object_get(stream, "rule")));
    json_decref(report);
}

static void uses_odd_bytes(void)
{
    start_report(in_folder("report.json"));
    report_fact("a\xff", "b\xc3(", "%s", "\xed\xa0\x80 \"quoted\" \\ \n \x01");
    report_note("warning", "%s", "caf\xc3\xa9 \xf0\x9f\x98\x80 \xf4\x90\x80\x80 \xc0\xaf \xe2\x82");
    report_count_launch(enter_cell_applied(enter_kernel("_Z3\xfe\xff\x80v")), REPORT_LAUNCH_EAGER,
                        1);
    report_finish();
}

static void test_bytes_that_are_no_utf8_are_escaped(void **state)
{
    (void)state;
    assert_child_succeeds(uses_odd_bytes);
    json_t *report = read_report("report.json");
    assert_non_null(find_kernel_json(report, "_Z3\\xfe\\xff\\x80v"));
    const json_t *section = json_object_get(json_object_get(report, "facts"), "a\\xff");
    assert_string_equal(text(section, "b\\xc3("), "\\xed\\xa0\\x80 \"quoted\" \\ \n \x01");
    assert_string_equal(text(json_array_get(json_object_get(report, "notes"), 0), "text"),
                        "caf\xc3\xa9 \xf0\x9f\x98\x80 \\xf4\\x90\\x80\\x80 \\xc0\\xaf \\xe2\\x82");
    json_decref(report);
}

static void test_escaping_leaves_exactly_what_jansson_accepts(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (unsigned round = 0; round < 200000; round++) {
        static const unsigned char edges[] = {0x7f, 0x80, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0,
                                              0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3,
                                              0xf4, 0xf5, 0xff, 0x8f, 0x90, 0x9f, 0xa0, 'a'};
        char bytes[7] = "";
        for (size_t i = 0; i < 6; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            bytes[i] = (char)edges[random % sizeof edges];
        }
        json_t *plain = json_string(bytes), *made = report_json_text(bytes);
        assert_non_null(made);
        if (plain != NULL)
            assert_string_equal(json_string_value(made), bytes);
        json_decref(plain);
        json_decref(made);
    }
}

static void counts_up_to_the_limit(void)
{
    start_report(in_folder("report.json"));
    report_count_launch(enter_cell_applied(enter_kernel("_Z1av")), REPORT_LAUNCH_REPLAYED,
                        UINT64_MAX);
    report_finish();
}

static void test_counts_beyond_63_bits_are_cut(void **state)
{
    (void)state;
    assert_child_succeeds(counts_up_to_the_limit);
    json_t *report = read_report("report.json");
    assert_int_equal(integer(report, "launches"), INT64_MAX);
    json_decref(report);
}

/* Damaged files. */

static void leaves_a_file(void)
{
    start_report(in_folder("file"));
    for (unsigned i = 0; i < 30; i++) {
        char name[32];
        snprintf(name, sizeof name, "_Z6kernel%uv", i);
        uint32_t kernel = enter_kernel(name);
        report_kernel_shape(kernel, i, i, i);
        report_count_launch(enter_cell_applied(kernel), REPORT_LAUNCH_EAGER, i);
        report_count_launch(enter_cell_unmatched(kernel), REPORT_LAUNCH_NODE, i);
        report_fact("section", name, "%u", i);
        report_note("info", "%u", i);
        report_stream(
            &(struct report_stream_info){.library = name, .kind = "created", .rule = RULE_STREAM});
    }
    _exit(0);
}

static bool reads(const char *name, char *error, size_t size)
{
    char *made = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&made, &length);
    assert_non_null(stream);
    error[0] = '\0';
    bool read = report_counters_to_json(in_folder(name), stream, error, size);
    fclose(stream);
    if (read) { /* what is written is JSON, whatever was read */
        json_t *report = json_loads(made, 0, NULL);
        assert_non_null(report);
        json_decref(report);
    } else {
        assert_true(strlen(error) > 0);
    }
    free(made);
    return read;
}

static void test_other_files_are_refused_with_a_reason(void **state)
{
    (void)state;
    char error[512];
    FILE *stream = fopen(in_folder("text"), "w");
    for (unsigned i = 0; i < 10000; i++)
        fputs("not counters ", stream);
    fclose(stream);
    stream = fopen(in_folder("empty"), "w");
    fclose(stream);
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_false(reads("text", error, sizeof error));
    assert_non_null(strstr(error, "not a counters' file"));
    assert_false(reads("empty", error, sizeof error));
    assert_false(reads("fifo", error, sizeof error));
    assert_non_null(strstr(error, "not a regular file"));
    assert_false(reads("", error, sizeof error));
    assert_false(reads("nowhere", error, sizeof error));
    assert_non_null(strstr(error, "No such file"));
}

static void overwrite(const char *name, off_t offset, const void *data, size_t size)
{
    int descriptor = open(in_folder(name), O_WRONLY);
    assert_true(descriptor >= 0);
    assert_int_equal(pwrite(descriptor, data, size, offset), size);
    close(descriptor);
}

static void test_file_of_another_layout_is_refused(void **state)
{
    (void)state;
    char error[512];
    uint32_t version = 99;
    assert_child_succeeds(leaves_a_file);
    assert_true(reads("file.counters", error, sizeof error));
    overwrite("file.counters", offsetof(struct report_layout, version), &version, sizeof version);
    assert_false(reads("file.counters", error, sizeof error));
    assert_non_null(strstr(error, "version 99"));
}

static void test_truncated_file_is_read_as_far_as_it_goes(void **state)
{
    (void)state;
    char error[512];
    assert_child_succeeds(leaves_a_file);
    static const off_t sizes[] = {REPORT_FILE_SIZE - 1,       REPORT_OFFSET_SHARDS + 5000,
                                  REPORT_OFFSET_NOTES + 9,    REPORT_OFFSET_KERNELS + 100,
                                  REPORT_OFFSET_STRINGS + 50, sizeof(struct report_header)};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(truncate(in_folder("file.counters"), sizes[i]), 0);
        assert_true(reads("file.counters", error, sizeof error));
        if (sizes[i] < REPORT_OFFSET_SHARDS + 5001) {
            json_t *report = read_counters("file.counters");
            assert_true(json_is_true(json_object_get(report, "partial")));
            assert_true(json_is_false(json_object_get(report, "complete")));
            json_decref(report);
        }
    }
    assert_int_equal(truncate(in_folder("file.counters"), sizeof(struct report_header) - 1), 0);
    assert_false(reads("file.counters", error, sizeof error));
}

/* One string of 2 MiB that every row names would make a report of 64 GiB. */
static void test_made_up_file_does_not_blow_up(void **state)
{
    (void)state;
    enum { LENGTH = 2 * 1024 * 1024 };
    assert_child_succeeds(leaves_a_file);
    char *long_text = malloc(LENGTH);
    assert_non_null(long_text);
    memset(long_text, 'x', LENGTH);
    overwrite("file.counters", REPORT_OFFSET_STRINGS, long_text, LENGTH);
    uint64_t strings = LENGTH;
    uint32_t all[] = {10, REPORT_KERNEL_LIMIT, REPORT_CELL_LIMIT, 10, REPORT_FACT_LIMIT, 10};
    overwrite("file.counters", offsetof(struct report_header, counts.strings), &strings,
              sizeof strings);
    overwrite("file.counters", offsetof(struct report_header, counts.rules), all, sizeof all);
    /* Every kernel is launched, every fact has a name. */
    memset(long_text, 1, LENGTH);
    overwrite("file.counters", REPORT_OFFSET_SHARDS + 4096, long_text, 32 * REPORT_CELL_LIMIT);
    for (uint32_t cell = 0; cell < REPORT_CELL_LIMIT; cell++)
        overwrite("file.counters",
                  REPORT_OFFSET_CELLS + (off_t)(cell * sizeof(struct report_cell_row)), &cell,
                  sizeof cell);
    for (uint32_t kernel = 0; kernel < REPORT_KERNEL_LIMIT; kernel++) {
        uint32_t offsets[4] = {kernel, kernel, kernel, kernel};
        overwrite("file.counters",
                  REPORT_OFFSET_KERNELS + (off_t)(kernel * sizeof(struct report_kernel_row)),
                  offsets, sizeof offsets);
    }
    free(long_text);
    json_t *report = read_counters("file.counters");
    assert_true(json_is_true(json_object_get(report, "partial")));
    json_decref(report);
}

static void test_counts_beyond_their_tables_are_cut(void **state)
{
    (void)state;
    char error[512];
    struct report_header header;
    assert_child_succeeds(leaves_a_file);
    int descriptor = open(in_folder("file.counters"), O_RDONLY);
    assert_int_equal(read(descriptor, &header, sizeof header), sizeof header);
    close(descriptor);
    for (size_t offset = 0; offset < sizeof header.counts; offset += sizeof(uint32_t)) {
        struct report_counts counts = header.counts;
        memset((char *)&counts + offset, 0xff, sizeof(uint32_t));
        overwrite("file.counters", offsetof(struct report_header, counts), &counts, sizeof counts);
        assert_true(reads("file.counters", error, sizeof error));
    }
}

static void exchange(const char *name, off_t offset, const void *data, void *before, size_t size)
{
    int descriptor = open(in_folder(name), O_RDONLY);
    assert_true(descriptor >= 0);
    assert_int_equal(pread(descriptor, before, size, offset), size);
    close(descriptor);
    overwrite(name, offset, data, size);
}

static void test_any_damage_is_survived(void **state)
{
    (void)state;
    char error[512];
    uint64_t random = 88172645463325252u;
    static const struct {
        off_t begin, size;
    } places[] = {{sizeof(struct report_layout),
                   sizeof(struct report_header) - sizeof(struct report_layout) - 4},
                  {REPORT_OFFSET_STRINGS, 1500},
                  {REPORT_OFFSET_RULES, 48},
                  {REPORT_OFFSET_KERNELS, 31 * sizeof(struct report_kernel_row)},
                  {REPORT_OFFSET_CELLS, 61 * sizeof(struct report_cell_row)},
                  {REPORT_OFFSET_STREAMS, 30 * sizeof(struct report_stream_row)},
                  {REPORT_OFFSET_FACTS, 30 * sizeof(struct report_fact_row)},
                  {REPORT_OFFSET_NOTES, 30 * sizeof(struct report_note_row)}};
    assert_child_succeeds(leaves_a_file);
    unsigned read = 0;
    for (unsigned round = 0; round < 300; round++) {
        unsigned char before[4], damage[4];
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t place = random % (sizeof places / sizeof places[0]);
        off_t offset = places[place].begin + (off_t)((random >> 8) % (uint64_t)places[place].size);
        for (size_t i = 0; i < sizeof damage; i++)
            damage[i] = round % 3 == 0 ? 0xff : (unsigned char)(random >> (16 + 8 * i));
        exchange("file.counters", offset, damage, before, sizeof damage);
        read += reads("file.counters", error, sizeof error);
        overwrite("file.counters", offset, before, sizeof before);
    }
    assert_int_equal(read, 300); /* only the layout can make it another kind of file */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, make_folder, remove_folder)
        TEST(header_and_facts),
        TEST(kernels_are_listed_by_launches_with_what_became_of_settings),
        TEST(rules_are_listed_with_their_sums_and_those_that_matched_nothing),
        TEST(streams_alike_are_counted_together),
        TEST(bytes_that_are_no_utf8_are_escaped),
        TEST(escaping_leaves_exactly_what_jansson_accepts),
        TEST(counts_beyond_63_bits_are_cut),
        TEST(other_files_are_refused_with_a_reason),
        TEST(file_of_another_layout_is_refused),
        TEST(truncated_file_is_read_as_far_as_it_goes),
        TEST(made_up_file_does_not_blow_up),
        TEST(counts_beyond_their_tables_are_cut),
        TEST(any_damage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
