/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/decide.h"

#include "decide/cluster.h"
#include "decide/device.h"
#include "decide/function.h"
#include "decide/graph.h"
#include "decide/graph_live.h"
#include "decide/kernel.h"
#include "decide/launch_stream.h"
#include "decide/live.h"
#include "decide/node_place.h"
#include "decide/recipe.h"
#include "decide/reload.h"
#include "decide/rule_set.h"
#include "decide/rules.h"
#include "decide/setting.h"
#include "decide/stream.h"

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
    decide_rules_start();
    decide_stream_start();
    decide_rule_set_start(policy, process, mode);
    decide_graph_start();
    place_ending = ending;
    decide_reload_start();
}

void decide_context_gone(CUcontext context)
{
    decide_function_context_gone(context);
    decide_stream_context_gone(context);
    decide_live_stream_gone(NULL);
    decide_graph_context_gone(context);
}
