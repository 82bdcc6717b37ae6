/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload behind the library under test that holds the first thread in the middle of its first
 * look-up until another one has got on: deterministic where chance would find the same once in a
 * thousand runs. THREADS_HOLD says where: "dlsym", where the library asks for the driver's
 * resolver, or "gethostname", where it reads its configuration. There the thread goes on when the
 * other one waits for it (sched_yield), or has done what it does.
 */
#include <dlfcn.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#else
#define FIRST_VERSION "GLIBC_2.17"
#endif

#define EXPORTED __attribute__((visibility("default")))

static sem_t held, go_on;
static atomic_bool was_held;
static _Thread_local bool is_held;

static __attribute__((constructor)) void start(void)
{
    sem_init(&held, 0, 0);
    sem_init(&go_on, 0, 0);
}

static void hold(const char *where)
{
    const char *wanted = getenv("THREADS_HOLD");

    if (wanted == NULL || strcmp(wanted, where) != 0 || atomic_exchange(&was_held, true))
        return;
    is_held = true;
    sem_post(&held);
    sem_wait(&go_on);
    is_held = false;
}

EXPORTED void threads_wait_for_look_up(void);
EXPORTED void threads_constructor_done(void);

void threads_wait_for_look_up(void)
{
    sem_wait(&held);
}

void threads_constructor_done(void)
{
    sem_post(&go_on);
}

EXPORTED void *dlsym(void *restrict handle, const char *restrict name)
{
    static void *(*next)(void *, const char *);

    if (next == NULL)
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", FIRST_VERSION);
    /* Before strcmp can be called, a sanitizer's run-time library looks up other names. */
    if (name[0] == 'c' && name[1] == 'u' && strcmp(name, "cuGetProcAddress_v2") == 0)
        hold("dlsym");
    return next(handle, name);
}

EXPORTED int gethostname(char *name, size_t size)
{
    static int (*next)(char *, size_t);

    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "gethostname");
    hold("gethostname");
    return next(name, size);
}

/* Another thread waits for the one that is held. */
EXPORTED int sched_yield(void)
{
    static int (*next)(void);

    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "sched_yield");
    if (atomic_load(&was_held) && !is_held)
        sem_post(&go_on);
    return next();
}
