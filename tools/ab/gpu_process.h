/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_GPU_PROCESS_H
#define CUDAPOLICY_TOOLS_AB_GPU_PROCESS_H

/* Whose process it is that uses a GPU. */

#include <stdbool.h>
#include <sys/types.h>

/* Whether a process is there and does not belong to the run: neither it nor one of its ancestors is
 * in the group, nor a child of ours (a daemon of the run whose parent is gone becomes one where we
 * are its reaper). Ids that say nothing here, because they are 0, of another process namespace or
 * of a process that has ended, are nobody's. */
bool gpu_process_is_other(pid_t pid, pid_t process_group);

#endif
