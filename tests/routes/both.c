/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is linked with two libraries, each on another version of the runtime: both
 * versions are in the global scope. */
#include <stddef.h>

int kernels_on_12(int argc, char **argv);
int kernels_on_13(int argc, char **argv);

int main(void)
{
    char name[] = "both", first[] = "first", second[] = "second";
    char *for_12[] = {name, first, NULL}, *for_13[] = {name, second, NULL};
    const int status = kernels_on_12(2, for_12);

    return status != 0 ? status : kernels_on_13(2, for_13);
}
