/* SPDX-License-Identifier: Apache-2.0 */
/* Preprocessed, not compiled: one line "driver NAME" or "runtime NAME" for each entry point. */
#define DRIVER(symbol, ...) driver symbol
#define RUNTIME(symbol, ...) runtime symbol
#include "preload/entries.def"
