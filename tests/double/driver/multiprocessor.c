/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The multiprocessors (SMs) of a device by number, and what they belong to: a graphics processing
 * cluster (GPC), which bounds thread-block clusters and what is co-scheduled, and a locality
 * domain.
 *
 * SMs are numbered in the order of the configuration: domain 0 first, and those of no domain last.
 * Which numbers a real device gives out is not documented; tests may rely on the order here.
 */
#include "driver.h"
#include <string.h>

void sm_set_add(struct sm_set *set, unsigned int sm)
{
    set->bits[sm / 64] |= UINT64_C(1) << (sm % 64);
}

bool sm_set_has(const struct sm_set *set, unsigned int sm)
{
    return (set->bits[sm / 64] >> (sm % 64) & 1) != 0;
}

unsigned int sm_set_count(const struct sm_set *set)
{
    unsigned int count = 0;
    for (size_t i = 0; i < SM_WORDS; i++)
        count += (unsigned int)__builtin_popcountll(set->bits[i]);
    return count;
}

void sm_set_unite(struct sm_set *set, const struct sm_set *other)
{
    for (size_t i = 0; i < SM_WORDS; i++)
        set->bits[i] |= other->bits[i];
}

void sm_set_remove(struct sm_set *set, const struct sm_set *other)
{
    for (size_t i = 0; i < SM_WORDS; i++)
        set->bits[i] &= ~other->bits[i];
}

void sm_set_fill(struct sm_set *set, const struct sm_set *from, unsigned int count)
{
    unsigned int have = sm_set_count(set);
    for (unsigned int sm = 0; sm < SM_MAX && have < count; sm++)
        if (sm_set_has(from, sm) && !sm_set_has(set, sm)) {
            sm_set_add(set, sm);
            have++;
        }
}

/* "0-15,20" */
void text_sm_set(struct text *text, const struct sm_set *set)
{
    const char *separator = "";
    for (unsigned int sm = 0; sm < SM_MAX; sm++) {
        if (!sm_set_has(set, sm))
            continue;
        unsigned int last = sm;
        while (last + 1 < SM_MAX && sm_set_has(set, last + 1))
            last++;
        text_add(text, last == sm ? "%s%u" : "%s%u-%u", separator, sm, last);
        separator = ",";
        sm = last;
    }
    if (separator[0] == '\0')
        text_add(text, "none");
}

/* Assumed for MPS: the usable SMs are those with the lowest numbers. */
struct sm_set device_sms(void)
{
    struct sm_set set = {{0}};
    int usable = configuration.multiprocessors;
    if (configuration.usable != 0 && configuration.usable < usable)
        usable = configuration.usable;
    for (int sm = 0; sm < usable; sm++)
        sm_set_add(&set, (unsigned int)sm);
    return set;
}

/* --- what an SM belongs to ------------------------------------------------------------------- */

/* Of every SM, worked out when the configuration changes: launches look it up. */
static int domains[SM_MAX], gpcs[SM_MAX];

/* Without a configuration: measured on the H200 are 15 groups of 8 and 12 SMs that are left, and
 * that clusters of 4 find 124 of 132 SMs; these GPCs agree with both. */
static const struct sizes h200 = {8, {18, 18, 18, 18, 16, 16, 16, 12}};

#define GPC_SIZE 16 /* of any other device, from the start of each domain on (assumed) */

int domain_of(unsigned int sm)
{
    return domains[sm];
}

int gpc_of(unsigned int sm)
{
    return gpcs[sm];
}

/* Documented: a device without locality domains has one, which is the whole device. */
int domain_count(void)
{
    return configuration.locality.count == 0 ? 1 : configuration.locality.count;
}

/* Attribute 157 is one number for all domains. Assumed for uneven ones: that of the smallest. */
int domain_multiprocessors(void)
{
    if (configuration.domain_multiprocessors != 0)
        return configuration.domain_multiprocessors;
    if (configuration.locality.count == 0)
        return configuration.multiprocessors;
    int least = configuration.locality.size[0];
    for (int domain = 1; domain < configuration.locality.count; domain++)
        if (configuration.locality.size[domain] < least)
            least = configuration.locality.size[domain];
    return least;
}

/* Index of the part that the SM is in, when the parts follow each other; `none` behind the last. */
static int part_of(const struct sizes *parts, unsigned int sm, int none)
{
    unsigned int end = 0;
    for (int part = 0; part < parts->count; part++) {
        end += (unsigned int)parts->size[part];
        if (sm < end)
            return part;
    }
    return none;
}

void multiprocessors_refresh(void)
{
    const struct sizes *list = NULL;
    if (configuration.gpcs.count != 0)
        list = &configuration.gpcs;
    else if (configuration.multiprocessors == 132 && configuration.locality.count == 0)
        list = &h200;
    unsigned int inside = 0; /* SMs of the GPC so far */
    for (unsigned int sm = 0; sm < SM_MAX; sm++) {
        domains[sm] = 0;
        if (configuration.locality.count != 0)
            domains[sm] = part_of(&configuration.locality, sm, DOMAIN_NONE);
        bool next = sm != 0 && (domains[sm] != domains[sm - 1] || inside == GPC_SIZE);
        inside = next ? 1 : inside + 1;
        gpcs[sm] = sm == 0 ? 0 : gpcs[sm - 1] + next;
        if (list != NULL)
            gpcs[sm] = part_of(list, sm, list->count);
    }
}

struct sm_set gpc_take(struct sm_set *from, unsigned int size)
{
    struct sm_set group = {{0}};
    unsigned int count = 0;
    int gpc = -1, domain = DOMAIN_NONE;
    for (unsigned int sm = 0; sm < SM_MAX && count < size; sm++) {
        if (!sm_set_has(from, sm))
            continue;
        if (gpcs[sm] != gpc || domains[sm] != domain) {
            memset(&group, 0, sizeof(group));
            count = 0;
            gpc = gpcs[sm];
            domain = domains[sm];
        }
        sm_set_add(&group, sm);
        count++;
    }
    if (count < size)
        memset(&group, 0, sizeof(group));
    sm_set_remove(from, &group);
    return group;
}

unsigned int gpc_groups(const struct sm_set *set, unsigned int size)
{
    unsigned int groups = 0, count = 0;
    int gpc = -1;
    for (unsigned int sm = 0; sm < SM_MAX; sm++) {
        if (!sm_set_has(set, sm))
            continue;
        count = gpcs[sm] == gpc ? count + 1 : 1;
        gpc = gpcs[sm];
        if (count % size == 0)
            groups++;
    }
    return groups;
}
