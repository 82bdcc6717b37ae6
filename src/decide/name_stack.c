/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/name_stack.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define WITH_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WITH_THREAD_SANITIZER 1
#endif

#ifdef WITH_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef WITH_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

enum {
    /* Wider than any frame, so that none steps over it. */
    GUARD_SIZE = 256 * 1024,
};

/* Lies between the stack and the scratch memory, in the same mapping: the contexts are too large
 * for the caller's stack (4.5 KiB each on aarch64). */
struct name_stack {
    ucontext_t caller;
    ucontext_t inside;
    unsigned char *mapping;
    size_t mapping_size;
    unsigned char *bottom; /* lowest byte of the stack */
    size_t size;
    void (*function)(void *);
    void *argument;
#ifdef WITH_ADDRESS_SANITIZER
    void *caller_fake_stack;
    const void *caller_bottom;
    size_t caller_size;
#endif
#ifdef WITH_THREAD_SANITIZER
    void *caller_fiber;
    void *inside_fiber;
#endif
    max_align_t scratch[];
};

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

struct name_stack *name_stack_open(size_t stack_size, size_t scratch_size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t guard = round_up(GUARD_SIZE, page);
    size_t size = round_up(stack_size, page);
    size_t total = guard + size + round_up(sizeof(struct name_stack) + scratch_size, page);
    struct name_stack *stack;
    /* Most of it is never touched: no swap is to be reserved for it, and no huge page filled. */
    unsigned char *mapping = mmap(NULL, total, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);

    if (mapping == MAP_FAILED) {
        return NULL;
    }
    if (mprotect(mapping + guard, total - guard, PROT_READ | PROT_WRITE) != 0) {
        munmap(mapping, total);
        return NULL;
    }
    madvise(mapping, total, MADV_NOHUGEPAGE); /* fails where there are none, which is as well */
    stack = (struct name_stack *)(void *)(mapping + guard + size);
    stack->mapping = mapping;
    stack->mapping_size = total;
    stack->bottom = mapping + guard;
    stack->size = size;
    return stack;
}

void *name_stack_scratch(struct name_stack *stack)
{
    return stack->scratch;
}

void name_stack_close(struct name_stack *stack)
{
    munmap(stack->mapping, stack->mapping_size);
}

/*
 * The thread sanitizer counts calls and returns on each stack, and these functions begin on one and
 * end on the other. clang's no_sanitize leaves the counting in.
 */
#if defined(__has_attribute)
#if __has_attribute(disable_sanitizer_instrumentation)
#define ACROSS_STACKS __attribute__((disable_sanitizer_instrumentation))
#endif
#endif
#ifndef ACROSS_STACKS
#define ACROSS_STACKS __attribute__((no_sanitize("thread")))
#endif

/* The address sanitizer is told of the switch before it is made and once more after it. */
ACROSS_STACKS static void before_entering(struct name_stack *stack)
{
    (void)stack;
#ifdef WITH_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(&stack->caller_fake_stack, stack->bottom, stack->size);
#endif
#ifdef WITH_THREAD_SANITIZER
    stack->caller_fiber = __tsan_get_current_fiber();
    stack->inside_fiber = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(stack->inside_fiber, 0);
#endif
}

ACROSS_STACKS static void after_entering(struct name_stack *stack)
{
    (void)stack;
#ifdef WITH_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(NULL, &stack->caller_bottom, &stack->caller_size);
#endif
}

ACROSS_STACKS static void before_leaving(struct name_stack *stack)
{
    (void)stack;
#ifdef WITH_ADDRESS_SANITIZER
    /* Abandoned frames would leave their marks on addresses that somebody else maps next. */
    unsigned char *lowest = __builtin_frame_address(0);
    ASAN_UNPOISON_MEMORY_REGION(lowest, (size_t)(stack->bottom + stack->size - lowest));
    __sanitizer_start_switch_fiber(NULL, stack->caller_bottom, stack->caller_size);
#endif
#ifdef WITH_THREAD_SANITIZER
    __tsan_switch_to_fiber(stack->caller_fiber, 0);
#endif
}

ACROSS_STACKS static void after_leaving(struct name_stack *stack)
{
    (void)stack;
#ifdef WITH_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(stack->caller_fake_stack, NULL, NULL);
#endif
#ifdef WITH_THREAD_SANITIZER
    __tsan_destroy_fiber(stack->inside_fiber);
#endif
}

/* makecontext() passes only int arguments, so the address comes in two halves. */
ACROSS_STACKS static void begin(unsigned high, unsigned low)
{
    struct name_stack *stack =
        (struct name_stack *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low);

    after_entering(stack);
    stack->function(stack->argument);
    name_stack_leave(stack);
}

ACROSS_STACKS void name_stack_run(struct name_stack *stack, void (*function)(void *),
                                  void *argument)
{
    uintptr_t address = (uintptr_t)stack;

    stack->function = function;
    stack->argument = argument;
    /* Neither call can fail on the architectures supported. */
    getcontext(&stack->inside);
    stack->inside.uc_stack.ss_sp = stack->bottom;
    stack->inside.uc_stack.ss_size = stack->size;
    stack->inside.uc_link = NULL;
    makecontext(&stack->inside, (void (*)(void))begin, 2, (unsigned)(address >> 16 >> 16),
                (unsigned)address);
    before_entering(stack);
    swapcontext(&stack->caller, &stack->inside);
    after_leaving(stack);
}

ACROSS_STACKS _Noreturn void name_stack_leave(struct name_stack *stack)
{
    before_leaving(stack);
    setcontext(&stack->caller);
    abort(); /* not reached */
}
