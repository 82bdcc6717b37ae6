/* SPDX-License-Identifier: Apache-2.0 */
#include "arm_copy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"
#include "policy/policy.h"

static char *copies_folder(const char *folder)
{
    return memory_format("%s/policies", folder);
}

bool arm_copy_is(const char *path, const char *sha256)
{
    struct policy_diagnostics diagnostics;
    struct policy *policy;
    char digest[2 * sizeof policy->sha256 + 1] = "";

    policy_diagnostics_init(&diagnostics);
    policy = policy_load(path, &diagnostics);
    for (size_t i = 0; policy != NULL && i < sizeof policy->sha256; i++) {
        snprintf(digest + 2 * i, 3, "%02x", policy->sha256[i]);
    }
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    return strcmp(digest, sha256) == 0;
}

static bool copy_file(const char *from, const char *to)
{
    FILE *input = fopen(from, "re"), *output = input != NULL ? fopen(to, "wxe") : NULL;
    char bytes[4096];
    size_t length;
    bool copied = output != NULL;

    while (copied && (length = fread(bytes, 1, sizeof bytes, input)) > 0) {
        copied = fwrite(bytes, 1, length, output) == length;
    }
    copied = copied && !ferror(input);
    if (output != NULL) {
        copied = fclose(output) == 0 && copied;
    }
    if (!copied) {
        command_error("cannot copy '%s' to '%s': %s", from, to, strerror(errno));
    }
    if (input != NULL) {
        fclose(input);
    }
    return copied;
}

/* Takes the path. */
static bool take_copy(struct ab_arm *arm, char *path)
{
    arm->policy_copy = path;
    if (access(path, F_OK) != 0 && !copy_file(arm->policy, path)) {
        return false;
    }
    if (!arm_copy_is(path, arm->policy_sha256)) {
        command_error("'%s' is not the policy '%s' of %s as it was at the start", path, arm->policy,
                      arm->name);
        return false;
    }
    return true;
}

bool arm_copy_make(struct ab_experiment *experiment, const char *folder)
{
    char *copies = copies_folder(folder);
    bool made = mkdir(copies, 0777) == 0 || errno == EEXIST;

    if (!made) {
        command_error("cannot make the folder '%s': %s", copies, strerror(errno));
    }
    for (size_t i = 0; i < experiment->arm_count && made; i++) {
        struct ab_arm *arm = &experiment->arms[i];

        if (arm->kind == AB_ARM_POLICY) {
            made = take_copy(arm, memory_format("%s/%s.ini", copies, arm->name));
        }
    }
    free(copies);
    return made;
}

void arm_copy_tell_changes(const struct ab_experiment *experiment)
{
    for (size_t i = 0; i < experiment->arm_count; i++) {
        const struct ab_arm *arm = &experiment->arms[i];

        if (arm->policy_copy != NULL && arm->role != AB_ROLE_REPEAT &&
            !arm_copy_is(arm->policy, arm->policy_sha256)) {
            command_error("warning: the policy '%s' of %s was changed or removed meanwhile; all "
                          "runs were made under it as it was at the start",
                          arm->policy, arm->name);
        }
    }
}

void arm_copy_remove(const struct ab_experiment *experiment, const char *folder)
{
    char *copies = copies_folder(folder);

    for (size_t i = 0; i < experiment->arm_count; i++) {
        if (experiment->arms[i].policy_copy != NULL) {
            unlink(experiment->arms[i].policy_copy);
        }
    }
    rmdir(copies);
    free(copies);
}
