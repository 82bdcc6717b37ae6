/* SPDX-License-Identifier: Apache-2.0 */
#include "nearest_kernel.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "policy/suggest.h"

enum {
    EFFORT_LIMIT = 50 * 1000 * 1000, /* bytes times bytes: less than a second */
};

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* The name with one '#' for each number and without a version at its end (_v2, _3): names of
 * kernels carry architectures, tile sizes and versions. */
static char *without_numbers(const char *name)
{
    char *text = memory_allocate(strlen(name) + 1, 1), *end = text;

    for (; *name != '\0'; name++) {
        if (!is_digit(*name)) {
            *end++ = *name;
        } else if (end == text || end[-1] != '#') {
            *end++ = '#';
        }
    }
    *end = '\0';
    if (end > text && end[-1] == '#') {
        end--;
        end -= end > text + 1 && (end[-1] == 'v' || end[-1] == 'V');
        end -= end > text + 1 && end[-1] == '_';
        *end = '\0';
    }
    return text;
}

static const char *last_component(const char *name)
{
    const char *last = name;

    for (const char *next = name; (next = strstr(next, "::")) != NULL;) {
        next += 2;
        last = next;
    }
    return last;
}

/* What every edit distance is at least: bytes of one that the other lacks. Cheap, and enough to
 * leave out most candidates. */
static size_t least_distance(const char *one, const char *other)
{
    int counts[256] = {0};
    size_t more = 0, fewer = 0;

    for (; *one != '\0'; one++) {
        counts[(unsigned char)*one]++;
    }
    for (; *other != '\0'; other++) {
        counts[(unsigned char)*other]--;
    }
    for (int i = 0; i < 256; i++) {
        more += counts[i] > 0 ? (size_t)counts[i] : 0;
        fewer += counts[i] < 0 ? (size_t)-counts[i] : 0;
    }
    return more > fewer ? more : fewer;
}

static size_t measured(const char *one, const char *other, struct nearest_effort *effort)
{
    size_t work = strnlen(one, SUGGEST_LENGTH_LIMIT) * strnlen(other, SUGGEST_LENGTH_LIMIT);

    if (effort->spent + work > EFFORT_LIMIT) {
        return least_distance(one, other);
    }
    effort->spent += work;
    return suggest_distance(one, other);
}

/* False when the candidate is not near. */
static bool judge(const struct results_kernel *kernel, const char *numberless,
                  struct nearest_kernel *candidate, struct nearest_effort *effort)
{
    const char *name = kernel->name, *other = candidate->kernel->name;
    char *other_numberless = without_numbers(other);
    bool near = true;
    size_t limit = strlen(name) / 3 > 0 ? strlen(name) / 3 : 1;

    if (strcmp(name, other) == 0) {
        candidate->how = NEAREST_ARGUMENTS;
        candidate->distance = measured(kernel->signature, candidate->kernel->signature, effort);
    } else if (strcmp(numberless, other_numberless) == 0) {
        candidate->how = NEAREST_VERSION;
        candidate->distance = measured(name, other, effort);
    } else if (strcmp(last_component(numberless), last_component(other_numberless)) == 0) {
        candidate->how = NEAREST_NAMESPACE;
        candidate->distance = measured(name, other, effort);
    } else {
        candidate->how = NEAREST_SPELLING;
        near = least_distance(name, other) <= limit;
        if (near) {
            candidate->distance = measured(name, other, effort);
            near = candidate->distance <= limit && candidate->distance < strlen(name);
        }
    }
    free(other_numberless);
    return near;
}

static bool is_nearer(const struct nearest_kernel *one, const struct nearest_kernel *other)
{
    if (one->how != other->how) {
        return one->how < other->how;
    }
    if (one->distance != other->distance) {
        return one->distance < other->distance;
    }
    return one->kernel->launches.total > other->kernel->launches.total;
}

size_t nearest_kernels(const struct results_kernel *kernel,
                       const struct results_kernel *const *candidates, size_t count,
                       struct nearest_effort *effort, struct nearest_kernel *nearest)
{
    char *numberless = without_numbers(kernel->name);
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        struct nearest_kernel candidate = {.kernel = candidates[i]};
        size_t place;

        if (!judge(kernel, numberless, &candidate, effort)) {
            continue;
        }
        for (place = found; place > 0 && is_nearer(&candidate, &nearest[place - 1]); place--) {
            if (place < NEAREST_KERNELS) {
                nearest[place] = nearest[place - 1];
            }
        }
        if (place < NEAREST_KERNELS) {
            nearest[place] = candidate;
            found += found < NEAREST_KERNELS;
        }
    }
    free(numberless);
    return found;
}

const char *nearest_how_text(enum nearest_how how)
{
    switch (how) {
    case NEAREST_ARGUMENTS:
        return "other template arguments or parameters";
    case NEAREST_VERSION:
        return "other numbers in the name";
    case NEAREST_NAMESPACE:
        return "another namespace";
    case NEAREST_SPELLING:
        break;
    }
    return "a similar name";
}
