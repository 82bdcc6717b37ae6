/* SPDX-License-Identifier: Apache-2.0 */

/* A file of its own, so that the tests can link another place: nothing that a user can set at run
 * time may change it. */

#include "policy/site.h"

struct policy_site_place policy_site_place(void)
{
    return (struct policy_site_place){.path = CUDAPOLICY_SITE_FILE, .owner = 0};
}
