/* SPDX-License-Identifier: Apache-2.0 */

/* make_page FILE ARMS BLOCKS: writes the example experiment, in the format of the file's suffix. */

#include <stdio.h>
#include <stdlib.h>

#include "example.h"
#include "export.h"

int main(int argc, char **argv)
{
    struct example example;
    enum ab_format format;
    FILE *stream;

    if (argc != 4 || !ab_format_of(argv[1], &format)) {
        fprintf(stderr, "usage: make_page FILE ARMS BLOCKS\n");
        return 64;
    }
    stream = fopen(argv[1], "w");
    if (stream == NULL) {
        perror(argv[1]);
        return 1;
    }
    example_make(&example, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
    ab_export(&example.experiment, &example.analysis, format, stream);
    example_release(&example);
    return fclose(stream) == 0 ? 0 : 1;
}
