/* SPDX-License-Identifier: Apache-2.0 */
/* Looks symbols up, as OpenMP run-time libraries do for a tool: the next definition behind its own.
 */
#include "scope.h"

#include <dlfcn.h>

int tool_start(void)
{
    return scope_needed() - 1;
}

void *scope_next(const char *name)
{
    /* A variable, so that the call is no jump and its return address lies in here. */
    void *volatile found = dlsym(RTLD_NEXT, name);

    return found;
}

void *scope_default(const char *name)
{
    void *volatile found = dlsym(RTLD_DEFAULT, name);

    return found;
}
