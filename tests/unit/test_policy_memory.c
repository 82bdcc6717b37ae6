/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No memory: each allocation in turn fails. The policy is then NULL with an error counted, and
 * nothing stays allocated. Linked with -Wl,--wrap= for malloc, calloc, realloc and free.
 */
#include "test_policy_support.h"

#include "policy/combine.h"
#include "policy/site.h"

#include <unistd.h>

static long allocations_until_failure = -1; /* negative: none fails */
static long failure_count;
static long live_count;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

static bool fails(void)
{
    if (allocations_until_failure < 0 || allocations_until_failure-- != 0) {
        return false;
    }
    allocations_until_failure = -1;
    failure_count++;
    return true;
}

void *__wrap_malloc(size_t size)
{
    void *memory = fails() ? NULL : __real_malloc(size);

    live_count += memory != NULL;
    return memory;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *memory = fails() ? NULL : __real_calloc(count, size);

    live_count += memory != NULL;
    return memory;
}

void *__wrap_realloc(void *memory, size_t size)
{
    void *larger = fails() ? NULL : __real_realloc(memory, size);

    live_count += larger != NULL && memory == NULL;
    return larger;
}

void __wrap_free(void *memory)
{
    live_count -= memory != NULL;
    __real_free(memory);
}

/* Long enough that every kind of list grows, inih's line too, and a second block is needed. */
static char *long_policy(bool good, size_t *length)
{
    size_t size = 200000;
    char *text = __real_malloc(size);
    size_t used;

    assert_non_null(text);
    used = (size_t)snprintf(
        text, size,
        "%s[partition p]\nsm_count = 8\ndevice = 0,1,2,3\n[stream s]\nindex = 1,2,3,4,5\n"
        "partition = p\n[stream t]\nindex = 6\nlocality_domain = 1\n[kernel long]\nname = ",
        POLICY_HEADER);
    memset(text + used, 'a', 30000);
    used += 30000;
    used += (size_t)snprintf(text + used, size - used,
                             "\npriority = 1\ndevice = 0,1,2,3\nstream = s\nstream = s\n");
    for (int i = 0; i < 40; i++) {
        used +=
            (size_t)snprintf(text + used, size - used, "[kernel k%d]\nname = n%d\nname = m%d\n%s",
                             i, i, i, good ? "priority = 2\n" : "priority = x\n");
    }
    used += (size_t)snprintf(text + used, size - used,
                             "[tune]\nvary = k0.priority = 1, 2, 3\nvary = p.sm_count = 8, 16\n"
                             "vary = s.partition = p, leave\nvary = k1.device = 0, 1\n"
                             "[env]\nA = 1\nB = 2\nC = \"\"\n[env replace]\nD = 4\nE = 5\n"
                             "[expect]\nrule k0: launches > 0, refused = 0\n"
                             "rule s: streams > 1\nrule k1: kept = 0, node < 3\n");
    *length = used;
    return text;
}

static void reading_fails_cleanly_whichever_allocation_fails(bool good)
{
    size_t length;
    char *text = long_policy(good, &length);
    long failure = 0;

    for (;; failure++) {
        struct policy_diagnostics diagnostics = {0};
        long failures_before = failure_count, live_before = live_count;

        diagnostics.file = strdup("test.ini"); /* inside libc, so not counted */
        allocations_until_failure = failure;
        struct policy *policy = policy_parse(text, length, "test.ini", &diagnostics);
        bool failed = failure_count != failures_before;
        allocations_until_failure = -1;
        if (!good) {
            assert_null(policy);
        }
        if (policy == NULL) {
            assert_true(diagnostics.error_count != 0);
        } else {
            assert_int_equal(policy->rule_count, 43);
            assert_int_equal(policy->partition_count, 2);
            assert_int_equal(policy->variation_count, 4);
            assert_int_equal(policy->variable_count, 5);
            assert_int_equal(policy->expectation_count, 5);
        }
        policy_free(policy);
        live_count++; /* strdup's */
        policy_diagnostics_release(&diagnostics);
        assert_int_equal(live_count, live_before);
        if (!failed) {
            break;
        }
    }
    assert_true(failure > 10);
    __real_free(text);
}

static void good_policy_is_refused_cleanly_without_memory(void **state)
{
    (void)state;
    reading_fails_cleanly_whichever_allocation_fails(true);
}

static void bad_policy_is_refused_cleanly_without_memory(void **state)
{
    (void)state;
    reading_fails_cleanly_whichever_allocation_fails(false);
}

static const char site_text[] =
    POLICY_HEADER "[site]\nexclude = a\nexclude = b\nexclude = c\nreports = /r\n[locked]\n"
                  "[partition p]\nsm_count = 8\n[kernel l]\npartition = p\n[defaults]\n"
                  "[stream d]\nlocality_domain = 1\n";
static const char job_text[] =
    POLICY_HEADER "[partition p]\nsm_count = 8\n[kernel j]\npartition = p\n"
                  "[stream s]\nlocality_domain = 1\n";

/* Of the two that are read first, what is there is freed. */
static struct policy *read_and_combine(struct policy_diagnostics *diagnostics)
{
    struct policy *site =
        policy_site_parse(site_text, sizeof site_text - 1, "site.ini", diagnostics);
    struct policy *job = policy_parse(job_text, sizeof job_text - 1, "job.ini", diagnostics);
    struct policy *policy = NULL;

    if (site != NULL && job != NULL) {
        policy = policy_combine(site, job, diagnostics);
    }
    if (policy == NULL) {
        policy_free(site);
        policy_free(job);
    }
    return policy;
}

static void combining_fails_cleanly_whichever_allocation_fails(void **state)
{
    bool failed = true;
    long failure = 0;

    (void)state;
    for (; failed; failure++) {
        struct policy_diagnostics diagnostics = {.errors_only = true};
        long failures_before = failure_count, live_before = live_count;

        diagnostics.file = strdup("test.ini"); /* inside libc, so not counted */
        allocations_until_failure = failure;
        struct policy *policy = read_and_combine(&diagnostics);
        failed = failure_count != failures_before;
        allocations_until_failure = -1;
        assert_true(policy != NULL || diagnostics.error_count != 0);
        assert_true(failed || policy->rule_count == 4);
        policy_free(policy);
        live_count++; /* strdup's */
        policy_diagnostics_release(&diagnostics);
        assert_int_equal(live_count, live_before);
    }
    assert_true(failure > 10);
}

static void error_without_memory_for_its_message_is_counted(void **state)
{
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    for (long failure = 0; failure < 2; failure++) {
        allocations_until_failure = failure;
        policy_diagnose(&diagnostics, POLICY_ERROR, (struct policy_place){1, 1}, "message");
        allocations_until_failure = -1;
        assert_int_equal(diagnostics.error_count, failure + 1);
        assert_int_equal(diagnostics.count, 0);
    }
    policy_diagnostics_release(&diagnostics);
}

static void file_is_refused_cleanly_without_memory(void **state)
{
    char path[] = "/tmp/policy-memory-XXXXXX";
    int file = mkstemp(path);
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, POLICY_HEADER, strlen(POLICY_HEADER)), strlen(POLICY_HEADER));
    close(file);
    allocations_until_failure = 0;
    struct policy *policy = policy_load(path, &diagnostics);
    allocations_until_failure = -1;
    unlink(path);
    assert_null(policy);
    assert_int_equal(diagnostics.error_count, 1);
    assert_string_equal(diagnostics.items[0].message, "cannot read the file: out of memory");
    policy_diagnostics_release(&diagnostics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_policy_is_refused_cleanly_without_memory),
        cmocka_unit_test(bad_policy_is_refused_cleanly_without_memory),
        cmocka_unit_test(combining_fails_cleanly_whichever_allocation_fails),
        cmocka_unit_test(error_without_memory_for_its_message_is_counted),
        cmocka_unit_test(file_is_refused_cleanly_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
