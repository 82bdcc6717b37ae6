/* SPDX-License-Identifier: Apache-2.0 */
/* An executable around what may also stand in a library. */
#include "plugin.h"

int main(int argc, char **argv)
{
    return plugin_main(argc, argv);
}
