/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the mode of a running process again and again, until it ends, and has it read its policy
 * again now and then.
 *
 * usage: stress_control COUNTERS
 *
 * Waits for the file to appear. Prints how often the mode was changed, and how often the policy was
 * read again.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "policy/policy.h"
#include "report/report.h"

enum {
    RELOADS = 80,        /* fewer than a process allows */
    CHANGES_BETWEEN = 8, /* two of them */
};

int main(int argc, char **argv)
{
    static const uint8_t modes[] = {POLICY_MODE_OBSERVE, POLICY_MODE_ENFORCE, POLICY_MODE_OFF,
                                    POLICY_MODE_ENFORCE};
    const struct timespec pause = {0, 200000};
    char error[256];
    unsigned long changes = 0;
    unsigned reloads = 0;
    uint32_t wanted;
    if (argc != 2)
        return 2;
    /* The process that started both ends this one, should no file ever appear. */
    while (!report_counters_set_mode(argv[1], POLICY_MODE_ENFORCE, error, sizeof error))
        nanosleep(&pause, NULL);
    while (report_counters_set_mode(argv[1], modes[changes % sizeof modes], error, sizeof error)) {
        changes++;
        if (changes % CHANGES_BETWEEN == 0 && reloads < RELOADS &&
            report_counters_reload(argv[1], &wanted, error, sizeof error))
            reloads++;
        nanosleep(&pause, NULL);
    }
    printf("%lu %u\n", changes, reloads);
    return 0;
}
