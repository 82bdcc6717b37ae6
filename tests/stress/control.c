/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the mode of a running process again and again, until it ends.
 *
 * usage: stress_control COUNTERS
 *
 * Waits for the file to appear. Prints how often the mode was changed.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "policy/policy.h"
#include "report/report.h"

int main(int argc, char **argv)
{
    static const uint8_t modes[] = {POLICY_MODE_OBSERVE, POLICY_MODE_ENFORCE, POLICY_MODE_OFF,
                                    POLICY_MODE_ENFORCE};
    const struct timespec pause = {0, 200000};
    char error[256];
    unsigned long changes = 0;
    if (argc != 2)
        return 2;
    /* The process that started both ends this one, should no file ever appear. */
    while (!report_counters_set_mode(argv[1], POLICY_MODE_ENFORCE, error, sizeof error))
        nanosleep(&pause, NULL);
    while (report_counters_set_mode(argv[1], modes[changes % sizeof modes], error, sizeof error)) {
        changes++;
        nanosleep(&pause, NULL);
    }
    printf("%lu\n", changes);
    return 0;
}
