/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include <string.h>

bool facts_has_name(const struct results_kernel *kernel)
{
    return strcmp(kernel->mangled, "(others)") != 0 && strcmp(kernel->mangled, "(unknown)") != 0;
}

static struct match_extent extent_of(const struct results_kernel *kernel,
                                     const struct results_extent *extent)
{
    return (struct match_extent){
        .known = kernel->shapes_known, .least = extent->least, .most = extent->most};
}

/* Replays are of nodes that were captured or added: a selector has seen those when they were made.
 */
static enum policy_choice captured_of(const struct results_launches *launches)
{
    bool eager = launches->kinds[RESULTS_EAGER] > 0;
    bool captured = launches->kinds[RESULTS_CAPTURED] > 0 || launches->kinds[RESULTS_NODE] > 0;

    if (eager == captured) {
        return POLICY_CHOICE_ANY;
    }
    return captured ? POLICY_CHOICE_YES : POLICY_CHOICE_NO;
}

void facts_of_kernel(const struct results_kernel *kernel, struct match_facts *facts)
{
    bool named = facts_has_name(kernel);
    /* What stands for several kernels may have had any names. */
    bool nameless = strcmp(kernel->mangled, "(unknown)") == 0;

    *facts = (struct match_facts){
        .name = *results_kernel_name(kernel),
        .nameless = nameless,
        .form_known = {named, named, named},
        .library = kernel->library,
        .grid_blocks = extent_of(kernel, &kernel->grid_blocks),
        .block_threads = extent_of(kernel, &kernel->block_threads),
        .shared_memory = extent_of(kernel, &kernel->shared_memory),
        .shapes_unnoted = !kernel->shapes_known,
        .captured = captured_of(&kernel->launches),
    };
}
