/* SPDX-License-Identifier: Apache-2.0 */
/* Has the second definition of what scope_library.c defines. */
#include "scope.h"

int scope_needed(void)
{
    return 2;
}

int tool_start(void)
{
    return 2;
}
