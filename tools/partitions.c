/* SPDX-License-Identifier: Apache-2.0 */
#include "partitions.h"

#include <stdlib.h>

#include "command.h"
#include "cuda/driver.h"
#include "decide/decide.h"
#include "decide/device.h"
#include "json_output.h"
#include "memory.h"
#include "place/split.h"
#include "table.h"

static bool selected(const struct policy_partition *partition, void *context)
{
    return decide_partition_is_on(partition, *(const int *)context);
}

static struct place_split *split_of(size_t device, const struct policy *policy,
                                    unsigned fake_domains)
{
    static const struct policy none;
    int ordinal = (int)device;
    CUdevice handle = ordinal; /* which is what cuDeviceGet's documentation has it to be */
    struct place_split *split;

    if (cuda_driver.cuDeviceGet != NULL) {
        cuda_driver.cuDeviceGet(&handle, ordinal);
    }
    split =
        place_split_make(policy != NULL ? policy : &none, handle, fake_domains, selected, &ordinal);
    if (split == NULL) {
        command_error("out of memory");
        exit(memory_failure_status);
    }
    return split;
}

static unsigned domains_shown(const struct place_split *split)
{
    return split->domains < PLACE_DOMAIN_LIMIT ? split->domains : PLACE_DOMAIN_LIMIT;
}

/* ---- What the device can ----------------------------------------------------------------------
 */

/* "2: 70, 70 SMs; 8 in none"; to be freed. */
static char *domains_text(const struct place_split *split)
{
    char *text, *longer;

    if (split->domains < 2) {
        return memory_copy("none");
    }
    text = memory_format("%u%s:", split->domains, split->fake ? " pretended" : "");
    for (unsigned i = 0; i < domains_shown(split); i++) {
        const char *comma = i == 0 ? "" : ",";

        if (split->domain_sms[i] != 0) {
            longer = memory_format("%s%s %u", text, comma, split->domain_sms[i]);
        } else {
            longer = memory_format("%s%s ?", text, comma);
        }
        free(text);
        text = longer;
    }
    if (split->outside_domains != 0) {
        longer = memory_format("%s SMs; %u in none", text, split->outside_domains);
    } else {
        longer = memory_format("%s SMs", text);
    }
    free(text);
    return longer;
}

static void number_cell(struct table *table, unsigned number)
{
    if (number != 0) {
        table_cell(table, "%u", number);
    } else {
        table_cell(table, "-");
    }
}

static void print_limits(struct place_split *const *splits, size_t count, bool wide)
{
    struct table *table = table_new();

    table_column(table, "device", TABLE_RIGHT, false);
    table_column(table, "SMs", TABLE_RIGHT, false);
    table_column(table, "at least", TABLE_RIGHT, false);
    table_column(table, "steps of", TABLE_RIGHT, false);
    table_column(table, "locality domains", TABLE_LEFT, false);
    for (size_t i = 0; i < count; i++) {
        char *domains = domains_text(splits[i]);

        table_cell(table, "%zu", i);
        number_cell(table, splits[i]->sms);
        number_cell(table, splits[i]->minimum);
        number_cell(table, splits[i]->alignment);
        table_cell(table, "%s", domains);
        free(domains);
    }
    puts("\npartitions possible, in SMs:");
    table_print(table, stdout, wide, "");
    table_free(table);
}

static void print_failures(struct place_split *const *splits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (splits[i]->failed != NULL) {
            printf("device %zu: %s: error %d of the driver\n", i, splits[i]->failed,
                   (int)splits[i]->result);
        }
    }
}

static json_t *domains_json(const struct place_split *split)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < domains_shown(split) && split->domains > 1; i++) {
        json_array_append_new(list, json_pack("{s:i}", "sms", (int)split->domain_sms[i]));
    }
    return list;
}

static json_t *limits_json(const struct place_split *split)
{
    json_t *failed = json_null();

    if (split->failed != NULL) {
        failed = json_pack("{s:s, s:i}", "function", split->failed, "result", (int)split->result);
    }
    return json_pack(
        "{s:b, s:i, s:i, s:i, s:s, s:o, s:b, s:i, s:o}", "possible", place_split_possible(), "sms",
        (int)split->sms, "minimum", (int)split->minimum, "alignment", (int)split->alignment,
        "split", split->grouped ? "groups" : "count", "locality_domains", domains_json(split),
        "fake", split->fake, "outside_domains", (int)split->outside_domains, "failed", failed);
}

/* ---- What the partitions of a policy get ------------------------------------------------------
 */

/* SMs of the locality domain that a partition is; 0: none, or not known. */
static unsigned domain_sms(const struct place_split *split,
                           const struct policy_partition *partition)
{
    if (partition->kind != POLICY_PARTITION_LOCALITY_DOMAIN ||
        partition->number >= domains_shown(split)) {
        return 0;
    }
    return split->domain_sms[partition->number];
}

static void verdict_cell(struct table *table, const struct place_split *split,
                         const struct policy_partition *partition)
{
    const struct place_grant *grant = &split->grants[partition->index];
    unsigned whole = domain_sms(split, partition);

    if (grant->reason != REPORT_REASON_NONE && grant->result != CUDA_SUCCESS) {
        table_cell(table, "%s (error %d)", report_reason_text(grant->reason), (int)grant->result);
    } else if (grant->reason != REPORT_REASON_NONE) {
        table_cell(table, "%s", report_reason_text(grant->reason));
    } else if (whole != 0 && grant->granted != whole) {
        table_cell(table, "yes, of the domain's %u", whole);
    } else {
        table_cell(table, "yes");
    }
}

static void print_grants(struct place_split *const *splits, size_t count,
                         const struct policy *policy, bool wide)
{
    struct table *table = table_new();
    char line[64];

    table_column(table, "device", TABLE_RIGHT, false);
    table_column(table, "partition", TABLE_LEFT, true);
    table_column(table, "policy", TABLE_LEFT, false);
    table_column(table, "requested", TABLE_RIGHT, false);
    table_column(table, "granted", TABLE_RIGHT, false);
    table_column(table, "together", TABLE_RIGHT, false);
    table_column(table, "possible", TABLE_LEFT, false);
    for (size_t i = 0; i < count; i++) {
        for (size_t p = 0; p < policy->partition_count; p++) {
            const struct policy_partition *partition = &policy->partitions[p];
            const struct place_grant *grant = &splits[i]->grants[partition->index];

            table_cell(table, "%zu", i);
            table_cell(table, "%s", partition->name);
            table_cell(table, "%s", policy_partition_line(partition, line, sizeof line));
            number_cell(table, grant->requested);
            number_cell(table, grant->granted);
            number_cell(table, grant->coscheduled);
            verdict_cell(table, splits[i], partition);
        }
    }
    puts("\npartitions of the policy, in SMs:");
    table_print(table, stdout, wide, "");
    table_free(table);
    puts("together: SMs that are scheduled together, which bounds thread block clusters.");
}

static json_t *grants_json(const struct place_split *split, const struct policy *policy)
{
    json_t *list = json_array();
    char line[64];

    for (size_t i = 0; i < policy->partition_count; i++) {
        const struct policy_partition *partition = &policy->partitions[i];
        const struct place_grant *grant = &split->grants[partition->index];
        json_t *reason = json_null();

        if (grant->reason != REPORT_REASON_NONE) {
            reason = json_string(report_reason_text(grant->reason));
        }
        json_array_append_new(list,
                              json_pack("{s:o, s:s, s:i, s:i, s:i, s:i, s:o, s:i}", "name",
                                        json_output_string(partition->name), "policy",
                                        policy_partition_line(partition, line, sizeof line),
                                        "requested", (int)grant->requested, "granted",
                                        (int)grant->granted, "coscheduled", (int)grant->coscheduled,
                                        "domain_sms", (int)domain_sms(split, partition), "reason",
                                        reason, "result", (int)grant->result));
    }
    return list;
}

/* ---- All of it --------------------------------------------------------------------------------
 */

static void say_pretended(struct place_split *const *splits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (splits[i]->fake) {
            puts("pretended: parts of the device that stand for locality domains in a rehearsal\n"
                 "(CUDAPOLICY_FAKE_LOCALITY_DOMAINS).");
            return;
        }
    }
}

void partitions_print(size_t device_count, const struct policy *policy, unsigned fake_domains,
                      bool wide)
{
    struct place_split **splits = memory_allocate(device_count + 1, sizeof *splits);

    decide_device_start(policy);
    for (size_t i = 0; i < device_count; i++) {
        splits[i] = split_of(i, policy, fake_domains);
    }
    print_limits(splits, device_count, wide);
    if (!place_split_possible()) {
        puts("the driver is too old for partitions: they need CUDA 12.5");
    }
    print_failures(splits, device_count);
    say_pretended(splits, device_count);
    if (policy != NULL && policy->partition_count == 0) {
        puts("\nthe policy has no partitions.");
    } else if (policy != NULL) {
        print_grants(splits, device_count, policy, wide);
    }
    for (size_t i = 0; i < device_count; i++) {
        place_split_free(splits[i]);
    }
    free(splits);
    decide_device_start(NULL);
}

void partitions_json(json_t *devices, const struct policy *policy, unsigned fake_domains)
{
    decide_device_start(policy);
    for (size_t i = 0; i < json_array_size(devices); i++) {
        json_t *device = json_array_get(devices, i);
        struct place_split *split = split_of(i, policy, fake_domains);

        json_object_set_new(device, "partitioning", limits_json(split));
        if (policy != NULL) {
            json_object_set_new(device, "partitions", grants_json(split, policy));
        }
        place_split_free(split);
    }
    decide_device_start(NULL);
}
