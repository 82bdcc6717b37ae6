/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: program SCENARIO ARGUMENT...
 *
 * Each scenario is one way in which a program can behave; the test_….py say what must come of it.
 */
#include "program.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const struct program_scenario *const lists[] = {scenarios_of_calls, scenarios_of_ends,
                                                    scenarios_of_names, scenarios_of_threads};

    for (size_t i = 0; argc > 1 && i < sizeof lists / sizeof lists[0]; i++)
        for (const struct program_scenario *scenario = lists[i]; scenario->name != NULL; scenario++)
            if (strcmp(scenario->name, argv[1]) == 0)
                return scenario->run(argc - 1, argv + 1);
    fprintf(stderr, "usage: program SCENARIO ARGUMENT...\n");
    return 64;
}
