/* SPDX-License-Identifier: Apache-2.0 */
/* A library that launches a kernel, and one more in its destructor, which runs after the preloaded
 * library's. */
#include "plugin.h"
#include "program.h"

static bool started;

int plugin_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    program_load();
    program_start();
    program_launch(1);
    started = true;
    return 0;
}

static __attribute__((destructor)) void last(void)
{
    if (started)
        program_launch(9);
}
