/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel's name in the three forms that patterns are matched against.
 *
 *   mangled    as the driver knows it: _ZN2at6native4copyIfEEvPT_i
 *   signature  all that the mangled name says: void at::native::copy<float>(float*, int), spelt as
 *              `nm -C` spells it
 *   name       the qualified name alone: at::native::copy
 *
 * The name has no return type, template arguments, parameters, ABI tags ([abi:...]), qualifiers of
 * a member function or clone suffix (.constprop.0), and neither have the scopes in it: a local
 * function object is f::{lambda(int)#1}, whatever f was instantiated with. Of a lambda the
 * parameters stay, since they are all that names it, and of a conversion operator the whole type.
 * What is in an unnamed namespace is (anonymous namespace)::k.
 *
 * Names that are not C++ (extern "C", Triton's) are the same in all forms. nvcc puts
 * __nv_static_... with the name of the source file before the name of a static kernel in
 * relocatable code; only the mangled form has it.
 */
#ifndef CUDAPOLICY_DECIDE_KERNEL_NAME_H
#define CUDAPOLICY_DECIDE_KERNEL_NAME_H

#include <stdbool.h>

#include "policy/policy.h"

struct kernel_name {
    char *mangled; /* begins the one allocation that holds all forms */
    const char *signature;
    const char *name;
    const char *last_component; /* inside name: what stands behind its last "::" of scopes */
    /*
     * False for a name that begins with _Z and of which not every form is known: to be reported. It
     * may be no mangled name, or longer than 64 KiB, or have a form that is longer than 1 MiB or
     * nests too deep (a template with over a thousand arguments has a name, but no signature). In
     * place of a form that is not known stands the mangled name.
     */
    bool demangled;
};

/*
 * Makes all forms of `mangled`. False if there is no memory; *out is then empty, as after
 * kernel_name_release(). Keeps errno. Needs little of the caller's stack (a few hundred bytes), but
 * maps memory and takes some 20 microseconds or more: for the first sight of a function, not for
 * the launch path. May run on any number of threads at once, and in the child after a fork.
 */
bool kernel_name_make(const char *mangled, struct kernel_name *out);

/* Frees what kernel_name_make() made; does nothing for one that is zeroed. */
void kernel_name_release(struct kernel_name *name);

/*
 * Whether `glob` (policy/glob.h) covers the form asked for. With POLICY_NAME_FORM_NAME, a pattern
 * without "::" may cover the last component instead. Allocates nothing, may run on the launch path.
 */
bool kernel_name_matches(const struct kernel_name *name, enum policy_name_form form,
                         const char *glob);

#endif
