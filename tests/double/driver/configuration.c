/* SPDX-License-Identifier: Apache-2.0 */
/* What a test can set, by RECORDING_DRIVER_<KEY> in the environment or by a call. */
#include "driver.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct configuration configuration;
atomic_bool driver_watched;

static const struct configuration standard = {
    /* The machine the facts were measured on: H200, driver 580 (CUDA 13.0). */
    .version = 13000,         .devices = 1,
    .multiprocessors = 132,   .capability_major = 9,
    .capability_minor = 0,    .domains = 4,
    .cluster_max = 16,        .priority_least = 0,
    .priority_greatest = -5,  .partition_minimum = 8,
    .partition_alignment = 8,
};

static int set_integer(int *target, const char *value, long least, long most)
{
    char *end;
    long number = strtol(value, &end, 10);
    if (end == value || *end != '\0' || number < least || number > most)
        return -1;
    *target = (int)number;
    return 0;
}

static int set_flag(bool *target, const char *value)
{
    int number;
    if (set_integer(&number, value, 0, 1) != 0)
        return -1;
    *target = number != 0;
    return 0;
}

static int set_string(char *target, size_t size, const char *value)
{
    size_t length = strlen(value);
    if (length >= size)
        return -1;
    memcpy(target, value, length + 1);
    return 0;
}

/* "9.0" */
static int set_capability(const char *value)
{
    int major, minor, end = 0;
    if (sscanf(value, "%d.%d%n", &major, &minor, &end) != 2 || value[end] != '\0')
        return -1;
    configuration.capability_major = major;
    configuration.capability_minor = minor;
    return 0;
}

/* "0..-5": least important first, as cuCtxGetStreamPriorityRange reports them. */
static int set_priorities(const char *value)
{
    int least, greatest, end = 0;
    if (sscanf(value, "%d..%d%n", &least, &greatest, &end) != 2 || value[end] != '\0')
        return -1;
    if (least < greatest)
        return -1;
    configuration.priority_least = least;
    configuration.priority_greatest = greatest;
    return 0;
}

static int set_version(const char *v)
{
    return set_integer(&configuration.version, v, 2000, 99990);
}

static int set_devices(const char *v)
{
    return set_integer(&configuration.devices, v, 0, DEVICES_MAX);
}

static int set_multiprocessors(const char *v)
{
    return set_integer(&configuration.multiprocessors, v, 1, SM_MAX);
}

static int set_usable(const char *v)
{
    return set_integer(&configuration.usable, v, 0, SM_MAX);
}

/* "70,70"; an empty value is no list. */
static int set_sizes(struct sizes *sizes, const char *value)
{
    struct sizes list = {0, {0}};
    long sum = 0;
    for (const char *at = value; *at != '\0';) {
        char *end;
        long number = strtol(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || number < 1 || list.count == SIZES_MAX)
            return -1;
        list.size[list.count++] = (int)number;
        sum += number;
        if (sum > SM_MAX || (*end == ',' && end[1] == '\0'))
            return -1;
        at = *end == ',' ? end + 1 : end;
    }
    *sizes = list;
    return 0;
}

static int set_locality(const char *v)
{
    return set_sizes(&configuration.locality, v);
}

static int set_domain_multiprocessors(const char *v)
{
    return set_integer(&configuration.domain_multiprocessors, v, 0, SM_MAX);
}

static int set_gpcs(const char *v)
{
    return set_sizes(&configuration.gpcs, v);
}

static int set_coscheduled(const char *v)
{
    return set_integer(&configuration.coscheduled, v, 0, SM_MAX);
}

static int set_domains(const char *v)
{
    return set_integer(&configuration.domains, v, 1, 64);
}

static int set_cluster_max(const char *v)
{
    return set_integer(&configuration.cluster_max, v, 1, 64);
}

static int set_partition_minimum(const char *v)
{
    return set_integer(&configuration.partition_minimum, v, 1, SM_MAX);
}

static int set_partition_alignment(const char *v)
{
    return set_integer(&configuration.partition_alignment, v, 1, SM_MAX);
}

static int set_unknown_name(const char *v)
{
    return set_integer(&configuration.unknown_name_result, v, 0, 9999);
}

static int set_distinct_pointers(const char *v)
{
    return set_flag(&configuration.distinct_pointers, v);
}

static int set_call_out(const char *v)
{
    return set_flag(&configuration.call_out, v);
}

static int set_keep(const char *v)
{
    return set_flag(&configuration.keep, v);
}

static int set_in_turn(const char *v)
{
    return set_flag(&configuration.in_turn, v);
}

static int set_fork_refused(const char *v)
{
    return set_flag(&configuration.fork_refused, v);
}

static int set_hide(const char *v)
{
    return set_string(configuration.hide, sizeof(configuration.hide), v);
}

static int set_skip(const char *v)
{
    return set_string(configuration.skip, sizeof(configuration.skip), v);
}

static int set_log(const char *v)
{
    if (set_string(configuration.log, sizeof(configuration.log), v) != 0)
        return -1;
    record_reopen();
    return 0;
}

static const struct {
    const char *key;
    int (*set)(const char *value);
} settings[] = {
    {"VERSION", set_version},
    {"DEVICES", set_devices},
    {"SMS", set_multiprocessors},
    {"USABLE_SMS", set_usable},
    {"GPCS", set_gpcs},
    {"LOCALITY_DOMAINS", set_locality},
    {"LOCALITY_DOMAIN_SMS", set_domain_multiprocessors},
    {"COSCHEDULED_DEFAULT", set_coscheduled},
    {"COMPUTE_CAPABILITY", set_capability},
    {"MEM_SYNC_DOMAINS", set_domains},
    {"MAX_CLUSTER", set_cluster_max},
    {"PRIORITIES", set_priorities},
    {"PARTITION_MINIMUM", set_partition_minimum},
    {"PARTITION_ALIGNMENT", set_partition_alignment},
    {"UNKNOWN_NAME", set_unknown_name},
    {"DISTINCT_POINTERS", set_distinct_pointers},
    {"CALL_OUT", set_call_out},
    {"KEEP", set_keep},
    {"FORK_REFUSED", set_fork_refused},
    {"IN_TURN", set_in_turn},
    {"HIDE", set_hide},
    {"SKIP", set_skip},
    {"LOG", set_log},
    {"FAIL", failure_configure},
};

#define SETTING_COUNT (sizeof(settings) / sizeof(settings[0]))

void configuration_refresh(void)
{
    bool watched = configuration.keep || configuration.log[0] != '\0' || failure_wanted();
    atomic_store_explicit(&driver_watched, watched, memory_order_relaxed);
    multiprocessors_refresh();
    entry_hide();
}

int configuration_set(const char *key, const char *value)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (strcmp(key, settings[i].key) != 0)
            continue;
        int status = settings[i].set(value);
        configuration_refresh();
        return status;
    }
    return -1;
}

void configuration_load(void)
{
    bool keep = configuration.keep;
    configuration = standard;
    configuration.keep = keep;
    failure_configure("");
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof(name), "RECORDING_DRIVER_%s", settings[i].key);
        const char *value = getenv(name);
        if (value != NULL && settings[i].set(value) != 0) {
            /* A test that is configured wrongly must not run on and seem to pass. */
            fprintf(stderr, "recording driver: cannot use %s=%s\n", name, value);
            abort();
        }
    }
    configuration_refresh();
}

bool configuration_lists(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; *at != '\0';) {
        size_t item = strcspn(at, ",");
        if (item == length && memcmp(at, name, length) == 0)
            return true;
        at += item;
        at += strspn(at, ",");
    }
    return false;
}
