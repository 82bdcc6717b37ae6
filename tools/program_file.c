/* SPDX-License-Identifier: Apache-2.0 */
#include "program_file.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "memory.h"

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#error "x86-64 or aarch64"
#endif

enum {
    MAX_SCRIPTS = 4,     /* an interpreter may be a script itself; the kernel follows as many */
    MAX_FIRST_LINE = 256 /* what the kernel reads of a "#!" line */
};

char *program_file_find(const char *program)
{
    const char *variable = getenv("PATH");
    char *path, *folder, *rest = NULL, *found = NULL;

    if (strchr(program, '/') != NULL) {
        return memory_copy(program);
    }
    path = memory_copy(variable != NULL ? variable : "/bin:/usr/bin");
    for (folder = strtok_r(path, ":", &rest); folder != NULL && found == NULL;
         folder = strtok_r(NULL, ":", &rest)) {
        found = memory_format("%s/%s", folder, program);
        if (access(found, X_OK) != 0) {
            free(found);
            found = NULL;
        }
    }
    free(path);
    return found;
}

/* The path after "#!", to be freed; NULL when the file is no script. */
static char *script_interpreter(FILE *stream)
{
    char line[MAX_FIRST_LINE + 1], *path;
    size_t length = fread(line, 1, MAX_FIRST_LINE, stream);

    line[length] = '\0';
    if (strncmp(line, "#!", 2) != 0) {
        return NULL;
    }
    path = line + 2 + strspn(line + 2, " \t");
    path[strcspn(path, " \t\r\n")] = '\0';
    return path[0] != '\0' ? memory_copy(path) : NULL;
}

/* The program interpreter that a segment names, to be freed; NULL when it cannot be read. */
static char *segment_text(FILE *stream, const Elf64_Phdr *segment)
{
    char *text;

    if (segment->p_filesz == 0 || segment->p_filesz > 4096 ||
        fseek(stream, (long)segment->p_offset, SEEK_SET) != 0) {
        return NULL;
    }
    text = memory_allocate(segment->p_filesz + 1, 1);
    if (fread(text, segment->p_filesz, 1, stream) == 1) {
        return text;
    }
    free(text);
    return NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* glibc's loader may be run as a program; it names no loader, and preloads all the same. */
static bool is_loader(const char *path)
{
    return strncmp(base_name(path), "ld-", 3) == 0 || strncmp(base_name(path), "ld.so", 5) == 0 ||
           strncmp(base_name(path), "ld64.so", 7) == 0;
}

static void read_segments(struct program_file *file, FILE *stream, const Elf64_Ehdr *header)
{
    for (int i = 0; i < header->e_phnum && file->interpreter == NULL; i++) {
        long place = (long)(header->e_phoff + (size_t)i * sizeof(Elf64_Phdr));
        Elf64_Phdr segment;

        if (fseek(stream, place, SEEK_SET) != 0 ||
            fread(&segment, sizeof segment, 1, stream) != 1) {
            return;
        }
        if (segment.p_type == PT_INTERP) {
            file->interpreter = segment_text(stream, &segment);
            if (file->interpreter == NULL) {
                return;
            }
        }
    }
    if (file->interpreter == NULL) {
        file->kind = is_loader(file->path) ? PROGRAM_PRELOADED : PROGRAM_STATIC;
    } else if (strncmp(base_name(file->interpreter), "ld-musl-", 8) == 0) {
        file->kind = PROGRAM_MUSL;
    } else {
        file->kind = PROGRAM_PRELOADED;
    }
}

static void read_elf(struct program_file *file, FILE *stream)
{
    Elf64_Ehdr header;

    rewind(stream);
    if (fread(&header, 1, sizeof header, stream) < sizeof(Elf32_Ehdr) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        return;
    }
    /* Up to the machine, headers of 32 and 64 bits are alike. */
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != OUR_MACHINE) {
        file->kind = PROGRAM_OTHER_MACHINE;
    } else if (header.e_phentsize == sizeof(Elf64_Phdr)) {
        read_segments(file, stream, &header);
    }
}

/* Whether executing the file makes the kernel tell the loader to be careful (AT_SECURE): its owner
 * or group is another than ours, or it has capabilities that we have not. */
static bool raises_privileges(const char *path)
{
    struct stat status;
    struct statvfs mount;

    if (stat(path, &status) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
        (statvfs(path, &mount) == 0 && (mount.f_flag & ST_NOSUID) != 0)) {
        return false;
    }
    return ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) ||
           /* Without the right of its group to execute it, the bit means something else. */
           ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
            status.st_gid != getgid()) ||
           (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

void program_file_read(struct program_file *file, const char *program)
{
    *file = (struct program_file){.path = program_file_find(program)};
    for (int i = 0; file->path != NULL && i <= MAX_SCRIPTS; i++) {
        FILE *stream = fopen(file->path, "re");
        char *interpreter = stream != NULL ? script_interpreter(stream) : NULL;

        if (stream != NULL && interpreter == NULL) {
            read_elf(file, stream);
        }
        if (stream != NULL) {
            fclose(stream);
        }
        if (interpreter == NULL) {
            break;
        }
        free(file->path);
        file->path = interpreter;
    }
    /* Of a program that we may not read, this is all that can be known; scripts have no privileges
     * of their own. */
    if (file->path != NULL && raises_privileges(file->path)) {
        file->kind = PROGRAM_PRIVILEGED;
    }
}

void program_file_release(struct program_file *file)
{
    free(file->path);
    free(file->interpreter);
    *file = (struct program_file){0};
}
