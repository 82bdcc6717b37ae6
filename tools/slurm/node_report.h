/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SLURM_NODE_REPORT_H
#define CUDAPOLICY_TOOLS_SLURM_NODE_REPORT_H

/*
 * One report a node instead of one a process. Where the place for reports is a folder (it ends with
 * "/"), the processes of a step on a node write into a folder of their own in there, and at the
 * step's end that becomes one file, by `cudapolicy report --merge`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A step on this node. */
struct slurm_step {
    unsigned job, node; /* node: the number in the job */
    const char *name;   /* of the step: its number, or "batch" and the like */
};

bool slurm_node_report_is_folder(const char *report);

/* Whether the folder, a template with %j and %h, is the same for all processes of a node. 0, or -1
 * with what is wrong in message, of SLURM_MESSAGE_SIZE bytes. */
int slurm_node_report_check(const char *folder, char *message);

/* The step's folder in there, expanded, without a "/" at its end; to be freed. The merged file is
 * beside it, with ".json". NULL when it is too long or there is no memory. */
char *slurm_node_report_path(const char *folder, const struct slurm_step *step);

/* Makes the step's folder, and those on the way to it. 0, or -1 with errno. */
int slurm_node_report_make(const char *path);

/* The template by which a process writes its report into the step's folder; to be freed. */
char *slurm_node_report_template(const char *path);

/* Whether a template, perhaps inherited from another step, leads into a step's folder in there. */
bool slurm_node_report_leads_into(const char *template, const char *folder,
                                  const struct slurm_step *step);

/* The job's user, in the words of the kernel. */
struct slurm_user {
    uid_t user;
    gid_t group;
    const gid_t *groups; /* supplementary ones */
    size_t group_count;
};

/*
 * At the step's end, and whatever became of it: runs `command report --merge` as the user, for
 * SLURM_NODE_REPORT_SECONDS at most. What it has to say goes to complain; the reports of the
 * processes then stay where they are. A folder with nothing in it is removed.
 */
enum {
    SLURM_NODE_REPORT_SECONDS = 30,
};
void slurm_node_report_merge(const char *command, const char *path, const struct slurm_user *user,
                             void (*complain)(const char *line));

#endif
