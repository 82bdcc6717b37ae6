/* SPDX-License-Identifier: Apache-2.0 */
#include "node_report.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/template.h"
#include "settings.h"

enum {
    FOLDER_MODE = 0777, /* less the user's mask */
};

bool slurm_node_report_is_folder(const char *report)
{
    return report != NULL && report[0] != '\0' && report[strlen(report) - 1] == '/';
}

int slurm_node_report_check(const char *folder, char *message)
{
    for (const char *next = folder; *next != '\0'; next++) {
        if (next[0] == '%' && (next[1] == 'p' || next[1] == 'r')) {
            snprintf(message, SLURM_MESSAGE_SIZE,
                     "'%s' is a folder for all processes of a node, and cannot have %%%c in it",
                     folder, next[1]);
            return -1;
        }
        next += next[0] == '%' && next[1] != '\0';
    }
    return 0;
}

/* In the values that a template stands for. */
static bool expand(const char *folder, const struct slurm_step *step, char *path)
{
    char job[16], error[SLURM_MESSAGE_SIZE];
    const struct report_template_values values = {.job = job, .pid = 1};

    snprintf(job, sizeof job, "%u", step->job);
    return report_expand_template(folder, &values, path, PATH_MAX, error, sizeof error);
}

char *slurm_node_report_path(const char *folder, const struct slurm_step *step)
{
    char base[PATH_MAX], host[PATH_MAX], *path = NULL;

    if (!expand(folder, step, base) || !expand("%h", step, host)) {
        return NULL;
    }
    if (asprintf(&path, "%s%u.%s-%u-%s", base, step->job, step->name, step->node, host) < 0) {
        return NULL;
    }
    return path;
}

int slurm_node_report_make(const char *path)
{
    char *copy = strdup(path);
    int result = 0;

    if (copy == NULL) {
        return -1;
    }
    for (char *end = strchr(copy + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
        *end = '\0';
        (void)!mkdir(copy, FOLDER_MODE); /* if that fails, the last one does */
        *end = '/';
    }
    if (mkdir(copy, 0700) != 0 && errno != EEXIST) {
        result = -1;
    }
    free(copy);
    return result;
}

char *slurm_node_report_template(const char *path)
{
    char *template = malloc(2 * strlen(path) + sizeof "/%h-%p.json"), *end = template;

    for (; template != NULL && *path != '\0'; path++) {
        *end++ = *path;
        if (*path == '%') {
            *end++ = '%';
        }
    }
    if (template != NULL) {
        strcpy(end, "/%h-%p.json");
    }
    return template;
}

bool slurm_node_report_leads_into(const char *template, const char *folder,
                                  const struct slurm_step *step)
{
    char base[PATH_MAX], *prefix;
    bool leads;
    size_t length;

    if (template == NULL || !expand(folder, step, base)) {
        return false;
    }
    prefix = slurm_node_report_template(base);
    if (prefix == NULL) {
        return false;
    }
    length = strlen(prefix) - strlen("/%h-%p.json");
    leads =
        strncmp(template, prefix, length) == 0 && strtoul(template + length, NULL, 10) == step->job;
    free(prefix);
    return leads;
}
