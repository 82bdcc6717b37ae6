/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/selectors.h"

#include "policy/glob.h"

bool decide_selectors_any(const struct policy_globs *globs, const char *text)
{
    for (size_t i = 0; i < globs->count; i++)
        if (glob_matches(globs->patterns[i], text))
            return true;
    return false;
}

static bool known_and_in(const struct policy_ranges *ranges, int64_t value)
{
    return ranges->count == 0 || (value >= 0 && policy_ranges_hold(ranges, value));
}

bool decide_selectors_hold_here(const struct policy_selectors *selectors,
                                const struct decide_process *process)
{
    return known_and_in(&selectors->rank, process->rank) &&
           known_and_in(&selectors->local_rank, process->local_rank) &&
           known_and_in(&selectors->world_size, process->world_size) &&
           (selectors->host.count == 0 ||
            (process->host && decide_selectors_any(&selectors->host, process->host)));
}

bool decide_selectors_hold_library(const struct policy_selectors *selectors, const char *library)
{
    if (!library)
        return selectors->library.count == 0;
    return (selectors->library.count == 0 || decide_selectors_any(&selectors->library, library)) &&
           !decide_selectors_any(&selectors->not_library, library);
}

bool decide_selectors_any_name(const struct policy_globs *globs, enum policy_name_form form,
                               const struct kernel_name *name)
{
    for (size_t i = 0; i < globs->count; i++)
        if (kernel_name_matches(name, form, globs->patterns[i]))
            return true;
    return false;
}

bool decide_selectors_hold_name(const struct policy_selectors *selectors,
                                const struct kernel_name *name)
{
    const struct policy_globs *wanted = &selectors->name, *excluded = &selectors->not_name;
    if (!name)
        return wanted->count == 0 && excluded->count == 0;
    return (wanted->count == 0 || decide_selectors_any_name(wanted, selectors->name_form, name)) &&
           !decide_selectors_any_name(excluded, selectors->name_form, name);
}
