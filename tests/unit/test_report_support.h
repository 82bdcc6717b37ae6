/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_REPORT_SUPPORT_H
#define CUDAPOLICY_TEST_REPORT_SUPPORT_H

/* The report is one for each process, so each scenario runs in a child of its own. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "report/report.h"

/* cmocka's assertions jump back into the parent's list of tests; a child ends instead. */
#define expect(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(99);                                                                             \
        }                                                                                          \
    } while (0)

enum { SETTING_DOMAIN, SETTING_CLUSTER, SETTING_COUNT };
enum { RULE_SMALL, RULE_UNUSED, RULE_STREAM, RULE_COUNT };
enum { ENTRY_LAUNCH, ENTRY_STREAM, ENTRY_COUNT };

static char folder[PATH_MAX]; /* of the current test */

static inline const char *in_folder(const char *name)
{
    static char paths[8][PATH_MAX + 256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/cudapolicy-report-XXXXXX", base == NULL ? "/tmp" : base);
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static inline size_t count_files(void)
{
    size_t count = 0;
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        count += entry->d_name[0] != '.';
    if (directory != NULL)
        closedir(directory);
    return count;
}

static inline int remove_folder(void **state)
{
    (void)state;
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(in_folder(entry->d_name));
    }
    if (directory != NULL)
        closedir(directory);
    return rmdir(folder);
}

static inline bool exists(const char *name)
{
    struct stat status;
    return lstat(in_folder(name), &status) == 0;
}

/* Runs scenario in a child; returns what wait says of it. */
static inline int run_child(void (*scenario)(void))
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(110);
        scenario();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

#define assert_child_succeeds(scenario)                                                            \
    do {                                                                                           \
        int status_ = run_child(scenario);                                                         \
        assert_true(WIFEXITED(status_));                                                           \
        assert_int_equal(WEXITSTATUS(status_), 0);                                                 \
    } while (0)

static inline void start_report(const char *path)
{
    static const char *const settings[] = {"mem_sync_domain", "cluster_dim"};
    static const struct report_rule_name rules[] = {
        {"kernel", "small", 3}, {"kernel", "unused", 7}, {"stream", "background", 11}};
    static const char *const entries[] = {"cuLaunchKernel", "cuStreamCreate"};
    static const char *const modes[] = {"enforce", "observe"};
    static const struct report_start defaults = {.setting_names = settings,
                                                 .setting_count = SETTING_COUNT,
                                                 .rules = rules,
                                                 .rule_count = RULE_COUNT,
                                                 .entry_names = entries,
                                                 .entry_count = ENTRY_COUNT,
                                                 .mode_names = modes,
                                                 .mode_count = 2};
    struct report_start start = defaults;
    start.path = path;
    report_start(&start);
}

static inline uint32_t enter_kernel(const char *mangled)
{
    return report_kernel(&(struct report_kernel_info){
        .mangled = mangled, .name = mangled, .signature = mangled, .library = "libapp.so"});
}

static const struct report_result result_none = {.rule = REPORT_RULE_NONE};
static const struct report_result result_applied = {.outcome = REPORT_OUTCOME_APPLIED,
                                                    .rule = RULE_SMALL};

/* A cell of a kernel on which rule "small" set the domain. */
static inline uint32_t enter_cell_applied(uint32_t kernel)
{
    const struct report_result results[SETTING_COUNT] = {result_applied, result_none};
    return report_cell(kernel, results, 0);
}

static inline uint32_t enter_cell_unmatched(uint32_t kernel)
{
    const struct report_result results[SETTING_COUNT] = {result_none, result_none};
    return report_cell(kernel, results, 0);
}

/* The report of a counters' file, in the test's own process. */
static inline json_t *read_counters(const char *name)
{
    char error[512] = "", *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    if (!report_counters_to_json(in_folder(name), stream, error, sizeof error))
        fail_msg("%s", error);
    fclose(stream);
    json_t *report = json_loads(text, 0, NULL);
    free(text);
    assert_non_null(report);
    return report;
}

static inline json_t *read_report(const char *name)
{
    json_error_t error;
    json_t *report = json_load_file(in_folder(name), 0, &error);
    if (report == NULL)
        fail_msg("%s: %s", name, error.text);
    return report;
}

static inline int64_t integer(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static inline const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    assert_non_null(value);
    return value;
}

/* The element of an array whose member key is value; NULL when there is none. */
static inline json_t *find(const json_t *array, const char *key, const char *value)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *element = json_array_get(array, i);
        const char *found = json_string_value(json_object_get(element, key));
        if (found != NULL && strcmp(found, value) == 0)
            return element;
    }
    return NULL;
}

static inline json_t *find_kernel_json(const json_t *report, const char *mangled)
{
    return find(json_object_get(report, "kernels"), "mangled", mangled);
}

#endif
