/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_SKIP_H
#define CUDAPOLICY_TEST_SKIP_H

/* cmocka's skip() has no reason to give: it goes before the result, where tests/summary.py looks
 * for it. Included after cmocka.h. */

#include <stdio.h>

#define skip_because(reason)                                                                       \
    do {                                                                                           \
        printf("# skipped: %s\n", reason);                                                         \
        fflush(stdout);                                                                            \
        skip();                                                                                    \
    } while (0)

#endif
