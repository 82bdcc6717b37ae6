/* SPDX-License-Identifier: Apache-2.0 */
/* Preprocessed, not compiled: one line a row of the table of entry points and of its exceptions. */
#define DRIVER(symbol, base, version, variant, wrapper, parameters, arguments)                     \
    driver symbol base version variant
#define RUNTIME(symbol, variant, wrapper, parameters, arguments) runtime symbol
#include "preload/entries.def"
#define DRIVER_EXCEPTION(base, reason) driver_exception base reason
#define RUNTIME_EXCEPTION(name, reason) runtime_exception name reason
#include "preload/exceptions.def"
