/* SPDX-License-Identifier: Apache-2.0 */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

enum {
    FILE_MODE = 0666, /* less the user's mask */
};

static bool is_regular(const char *path)
{
    struct stat status;

    /* A link that leads nowhere yet leads to a file that would be made. */
    return stat(path, &status) != 0 || S_ISREG(status.st_mode);
}

/* O_TRUNC is never given: the program may fail to start. */
static int open_path(struct output_file *file, bool force)
{
    int descriptor =
        open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, FILE_MODE);

    file->made = descriptor >= 0;
    if (descriptor >= 0 || errno != EEXIST) {
        return descriptor;
    }
    file->kept = is_regular(file->path);
    if (file->kept && !force) {
        errno = EEXIST;
        return -1;
    }
    return open(file->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, FILE_MODE);
}

bool output_file_open(struct output_file *file, const char *path, bool force)
{
    int descriptor;

    *file = (struct output_file){.path = path};
    descriptor = open_path(file, force);
    if (descriptor >= 0) {
        file->stream = fdopen(descriptor, "w");
    }
    if (file->stream != NULL) {
        return true;
    }
    if (descriptor < 0 && errno == EEXIST) {
        command_error("'%s' is there already: give another name, or --force to overwrite it", path);
    } else {
        command_error("cannot write '%s': %s", path, strerror(errno));
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    return false;
}

void output_file_begin(struct output_file *file)
{
    /* Where it cannot be cut, writing to it fails too, and says so. */
    if (file->kept && ftruncate(fileno(file->stream), 0) != 0) {
        command_error("cannot empty '%s': %s", file->path, strerror(errno));
    }
}

bool output_file_close(struct output_file *file)
{
    bool written = fflush(file->stream) == 0 && !ferror(file->stream);

    written = fclose(file->stream) == 0 && written;
    file->stream = NULL;
    if (!written) {
        command_error("cannot write '%s': %s", file->path, strerror(errno));
    }
    return written;
}

void output_file_abandon(struct output_file *file)
{
    fclose(file->stream);
    file->stream = NULL;
    if (file->made) {
        unlink(file->path);
    }
}
