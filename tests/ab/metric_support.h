/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_METRIC_SUPPORT_H
#define CUDAPOLICY_TEST_METRIC_SUPPORT_H

/* Files of a run in a folder of the test's own. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[PATH_MAX - 256];
static char output[PATH_MAX], errors[PATH_MAX];

static inline const char *in_folder(const char *name)
{
    static char paths[8][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline int make_folder(void **state)
{
    const char *base = getenv("TMPDIR");

    (void)state;
    snprintf(folder, sizeof folder, "%s/cudapolicy-ab-XXXXXX", base == NULL ? "/tmp" : base);
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(output, sizeof output, "%s/output", folder);
    snprintf(errors, sizeof errors, "%s/errors", folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;

    (void)state;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            unlink(in_folder(entry->d_name));
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return rmdir(folder);
}

static inline void write_bytes(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static inline void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' does not contain '%s'", text, part);
    }
}

#define in_its_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

#endif
