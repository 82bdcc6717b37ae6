/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_RELOAD_H
#define CUDAPOLICY_DECIDE_RELOAD_H

/* Makes the lock of decide_reload anew. No other thread may exist. */
void decide_reload_start(void);

#endif
