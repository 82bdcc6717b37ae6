/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PRELOAD_LAYOUT_H
#define CUDAPOLICY_PRELOAD_LAYOUT_H

/*
 * Numbers that the assembly shares with the C code; entries.c asserts that they agree with the
 * types. Only #define lines here: the assembler reads this file too.
 */

/* Slots of an entry point: each distinct real pointer that is seen for it gets one, and the wrapper
 * of that slot calls that very pointer. */
#define PRELOAD_SLOTS 6
#define PRELOAD_DYNAMIC_SLOTS 3     /* 0, 1, 2: pointers that were looked up */
#define PRELOAD_EXPORT_SLOT 3       /* of a driver function: the exported symbol */
#define PRELOAD_EXPORT_SLOT_NODES 3 /* of a runtime function: 3, 4, 5, one a version node */
#define PRELOAD_SLOT_SIZE 16        /* struct preload_slot: the real function, then the target */
#define PRELOAD_SLOT_TARGET 8

/* The table of functions that pass: decide/decide.h. */
#define PRELOAD_PASS_BITS 12
#define PRELOAD_PASS_MULTIPLIER 0x9e3779b97f4a7c15
#define PRELOAD_PASS_ENTRY_SHIFT 4 /* sizeof(struct decide_pass_entry) == 16 */
#define PRELOAD_PASS_COUNT 8       /* offset of count_offset; handle is at 0 */

#endif
