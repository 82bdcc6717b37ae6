/* SPDX-License-Identifier: Apache-2.0 */
/* What a line of the record says of a capture: nodes by their ordinals, as all handles. */
#ifndef RECORDING_DRIVER_CAPTURED_H
#define RECORDING_DRIVER_CAPTURED_H

#include "driver.h"

/* Nodes as "key=node#3,node#7", or "key=none". */
static inline void call_nodes(struct call *call, const char *key, const struct node_list *list)
{
    if (call->record == NULL)
        return;
    call_add(call, "%s=%s", key, list->count == 0 ? "none" : "");
    for (size_t i = 0; i < list->count; i++)
        text_add(&call->details, "%snode#%u", i == 0 ? "" : ",", list->nodes[i]->object.ordinal);
}

/* After work that became a node: which one, in which graph, after which others. */
static inline void call_captured(struct call *call, CUstream stream)
{
    if (call->record == NULL || stream->capture == NULL || stream->tail.count != 1)
        return;
    CUgraphNode node = stream->tail.nodes[0];
    call_object(call, "captured", OBJECT_NODE, node);
    call_object(call, "into", OBJECT_GRAPH, node->graph);
    call_nodes(call, "after", &node->dependencies);
}

/* After a call that concerns what the next node of a capturing stream depends on. */
static inline void call_dependencies(struct call *call, CUstream stream)
{
    if (call->record == NULL || stream == NULL || stream->capture == NULL)
        return;
    call_object(call, "into", OBJECT_GRAPH, stream->capture->graph);
    call_nodes(call, "dependencies", &stream->tail);
}

#endif
