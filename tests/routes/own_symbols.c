/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executable that exports functions of its own under names that the library or what is linked
 * into it uses, too. None of them may be called by anybody but the program.
 */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>

#define TRAP(name)                                                                                 \
    __attribute__((visibility("default"))) void name(void);                                        \
    void name(void)                                                                                \
    {                                                                                              \
        fprintf(stderr, "the program's own " #name " was called\n");                               \
        abort();                                                                                   \
    }

/* Of the C library. */
TRAP(regcomp)
TRAP(fnmatch)
TRAP(glob)
/* Of the libraries that are linked into the preloaded one. */
TRAP(ini_parse)
TRAP(ini_parse_stream)
TRAP(ini_parse_string)
TRAP(json_dumps)
TRAP(json_object)
TRAP(json_pack)
TRAP(json_decref)
TRAP(cplus_demangle)
TRAP(cplus_demangle_v3)
TRAP(xmalloc)
TRAP(SHA256Init)
TRAP(SHA256Update)
TRAP(SHA256Final)
/* Its own. */
TRAP(policy_load)
TRAP(policy_parse)
TRAP(decide_start)
TRAP(decide_launch)
TRAP(report_log)
TRAP(report_start)
TRAP(report_finish)
TRAP(preload_symbol)
TRAP(preload_process_state)
TRAP(handle_map_find)

int main(void)
{
    program_load();
    program_start();
    program_launch(1);
    return 0;
}
