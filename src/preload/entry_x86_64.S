/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything of the preload layer that C cannot say, for x86-64:
 *
 * - the exported symbols. Each is one jump through preload_export_targets, which leads to a resolver
 *   first and to the wrapper (or, when the library is passive, to the real function) afterwards;
 * - the stubs of launches: a look-up in decide_pass_table, two counters, and a jump to the real function
 *   with every register and the stack as the caller left them. Anything else goes to the C wrapper;
 * - the stubs of runtime functions: note the caller, jump;
 * - dlsym, which must reach the real one with the caller's own return address.
 *
 * rax, r10 and r11 are free at a function's entry (System V ABI, no variadic function here).
 */
#include "preload/layout.h"

    .text

/* ---- exported symbols ---- */

/* preload_exports holds local labels: a reference by name would be bound to the definition of a
 * library that is preloaded before this one. */

    .macro export_body index, node
    endbr64
    jmp     *(preload_export_targets + 8 * (\index * PRELOAD_EXPORT_SLOT_NODES + \node))(%rip)
    .endm

    .macro export_resolver label, index, node
    .p2align 4
    .type   \label, @function
\label:
    .cfi_startproc
    endbr64
    movl    $(\index * PRELOAD_EXPORT_SLOT_NODES + \node), %eax
    jmp     preload_export_first_call
    .cfi_endproc
    .size   \label, . - \label
    .endm

    .macro driver_export symbol, index
    .globl  \symbol
    .protected \symbol
    .type   \symbol, @function
    .p2align 4
\symbol:
.Lexport_\symbol:
    .cfi_startproc
    export_body \index, 0
    .cfi_endproc
    .size   \symbol, . - \symbol
    export_resolver .Lresolve_\symbol, \index, 0
    .pushsection .data.preload_export_targets, "aw", @progbits
    .quad   .Lresolve_\symbol, 0, 0
    .popsection
    .pushsection .data.rel.ro.preload_exports, "aw", @progbits
    .quad   .Lexport_\symbol, 0, 0
    .popsection
    .endm

    .macro runtime_export_node symbol, index, node, version
    .globl  \symbol\()_node\node
    .type   \symbol\()_node\node, @function
    .symver \symbol\()_node\node, \symbol\version
    .p2align 4
\symbol\()_node\node:
.Lexport_\symbol\()_node\node:
    .cfi_startproc
    export_body \index, \node
    .cfi_endproc
    .size   \symbol\()_node\node, . - \symbol\()_node\node
    export_resolver .Lresolve_\symbol\()_node\node, \index, \node
    .endm

    .macro runtime_export symbol, index
    runtime_export_node \symbol, \index, 0, @libcudart.so.11.0
    runtime_export_node \symbol, \index, 1, @libcudart.so.12
    runtime_export_node \symbol, \index, 2, @@libcudart.so.13
    .pushsection .data.preload_export_targets, "aw", @progbits
    .quad   .Lresolve_\symbol\()_node0, .Lresolve_\symbol\()_node1, .Lresolve_\symbol\()_node2
    .popsection
    .pushsection .data.rel.ro.preload_exports, "aw", @progbits
    .quad   .Lexport_\symbol\()_node0, .Lexport_\symbol\()_node1, .Lexport_\symbol\()_node2
    .popsection
    .endm

/* The first call of an exported symbol: eax says which. Finds where it leads, and goes there with the
 * arguments untouched. */
    .p2align 4
    .type   preload_export_first_call, @function
preload_export_first_call:
    .cfi_startproc
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    pushq   %rcx
    .cfi_adjust_cfa_offset 8
    pushq   %r8
    .cfi_adjust_cfa_offset 8
    pushq   %r9
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    movl    %eax, %edi
    movq    56(%rsp), %rsi
    call    preload_resolve_export
    movq    %rax, %r11
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %r9
    .cfi_adjust_cfa_offset -8
    popq    %r8
    .cfi_adjust_cfa_offset -8
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    jmp     *%r11
    .cfi_endproc
    .size   preload_export_first_call, . - preload_export_first_call

/* ---- entry stubs ---- */

    .macro launch_stub symbol, index, slot, handle
    .p2align 5
    .type   .Lstub_\symbol\()_\slot, @function
.Lstub_\symbol\()_\slot:
    .cfi_startproc
    endbr64
    movq    report_control(%rip), %r10
    movq    (%r10), %r10
    cmpq    report_control_expected(%rip), %r10
    jne     1f
    movabsq $PRELOAD_PASS_MULTIPLIER, %rax
    imulq   \handle, %rax
    shrq    $(64 - PRELOAD_PASS_BITS), %rax
    shlq    $PRELOAD_PASS_ENTRY_SHIFT, %rax
    leaq    decide_pass_table(%rip), %r11
    cmpq    (%r11, %rax), \handle
    jne     1f
    movq    PRELOAD_PASS_COUNT(%r11, %rax), %r10
    movq    report_shard@gottpoff(%rip), %rax
    movq    %fs:(%rax), %rax
    testq   %rax, %rax
    jz      1f
    incq    8 * \index(%rax)
    incq    (%rax, %r10)
    jmp     *(preload_slots + PRELOAD_SLOT_SIZE * (\index * PRELOAD_SLOTS + \slot))(%rip)
1:  jmp     \symbol\()_slot\slot
    .cfi_endproc
    .size   .Lstub_\symbol\()_\slot, . - .Lstub_\symbol\()_\slot
    .endm

    .macro launch_entry symbol, counter, handle
    .irp    slot, 0, 1, 2, 3
    launch_stub \symbol, (\counter + 1), \slot, \handle
    .endr
    .pushsection .data.rel.ro.preload_stubs, "aw", @progbits
    .quad   .Lstub_\symbol\()_0, .Lstub_\symbol\()_1, .Lstub_\symbol\()_2, .Lstub_\symbol\()_3, 0, 0
    .popsection
    driver_export \symbol, (\counter + 1)
    .endm

    .macro driver_entry symbol, counter
    .pushsection .data.rel.ro.preload_stubs, "aw", @progbits
    .quad   \symbol\()_slot0, \symbol\()_slot1, \symbol\()_slot2, \symbol\()_slot3, 0, 0
    .popsection
    driver_export \symbol, (\counter + 1)
    .endm

/* The caller's address is noted for the driver wrapper below, which would only see libcudart. */
    .macro runtime_stub symbol, index, slot
    .p2align 4
    .type   .Lstub_\symbol\()_\slot, @function
.Lstub_\symbol\()_\slot:
    .cfi_startproc
    endbr64
    movq    (%rsp), %r10
    movq    preload_runtime_caller@gottpoff(%rip), %r11
    movq    %r10, %fs:(%r11)
    jmp     *(preload_slots + PRELOAD_SLOT_SIZE * (\index * PRELOAD_SLOTS + \slot) + PRELOAD_SLOT_TARGET)(%rip)
    .cfi_endproc
    .size   .Lstub_\symbol\()_\slot, . - .Lstub_\symbol\()_\slot
    .endm

    .macro runtime_entry symbol, counter
    .irp    slot, 0, 1, 2, 3, 4, 5
    runtime_stub \symbol, (\counter + 1), \slot
    .endr
    .pushsection .data.rel.ro.preload_stubs, "aw", @progbits
    .quad   .Lstub_\symbol\()_0, .Lstub_\symbol\()_1, .Lstub_\symbol\()_2
    .quad   .Lstub_\symbol\()_3, .Lstub_\symbol\()_4, .Lstub_\symbol\()_5
    .popsection
    runtime_export \symbol, (\counter + 1)
    .endm

/* Row 0 of each table is no entry point. */
    .pushsection .data.preload_export_targets, "aw", @progbits
    .p2align 3
    .globl  preload_export_targets
    .hidden preload_export_targets
preload_export_targets:
    .quad   0, 0, 0
    .popsection
    .pushsection .data.rel.ro.preload_exports, "aw", @progbits
    .p2align 3
    .globl  preload_exports
    .hidden preload_exports
preload_exports:
    .quad   0, 0, 0
    .popsection
    .pushsection .data.rel.ro.preload_stubs, "aw", @progbits
    .p2align 3
    .globl  preload_stubs
    .hidden preload_stubs
preload_stubs:
    .quad   0, 0, 0, 0, 0, 0
    .popsection

#define HANDLE_1 %rdi
#define HANDLE_2 %rsi
#define LAUNCH(symbol, base, version, variant, handle, wrapper, parameters, arguments)             \
    launch_entry symbol, __COUNTER__, HANDLE_##handle
#define DRIVER(symbol, base, version, variant, wrapper, parameters, arguments)                     \
    driver_entry symbol, __COUNTER__
#define RUNTIME(symbol, variant, wrapper, parameters, arguments) runtime_entry symbol, __COUNTER__
#include "preload/entries.def"

/* ---- dlsym ---- */

/* preload_symbol looks at the request. Where it has no part in it, the next dlsym gets the registers
 * and the return address of the caller: what RTLD_NEXT and RTLD_DEFAULT mean depends on that address. */
    .macro dlsym_version label, version
    .globl  \label
    .type   \label, @function
    .symver \label, \version
    .p2align 4
\label:
    .cfi_startproc
    endbr64
    jmp     preload_dlsym
    .cfi_endproc
    .size   \label, . - \label
    .endm

    dlsym_version preload_dlsym_2_2_5, dlsym@GLIBC_2.2.5
    dlsym_version preload_dlsym_2_34, dlsym@@GLIBC_2.34

    .p2align 4
    .type   preload_dlsym, @function
preload_dlsym:
    .cfi_startproc
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq    24(%rsp), %rdx
    call    preload_symbol
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    testq   %rax, %rax
    jz      1f
    jmp     *%rax
1:  movq    %rdx, %rax
    ret
    .cfi_endproc
    .size   preload_dlsym, . - preload_dlsym

    .section .note.GNU-stack, "", @progbits
