/* SPDX-License-Identifier: Apache-2.0 */
#include "check_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/policy.h"
#include "settings.h"

static void complain_of_each_line(char *text, slurm_complain *complain)
{
    for (char *line = text, *end; line != NULL && *line != '\0'; line = end) {
        end = strchr(line, '\n');
        if (end != NULL) {
            *end++ = '\0';
        }
        complain(line);
    }
}

void slurm_complain_of(struct policy_diagnostics *diagnostics, slurm_complain *complain)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (stream == NULL) {
        complain("out of memory");
        return;
    }
    policy_diagnostics_print_bare(diagnostics, stream);
    fclose(stream);
    complain_of_each_line(text, complain);
    free(text);
}

int slurm_check_policy(const char *path, slurm_complain *complain)
{
    struct policy_diagnostics diagnostics;
    struct policy *policy;
    int result = 0;

    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    policy = policy_load(path, &diagnostics);
    if (policy == NULL) {
        slurm_complain_of(&diagnostics, complain);
        result = -1;
    }
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    return result;
}

/* NULL: nothing wrong. */
static const char *library_fault(const char *path)
{
    static const char elf[] = {0x7f, 'E', 'L', 'F'};
    char start[sizeof elf];
    ssize_t length;
    int file;

    if (strpbrk(path, " :$") != NULL) {
        return "LD_PRELOAD cannot carry a path with a space, ':' or '$'";
    }
    file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return strerror(errno);
    }
    length = read(file, start, sizeof start);
    close(file);
    if (length != (ssize_t)sizeof start || memcmp(start, elf, sizeof elf) != 0) {
        return "not a shared library";
    }
    return NULL;
}

int slurm_check_library(const char *path, slurm_complain *complain)
{
    const char *fault = library_fault(path);
    char line[SLURM_MESSAGE_SIZE];

    if (fault == NULL) {
        return 0;
    }
    snprintf(line, sizeof line, "cannot preload '%s': %s", path, fault);
    complain(line);
    return -1;
}
