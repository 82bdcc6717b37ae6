/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Partitions of one device are disjoint, so some cannot be there together. Selectors of devices in
 * different forms (index, UUID, PCI address) may name the same device or not, which only a machine
 * can tell.
 */

#include <string.h>

#include "policy/parser.h"

enum {
    /* Comparing every device of a long list with every other is quadratic; a start-up cannot wait
     * for that. Beyond this many comparisons nothing more is found. */
    DEVICE_STEP_LIMIT = 5 * 1000 * 1000,
};

static bool may_be_same(const struct policy_device *left, const struct policy_device *right)
{
    if (left->form != right->form) {
        return true;
    }
    switch (left->form) {
    case POLICY_DEVICE_INDEX:
        return left->index.low <= right->index.high && right->index.low <= left->index.high;
    case POLICY_DEVICE_UUID: {
        size_t known = left->uuid.bytes_known < right->uuid.bytes_known ? left->uuid.bytes_known
                                                                        : right->uuid.bytes_known;
        return memcmp(left->uuid.bytes, right->uuid.bytes, known) == 0;
    }
    case POLICY_DEVICE_PCI:
        return left->pci.domain == right->pci.domain && left->pci.bus == right->pci.bus &&
               left->pci.device == right->pci.device;
    }
    return true;
}

static bool may_share(const struct policy_devices *left, const struct policy_devices *right,
                      size_t *steps)
{
    if (left->count == 0 || right->count == 0) {
        return true;
    }
    for (size_t i = 0; i < left->count; i++) {
        for (size_t j = 0; j < right->count && *steps != 0; j++, --*steps) {
            if (may_be_same(&left->devices[i], &right->devices[j])) {
                return true;
            }
        }
    }
    return false;
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static bool exclude_each_other(const struct policy_partition *left,
                               const struct policy_partition *right)
{
    return left->kind == right->kind &&
           (left->kind == POLICY_PARTITION_SM_REST ||
            (left->kind == POLICY_PARTITION_LOCALITY_DOMAIN && left->number == right->number));
}

static void check_pairs(const struct policy_parser *parser, size_t *steps)
{
    for (size_t i = 1; i < parser->partition_count; i++) {
        const struct policy_partition *partition = &parser->partitions[i], *earlier = NULL;
        char line[64];

        for (size_t j = 0; j < i && earlier == NULL; j++) {
            if (exclude_each_other(&parser->partitions[j], partition) &&
                may_share(&parser->partitions[j].device, &partition->device, steps)) {
                earlier = &parser->partitions[j];
            }
        }
        if (earlier != NULL) {
            policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->partition_requests[i],
                            "%s is also [partition %s], line %u%s, and both may be on one device",
                            policy_partition_line(partition, line, sizeof line), earlier->name,
                            (unsigned)earlier->place.line,
                            policy_layers_share_file(earlier->layer, partition->layer)
                                ? ""
                                : " of the site's file");
        }
    }
}

/* ---- sums ----------------------------------------------------------------------------------- */

/* The SMs that partitions need at least. */
struct need {
    uint64_t sms, percent;
};

/* The selector names every device that point names: the low end of an index range, all known bytes
 * of a UUID. NULL stands for a device that no selector names. */
static bool holds(const struct policy_devices *devices, const struct policy_device *point,
                  size_t *steps)
{
    for (size_t i = 0; point != NULL && i < devices->count && *steps != 0; i++, --*steps) {
        const struct policy_device *device = &devices->devices[i];
        bool same_form = device->form == point->form;

        if (same_form && point->form == POLICY_DEVICE_INDEX) {
            same_form =
                point->index.low >= device->index.low && point->index.low <= device->index.high;
        } else if (same_form && point->form == POLICY_DEVICE_UUID) {
            same_form =
                device->uuid.bytes_known <= point->uuid.bytes_known && may_be_same(device, point);
        } else if (same_form) {
            same_form = may_be_same(device, point);
        }
        if (same_form) {
            return true;
        }
    }
    return devices->count == 0;
}

/* A partition has an SM at least, whatever it asks for. */
static void add_need(struct need *need, const struct policy_partition *partition)
{
    if (partition->kind == POLICY_PARTITION_SM_PERCENT) {
        need->percent += partition->number;
    } else if (partition->kind == POLICY_PARTITION_SM_COUNT && partition->number != 0) {
        need->sms += partition->number;
    } else {
        need->sms += 1;
    }
}

/* More than the largest device that can be has. */
static bool is_too_much(const struct need *need)
{
    return need->sms * 100 + need->percent * POLICY_SM_LIMIT > (uint64_t)100 * POLICY_SM_LIMIT;
}

static void report_sum(const struct policy_parser *parser, size_t index, const struct need *need)
{
    struct policy_place place = parser->partition_requests[index];
    const char *name = parser->partitions[index].name;
    unsigned sms = (unsigned)need->sms, percent = (unsigned)need->percent;

    if (percent == 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place,
                        "with [partition %s] the partitions of one device need %u SMs; no device "
                        "has more than %d",
                        name, sms, (int)POLICY_SM_LIMIT);
    } else if (sms == 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place,
                        "with [partition %s] the partitions of one device need %u%% of its SMs",
                        name, percent);
    } else {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, place,
                        "with [partition %s] the partitions of one device need %u%% of its SMs "
                        "and %u SM%s, which no device has",
                        name, percent, sms, sms == 1 ? "" : "s");
    }
}

/* The partition that makes it too much on the device is reported, once whatever the device. */
static void check_sum(const struct policy_parser *parser, const struct policy_device *point,
                      bool *reported, size_t *steps)
{
    struct need need = {0};

    for (size_t i = 0; i < parser->partition_count && *steps != 0; i++) {
        if (!holds(&parser->partitions[i].device, point, steps)) {
            continue;
        }
        add_need(&need, &parser->partitions[i]);
        if (is_too_much(&need)) {
            if (!reported[i]) {
                report_sum(parser, i, &need);
            }
            reported[i] = true;
            return;
        }
    }
}

/* A sum is largest at a device where one of the selectors begins. */
static void check_sums(const struct policy_parser *parser, size_t *steps)
{
    bool reported[POLICY_PARTITION_LIMIT] = {false};

    check_sum(parser, NULL, reported, steps);
    for (size_t i = 0; i < parser->partition_count; i++) {
        const struct policy_devices *devices = &parser->partitions[i].device;

        for (size_t j = 0; j < devices->count && *steps != 0; j++) {
            check_sum(parser, &devices->devices[j], reported, steps);
        }
    }
}

void policy_check_devices(const struct policy_parser *parser)
{
    size_t pair_steps = DEVICE_STEP_LIMIT, sum_steps = DEVICE_STEP_LIMIT;

    check_pairs(parser, &pair_steps);
    check_sums(parser, &sum_steps);
}
