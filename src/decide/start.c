/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/start.h"

#include "decide/cluster.h"
#include "decide/decide.h"
#include "decide/device.h"
#include "decide/function.h"
#include "decide/graph.h"
#include "decide/graph_live.h"
#include "decide/kernel.h"
#include "decide/launch_stream.h"
#include "decide/live.h"
#include "decide/node_place.h"
#include "decide/recipe.h"
#include "decide/rules.h"
#include "decide/setting.h"
#include "decide/stream.h"
#include "decide/stream_rules.h"

struct decide_start_state decide_start_state;

const char *(*decide_library_of)(const void *caller);

/* Before the partitions of a device go. */
static void ending(int device)
{
    decide_node_place_ending(device);
    decide_stream_ending(device);
}

/* Also in a child after fork: every lock is made anew, every handle of the parent's driver
 * forgotten. */
void decide_start(const struct policy *policy, const struct decide_process *process,
                  enum policy_mode mode)
{
    decide_live_start();
    decide_setting_start();
    decide_device_start(policy);
    decide_function_start();
    decide_cluster_start();
    decide_kernel_start();
    decide_resolve_start();
    decide_recipe_start();
    decide_launch_stream_start();
    if (!decide_rules_start(policy, process))
        report_note("error", "kernel rules are not applied: out of memory");
    decide_stream_start(policy, process, mode);
    decide_graph_start();
    place_ending = ending;
    decide_start_state.merges = decide_stream_merges_exist();
    decide_start_state.places = decide_stream_needs.partitions;
}

void decide_context_gone(CUcontext context)
{
    decide_function_context_gone(context);
    decide_stream_context_gone(context);
    decide_live_stream_gone(NULL);
    decide_graph_context_gone(context);
}
