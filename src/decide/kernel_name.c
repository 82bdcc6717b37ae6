/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/kernel_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decide/name_demangle.h"
#include "policy/glob.h"

/*
 * A static kernel in relocatable code: nvcc 13 names static void k(int*) in t.cu
 * __nv_static_20__5dfc5b90_4_t_cu_c_k__Z1kPi. The number is the length of what stands between the
 * two underscores that follow it: an identification of the source file. Gives the name behind it,
 * or all of `mangled` if it is none of these.
 */
static const char *without_file_prefix(const char *mangled)
{
    static const char prefix[] = "__nv_static_";
    const char *cursor = mangled + sizeof prefix - 1;
    size_t length = 0;

    if (strncmp(mangled, prefix, sizeof prefix - 1) != 0 || *cursor < '0' || *cursor > '9') {
        return mangled;
    }
    while (*cursor >= '0' && *cursor <= '9' && length < 100000) {
        length = length * 10 + (size_t)(*cursor++ - '0');
    }
    if (*cursor++ != '_' || strnlen(cursor, length + 2) < length + 2 || cursor[length] != '_') {
        return mangled;
    }
    return cursor + length + 1;
}

static char *copy(char **to, const char *text, size_t size)
{
    char *copied = memcpy(*to, text, size);

    *to += size;
    return copied;
}

/* Puts the forms into one allocation: those that are not known stand for the mangled name. */
static bool collect(const char *mangled, const struct name_demangled *forms,
                    struct kernel_name *out)
{
    size_t mangled_size = strlen(mangled) + 1;
    size_t signature_size = forms->signature != NULL ? strlen(forms->signature) + 1 : 0;
    size_t name_size = forms->name != NULL ? strlen(forms->name) + 1 : 0;
    char *cursor = malloc(mangled_size + signature_size + name_size);

    if (cursor == NULL) {
        return false;
    }
    out->mangled = copy(&cursor, mangled, mangled_size);
    out->signature = out->mangled;
    out->name = out->mangled;
    if (forms->signature != NULL) {
        out->signature = copy(&cursor, forms->signature, signature_size);
    }
    if (forms->name != NULL) {
        out->name = copy(&cursor, forms->name, name_size);
    }
    out->last_component = out->name + forms->last_component;
    return true;
}

static bool make(const char *mangled, struct kernel_name *out)
{
    const char *name = without_file_prefix(mangled);
    struct name_demangled forms = {0};
    bool made;

    if (strncmp(name, "_Z", 2) != 0) {
        if (name != mangled) {
            forms.name = name;
            forms.signature = name;
        }
        made = collect(mangled, &forms, out);
        out->demangled = made;
        return made;
    }
    if (!name_demangle(name, &forms)) {
        return false;
    }
    made = collect(mangled, &forms, out);
    out->demangled = made && forms.name != NULL && forms.signature != NULL;
    name_demangle_release(&forms);
    return made;
}

bool kernel_name_make(const char *mangled, struct kernel_name *out)
{
    int saved_errno = errno;
    bool made;

    *out = (struct kernel_name){0};
    made = make(mangled, out);
    errno = saved_errno;
    return made;
}

void kernel_name_release(struct kernel_name *name)
{
    free(name->mangled);
    *name = (struct kernel_name){0};
}

bool kernel_name_matches(const struct kernel_name *name, enum policy_name_form form,
                         const char *glob)
{
    switch (form) {
    case POLICY_NAME_FORM_MANGLED:
        return glob_matches(glob, name->mangled);
    case POLICY_NAME_FORM_SIGNATURE:
        return glob_matches(glob, name->signature);
    case POLICY_NAME_FORM_NAME:
        break;
    }
    return glob_matches(glob, name->name) ||
           (strstr(glob, "::") == NULL && glob_matches(glob, name->last_component));
}
