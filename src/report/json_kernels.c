/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "report/json_parts.h"

struct kernel_sum {
    uint32_t kernel;
    uint64_t total;
    uint64_t unmatched; /* launches that no rule decided on */
    uint64_t launches[REPORT_LAUNCH_KIND_COUNT];
};

static bool cell_decided(const struct report_cell_row *row, uint32_t settings)
{
    for (uint32_t setting = 0; setting < settings; setting++) {
        if (report_result_decided(&row->results[setting]))
            return true;
    }
    return false;
}

static struct kernel_sum *kernel_sums(const struct report_view *view)
{
    const struct report_counts *counts = &view->header.counts;
    struct kernel_sum *sums = calloc(counts->kernels + 1u, sizeof *sums);
    if (sums == NULL)
        return NULL;
    for (uint32_t kernel = 0; kernel < counts->kernels; kernel++)
        sums[kernel].kernel = kernel;
    for (uint32_t cell = 0; cell < counts->cells; cell++) {
        const struct report_cell_row *row = &view->cells[cell];
        struct kernel_sum *sum = &sums[row->kernel < counts->kernels ? row->kernel : 0];
        uint64_t total = report_launch_sum(view->launches[cell]);
        report_launch_add(sum->launches, view->launches[cell]);
        sum->total += total;
        if (!cell_decided(row, counts->settings))
            sum->unmatched += total;
    }
    return sums;
}

static int most_first(uint64_t one, uint64_t other, uint32_t one_kernel, uint32_t other_kernel)
{
    if (one != other)
        return one < other ? 1 : -1;
    return one_kernel < other_kernel ? -1 : one_kernel > other_kernel;
}

static int most_launched_first(const void *one_sum, const void *other_sum)
{
    const struct kernel_sum *one = one_sum, *other = other_sum;
    return most_first(one->total, other->total, one->kernel, other->kernel);
}

static int most_unmatched_first(const void *one_sum, const void *other_sum)
{
    const struct kernel_sum *one = one_sum, *other = other_sum;
    return most_first(one->unmatched, other->unmatched, one->kernel, other->kernel);
}

static json_t *range_json(uint64_t least, uint64_t most)
{
    return json_pack("[o, o]", report_json_count(least), report_json_count(most));
}

static json_t *shapes_json(const struct report_kernel_row *row)
{
    if (row->grid_blocks_least > row->grid_blocks_most)
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "grid_blocks",
                     range_json(row->grid_blocks_least, row->grid_blocks_most), "block_threads",
                     range_json(row->block_threads_least, row->block_threads_most), "shared_memory",
                     range_json(row->shared_memory_least, row->shared_memory_most));
}

static json_t *setting_json(struct report_view *view, const struct report_setting_sum *sum)
{
    const struct report_result result = {
        .outcome = sum->outcome, .reason = sum->reason, .rule = sum->rule};
    json_t *object = report_json_result(view, sum->setting, &result);
    int failed = json_object_set_new(object, "detail", json_integer(sum->detail));
    failed |= json_object_set_new(object, "launches",
                                  report_json_count(report_launch_sum(sum->launches)));
    failed |= json_object_set_new(object, "launches_by_kind", report_json_kinds(sum->launches));
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

static size_t first_sum(uint32_t kernel, const struct report_setting_sum *sums, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sums[middle].kernel < kernel)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static json_t *settings_json(struct report_view *view, uint32_t kernel,
                             const struct report_setting_sum *sums, size_t count)
{
    json_t *array = json_array();
    for (size_t i = first_sum(kernel, sums, count);
         i < count && sums[i].kernel == kernel && array != NULL; i++)
        array = report_json_append(array, setting_json(view, &sums[i]));
    return array;
}

static json_t *kernel_json(struct report_view *view, const struct kernel_sum *kernel,
                           const struct report_setting_sum *sums, size_t count)
{
    const struct report_kernel_row *row = &view->kernels[kernel->kernel];
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "name",
                     report_json_view_text(view, row->name), "signature",
                     report_json_view_text(view, row->signature), "mangled",
                     report_json_view_text(view, row->mangled), "library",
                     report_json_view_text(view, row->library), "demangled", row->demangled != 0,
                     "launches", report_json_count(kernel->total), "launches_by_kind",
                     report_json_kinds(kernel->launches), "shapes", shapes_json(row), "settings",
                     settings_json(view, kernel->kernel, sums, count));
}

static json_t *kernels_json(struct report_view *view, struct kernel_sum *kernels,
                            const struct report_setting_sum *sums, size_t count)
{
    uint32_t total = view->header.counts.kernels;
    json_t *array = json_array();
    qsort(kernels, total, sizeof *kernels, most_launched_first);
    for (uint32_t i = 0; i < total && kernels[i].total != 0 && array != NULL; i++)
        array = report_json_append(array, kernel_json(view, &kernels[i], sums, count));
    return array;
}

static json_t *unmatched_json(struct report_view *view, struct kernel_sum *kernels)
{
    uint32_t total = view->header.counts.kernels;
    json_t *array = json_array();
    qsort(kernels, total, sizeof *kernels, most_unmatched_first);
    for (uint32_t i = 0; i < total && kernels[i].unmatched != 0 && array != NULL; i++) {
        const struct report_kernel_row *row = &view->kernels[kernels[i].kernel];
        array = report_json_append(
            array, json_pack("{s:o, s:o, s:o}", "name", report_json_view_text(view, row->name),
                             "library", report_json_view_text(view, row->library), "launches",
                             report_json_count(kernels[i].unmatched)));
    }
    return array;
}

bool report_json_add_kernels(json_t *report, struct report_view *view,
                             const struct report_setting_sum *sums, size_t count)
{
    struct kernel_sum *kernels = kernel_sums(view);
    if (kernels == NULL)
        return false;
    int failed = json_object_set_new(report, "kernels", kernels_json(view, kernels, sums, count));
    failed |= json_object_set_new(report, "unmatched", unmatched_json(view, kernels));
    free(kernels);
    return failed == 0;
}
