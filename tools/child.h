/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_CHILD_H
#define CUDAPOLICY_TOOLS_CHILD_H

/* Starting a program and standing in for it: signals sent to us are passed on, and its end is ours.
 */

/*
 * Runs argv[0], searched in PATH, with this environment, in our process group and with our standard
 * streams, and waits for its end. Returns the status to exit with: the program's own,
 * COMMAND_RUN_SIGNAL plus the signal that ended it, COMMAND_RUN_NOT_FOUND,
 * COMMAND_RUN_CANNOT_EXECUTE, or COMMAND_RUN_FAILED with a message printed. started, where not
 * NULL, becomes 1 when the program began to run, else 0.
 */
int child_run(char **argv, char **environment, int *started);

#endif
