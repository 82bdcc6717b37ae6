/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything of the preload layer that C cannot say, for aarch64. entry_x86_64.S says what and why; the
 * two files have the same parts in the same order.
 *
 * x9 to x17 are free at a function's entry (AAPCS64). Between the two loads of decide_pass_table the
 * order matters: the count is read with acquire, so that the handle read after it is not older.
 */
#include "preload/layout.h"

    .text

    .macro address register, symbol
    adrp    \register, \symbol
    add     \register, \register, :lo12:\symbol
    .endm

/* ---- exported symbols ---- */

/* preload_exports holds local labels: a reference by name would be bound to the definition of a
 * library that is preloaded before this one. */

    .macro export_body index, node
    hint    #34 /* bti c */
    adrp    x16, preload_export_targets + 8 * (\index * PRELOAD_EXPORT_SLOT_NODES + \node)
    ldr     x16, [x16, :lo12:preload_export_targets + 8 * (\index * PRELOAD_EXPORT_SLOT_NODES + \node)]
    br      x16
    .endm

    .macro export_resolver label, index, node
    .p2align 4
    .type   \label, %function
\label:
    .cfi_startproc
    hint    #36 /* bti j: reached by br */
    mov     w9, #(\index * PRELOAD_EXPORT_SLOT_NODES + \node)
    b       preload_export_first_call
    .cfi_endproc
    .size   \label, . - \label
    .endm

    .macro driver_export symbol, index
    .globl  \symbol
    .protected \symbol
    .type   \symbol, %function
    .p2align 4
\symbol:
.Lexport_\symbol:
    .cfi_startproc
    export_body \index, 0
    .cfi_endproc
    .size   \symbol, . - \symbol
    export_resolver .Lresolve_\symbol, \index, 0
    .pushsection .data.preload_export_targets, "aw", %progbits
    .quad   .Lresolve_\symbol, 0, 0
    .popsection
    .pushsection .data.rel.ro.preload_exports, "aw", %progbits
    .quad   .Lexport_\symbol, 0, 0
    .popsection
    .endm

    .macro runtime_export_node symbol, index, node, version
    .globl  \symbol\()_node\node
    .type   \symbol\()_node\node, %function
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
    .pushsection .data.preload_export_targets, "aw", %progbits
    .quad   .Lresolve_\symbol\()_node0, .Lresolve_\symbol\()_node1, .Lresolve_\symbol\()_node2
    .popsection
    .pushsection .data.rel.ro.preload_exports, "aw", %progbits
    .quad   .Lexport_\symbol\()_node0, .Lexport_\symbol\()_node1, .Lexport_\symbol\()_node2
    .popsection
    .endm

/* w9 says which; x30 is the caller. All eight argument registers are kept. */
    .p2align 4
    .type   preload_export_first_call, %function
preload_export_first_call:
    .cfi_startproc
    stp     x29, x30, [sp, #-80]!
    .cfi_adjust_cfa_offset 80
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov     x29, sp
    stp     x0, x1, [sp, #16]
    stp     x2, x3, [sp, #32]
    stp     x4, x5, [sp, #48]
    stp     x6, x7, [sp, #64]
    mov     w0, w9
    mov     x1, x30
    bl      preload_resolve_export
    mov     x16, x0
    ldp     x0, x1, [sp, #16]
    ldp     x2, x3, [sp, #32]
    ldp     x4, x5, [sp, #48]
    ldp     x6, x7, [sp, #64]
    ldp     x29, x30, [sp], #80
    .cfi_adjust_cfa_offset -80
    .cfi_restore x29
    .cfi_restore x30
    br      x16
    .cfi_endproc
    .size   preload_export_first_call, . - preload_export_first_call

/* ---- entry stubs ---- */

    .macro launch_stub symbol, index, slot, handle
    .p2align 5
    .type   .Lstub_\symbol\()_\slot, %function
.Lstub_\symbol\()_\slot:
    .cfi_startproc
    hint    #34
    adrp    x9, report_control
    ldr     x9, [x9, :lo12:report_control]
    ldr     x9, [x9]
    adrp    x10, report_control_expected
    ldr     x10, [x10, :lo12:report_control_expected]
    cmp     x9, x10
    b.ne    1f
    movz    x9, #0x7c15
    movk    x9, #0x7f4a, lsl #16
    movk    x9, #0x79b9, lsl #32
    movk    x9, #0x9e37, lsl #48
    mul     x9, x9, \handle
    lsr     x9, x9, #(64 - PRELOAD_PASS_BITS)
    address x10, decide_pass_table
    add     x10, x10, x9, lsl #PRELOAD_PASS_ENTRY_SHIFT
    ldar    x12, [x10]
    cmp     x12, \handle
    b.ne    1f
    ldr     x11, [x10, #PRELOAD_PASS_COUNT]
    mrs     x9, tpidr_el0
    adrp    x10, :gottprel:report_shard
    ldr     x10, [x10, :gottprel_lo12:report_shard]
    ldr     x9, [x9, x10]
    cbz     x9, 1f
    ldr     x10, [x9, #(8 * \index)]
    add     x10, x10, #1
    str     x10, [x9, #(8 * \index)]
    ldr     x10, [x9, x11]
    add     x10, x10, #1
    str     x10, [x9, x11]
    adrp    x16, preload_slots + PRELOAD_SLOT_SIZE * (\index * PRELOAD_SLOTS + \slot)
    ldr     x16, [x16, :lo12:preload_slots + PRELOAD_SLOT_SIZE * (\index * PRELOAD_SLOTS + \slot)]
    br      x16
1:  b       \symbol\()_slot\slot
    .cfi_endproc
    .size   .Lstub_\symbol\()_\slot, . - .Lstub_\symbol\()_\slot
    .endm

    .macro launch_entry symbol, counter, handle
    .irp    slot, 0, 1, 2, 3
    launch_stub \symbol, (\counter + 1), \slot, \handle
    .endr
    .pushsection .data.rel.ro.preload_stubs, "aw", %progbits
    .quad   .Lstub_\symbol\()_0, .Lstub_\symbol\()_1, .Lstub_\symbol\()_2, .Lstub_\symbol\()_3, 0, 0
    .popsection
    driver_export \symbol, (\counter + 1)
    .endm

    .macro driver_entry symbol, counter
    .pushsection .data.rel.ro.preload_stubs, "aw", %progbits
    .quad   \symbol\()_slot0, \symbol\()_slot1, \symbol\()_slot2, \symbol\()_slot3, 0, 0
    .popsection
    driver_export \symbol, (\counter + 1)
    .endm

    .macro runtime_stub symbol, index, slot
    .p2align 4
    .type   .Lstub_\symbol\()_\slot, %function
.Lstub_\symbol\()_\slot:
    .cfi_startproc
    hint    #34
    mrs     x9, tpidr_el0
    adrp    x10, :gottprel:preload_runtime_caller
    ldr     x10, [x10, :gottprel_lo12:preload_runtime_caller]
    str     x30, [x9, x10]
    adrp    x16, preload_slots + PRELOAD_SLOT_SIZE * (\index * PRELOAD_SLOTS + \slot) + PRELOAD_SLOT_TARGET
    ldr     x16, [x16, :lo12:preload_slots + PRELOAD_SLOT_SIZE * (\index * PRELOAD_SLOTS + \slot) + PRELOAD_SLOT_TARGET]
    br      x16
    .cfi_endproc
    .size   .Lstub_\symbol\()_\slot, . - .Lstub_\symbol\()_\slot
    .endm

    .macro runtime_entry symbol, counter
    .irp    slot, 0, 1, 2, 3, 4, 5
    runtime_stub \symbol, (\counter + 1), \slot
    .endr
    .pushsection .data.rel.ro.preload_stubs, "aw", %progbits
    .quad   .Lstub_\symbol\()_0, .Lstub_\symbol\()_1, .Lstub_\symbol\()_2
    .quad   .Lstub_\symbol\()_3, .Lstub_\symbol\()_4, .Lstub_\symbol\()_5
    .popsection
    runtime_export \symbol, (\counter + 1)
    .endm

/* Row 0 of each table is no entry point. */
    .pushsection .data.preload_export_targets, "aw", %progbits
    .p2align 3
    .globl  preload_export_targets
    .hidden preload_export_targets
preload_export_targets:
    .quad   0, 0, 0
    .popsection
    .pushsection .data.rel.ro.preload_exports, "aw", %progbits
    .p2align 3
    .globl  preload_exports
    .hidden preload_exports
preload_exports:
    .quad   0, 0, 0
    .popsection
    .pushsection .data.rel.ro.preload_stubs, "aw", %progbits
    .p2align 3
    .globl  preload_stubs
    .hidden preload_stubs
preload_stubs:
    .quad   0, 0, 0, 0, 0, 0
    .popsection

#define HANDLE_1 x0
#define HANDLE_2 x1
#define LAUNCH(symbol, base, version, variant, handle, wrapper, parameters, arguments)             \
    launch_entry symbol, __COUNTER__, HANDLE_##handle
#define DRIVER(symbol, base, version, variant, wrapper, parameters, arguments)                     \
    driver_entry symbol, __COUNTER__
#define RUNTIME(symbol, variant, wrapper, parameters, arguments) runtime_entry symbol, __COUNTER__
#include "preload/entries.def"

/* ---- dlsym ---- */

    .macro dlsym_version label, version
    .globl  \label
    .type   \label, %function
    .symver \label, \version
    .p2align 4
\label:
    .cfi_startproc
    hint    #34
    b       preload_dlsym
    .cfi_endproc
    .size   \label, . - \label
    .endm

    dlsym_version preload_dlsym_2_17, dlsym@GLIBC_2.17
    dlsym_version preload_dlsym_2_34, dlsym@@GLIBC_2.34

    .p2align 4
    .type   preload_dlsym, %function
preload_dlsym:
    .cfi_startproc
    stp     x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov     x29, sp
    stp     x0, x1, [sp, #16]
    mov     x2, x30
    bl      preload_symbol
    mov     x16, x0
    mov     x17, x1
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    .cfi_restore x29
    .cfi_restore x30
    cbz     x16, 1f
    br      x16
1:  mov     x0, x17
    ret
    .cfi_endproc
    .size   preload_dlsym, . - preload_dlsym

    .section .note.GNU-stack, "", %progbits
