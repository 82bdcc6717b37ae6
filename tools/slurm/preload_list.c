/* SPDX-License-Identifier: Apache-2.0 */
#include "preload_list.h"

#include <stdlib.h>
#include <string.h>

static const char separators[] = ": ";
static const char library_name[] = "libcudapolicy.so";

static bool is_ours(const char *entry, size_t length)
{
    const size_t name = sizeof library_name - 1;

    return length >= name && memcmp(entry + length - name, library_name, name) == 0 &&
           (length == name || entry[length - name - 1] == '/');
}

/* The next entry from *list on, its length in *length; NULL at the end. */
static const char *next_entry(const char **list, size_t *length)
{
    const char *entry = *list + strspn(*list, separators);

    *length = strcspn(entry, separators);
    *list = entry + *length;
    return *length > 0 ? entry : NULL;
}

/* The first of ours; NULL: there is none. */
static const char *find(const char *list, size_t *length)
{
    const char *entry;

    while (list != NULL && (entry = next_entry(&list, length)) != NULL) {
        if (is_ours(entry, *length)) {
            return entry;
        }
    }
    return NULL;
}

char *slurm_preload_find(const char *list)
{
    size_t length;
    const char *entry = find(list, &length);

    return entry != NULL ? strndup(entry, length) : NULL;
}

bool slurm_preload_has(const char *list)
{
    size_t length;

    return find(list, &length) != NULL;
}

/* Joins the entries, of ours the first if keep_ours; extra goes to the end unless it is NULL. */
static char *join(const char *list, bool keep_ours, const char *extra)
{
    size_t size = (list != NULL ? strlen(list) : 0) + (extra != NULL ? strlen(extra) : 0) + 2;
    char *result = malloc(size), *end = result;
    const char *entry;
    size_t length;

    while (result != NULL && list != NULL && (entry = next_entry(&list, &length)) != NULL) {
        if (is_ours(entry, length)) {
            if (!keep_ours) {
                continue;
            }
            keep_ours = false;
        }
        if (end != result) {
            *end++ = ':';
        }
        memcpy(end, entry, length);
        end += length;
    }
    if (result == NULL) {
        return NULL;
    }
    *end = '\0';
    if (extra != NULL) {
        strcpy(end, end != result ? ":" : "");
        strcat(end, extra);
    }
    return result;
}

char *slurm_preload_add(const char *list, const char *library)
{
    char *present = slurm_preload_find(list);
    char *result = join(list, true, present == NULL ? library : NULL);

    free(present);
    return result;
}

char *slurm_preload_remove(const char *list)
{
    return join(list, false, NULL);
}
