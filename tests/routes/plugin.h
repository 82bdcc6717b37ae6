/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROUTES_PLUGIN_H
#define ROUTES_PLUGIN_H

/* What host.c calls in a library that it loads; argv[0] is the library. */
int plugin_main(int argc, char **argv) __attribute__((visibility("default")));

#endif
