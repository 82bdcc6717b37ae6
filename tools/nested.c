/* SPDX-License-Identifier: Apache-2.0 */
#include "nested.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

static const char word[] = "inner-run";

/* The folder of reports of the run that we are in, to be freed; NULL when there is none. Other
 * folders, such as one that the user named, are left alone. */
static char *outer_folder(void)
{
    static const char folder_name[] = "/cudapolicy-", file_name[] = "/%h-%p.json";
    const char *variable = getenv("CUDAPOLICY_REPORT");
    char *path = memory_copy(variable != NULL ? variable : "");
    char *file = strrchr(path, '/'), *folder;

    if (file != NULL && strcmp(file, file_name) == 0) {
        *file = '\0';
        folder = strrchr(path, '/');
        /* A '%' of the folder's own is doubled in the template: then nothing is told. */
        if (folder != NULL && strncmp(folder, folder_name, strlen(folder_name)) == 0 &&
            strchr(path, '%') == NULL) {
            return path;
        }
    }
    free(path);
    return NULL;
}

static char *word_in(const char *folder)
{
    return memory_format("%s/%s", folder, word);
}

void nested_tell(void)
{
    char *folder = outer_folder();
    char *path = folder != NULL ? word_in(folder) : NULL;
    int file =
        path != NULL ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;

    if (file >= 0) {
        close(file);
    }
    free(path);
    free(folder);
}

bool nested_was_told(const char *folder)
{
    char *path = word_in(folder);
    bool told = unlink(path) == 0;

    free(path);
    return told;
}
