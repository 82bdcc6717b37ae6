/* SPDX-License-Identifier: Apache-2.0 */
/* The end of everything, for tests that want a new driver. */
#include "driver.h"

/* Streams go first, since a capture owns the graph that it makes. */
static void reset_streams(void)
{
    static const enum object_kind kinds[] = {OBJECT_STREAM, OBJECT_DEFAULT_STREAM};
    for (int i = 0; i < 2; i++) {
        CUstream stream = object_next(kinds[i], NULL);
        for (; stream != NULL; stream = object_next(kinds[i], stream))
            stream_free(stream);
    }
}

static void reset_graphs(void)
{
    for (CUgraphExec at = object_next(OBJECT_EXECUTABLE, NULL); at != NULL;
         at = object_next(OBJECT_EXECUTABLE, at))
        graph_free(at->graph);
    for (CUgraph at = object_next(OBJECT_GRAPH, NULL); at != NULL;
         at = object_next(OBJECT_GRAPH, at))
        if (at->owner == NULL)
            graph_free(at);
    for (CUevent at = object_next(OBJECT_EVENT, NULL); at != NULL;
         at = object_next(OBJECT_EVENT, at))
        node_list_clear(&at->nodes);
}

static void reset_code(void)
{
    for (CUlibrary at = object_next(OBJECT_LIBRARY, NULL); at != NULL;
         at = object_next(OBJECT_LIBRARY, at))
        library_free(at);
    for (CUmodule at = object_next(OBJECT_MODULE, NULL); at != NULL;
         at = object_next(OBJECT_MODULE, at))
        module_free(at);
}

void driver_reset(void)
{
    reset_streams();
    reset_graphs();
    reset_code();
    memory_reset();
    context_reset();
    object_reset();
}
