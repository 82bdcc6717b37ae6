/* SPDX-License-Identifier: Apache-2.0 */

/* A program that no loader starts. It becomes the program of its arguments, if there are any. */

#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc > 1) {
        execv(argv[1], argv + 1);
        return 1;
    }
    return 0;
}
