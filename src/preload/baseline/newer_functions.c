/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that code compiled for a glibc newer than the baseline calls although it asked for nothing
 * new: there, fstat is a function of its own (2.33), and strtol and sscanf are renamed by the headers
 * (2.38). The static libraries of the distribution call them too. These stand-ins are hidden; they use
 * what the baseline has.
 */
#include <features.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

/* An alias for the names with which _FILE_OFFSET_BITS=64 replaces the plain ones. */
#define STAND_IN(name) __asm__(#name) __attribute__((visibility("hidden")))
#define SAME_AS(name) __attribute__((alias(#name), visibility("hidden")))

#if __GLIBC_PREREQ(2, 33)

/* The first argument of the old functions: the layout of struct stat. */
#ifdef __x86_64__
enum { LAYOUT = 1 };
#else
enum { LAYOUT = 0 };
#endif

int __fxstat(int layout, int descriptor, struct stat *status);
int __xstat(int layout, const char *path, struct stat *status);
int __lxstat(int layout, const char *path, struct stat *status);

int baseline_fstat(int descriptor, struct stat *status) STAND_IN(fstat);
int baseline_stat(const char *path, struct stat *status) STAND_IN(stat);
int baseline_lstat(const char *path, struct stat *status) STAND_IN(lstat);

int baseline_fstat(int descriptor, struct stat *status)
{
    return __fxstat(LAYOUT, descriptor, status);
}

int baseline_stat(const char *path, struct stat *status)
{
    return __xstat(LAYOUT, path, status);
}

int baseline_lstat(const char *path, struct stat *status)
{
    return __lxstat(LAYOUT, path, status);
}

int baseline_fstat64(int descriptor, struct stat *status) __asm__("fstat64") SAME_AS(fstat);
int baseline_stat64(const char *path, struct stat *status) __asm__("stat64") SAME_AS(stat);
int baseline_lstat64(const char *path, struct stat *status) __asm__("lstat64") SAME_AS(lstat);

#endif

#if __GLIBC_PREREQ(2, 38)

/* The older functions under their own names, which the headers no longer give out. They differ in not
 * knowing the prefix 0b. */
long baseline_strtol(const char *text, char **end, int base) __asm__("strtol");
unsigned long baseline_strtoul(const char *text, char **end, int base) __asm__("strtoul");
long long baseline_strtoll(const char *text, char **end, int base) __asm__("strtoll");
unsigned long long baseline_strtoull(const char *text, char **end, int base) __asm__("strtoull");
int baseline_vsscanf(const char *text, const char *format, va_list arguments)
    __asm__("__isoc99_vsscanf");

long newer_strtol(const char *text, char **end, int base) STAND_IN(__isoc23_strtol);
unsigned long newer_strtoul(const char *text, char **end, int base) STAND_IN(__isoc23_strtoul);
long long newer_strtoll(const char *text, char **end, int base) STAND_IN(__isoc23_strtoll);
unsigned long long newer_strtoull(const char *text, char **end, int base)
    STAND_IN(__isoc23_strtoull);
int newer_sscanf(const char *text, const char *format, ...) STAND_IN(__isoc23_sscanf);

long newer_strtol(const char *text, char **end, int base)
{
    return baseline_strtol(text, end, base);
}

unsigned long newer_strtoul(const char *text, char **end, int base)
{
    return baseline_strtoul(text, end, base);
}

long long newer_strtoll(const char *text, char **end, int base)
{
    return baseline_strtoll(text, end, base);
}

unsigned long long newer_strtoull(const char *text, char **end, int base)
{
    return baseline_strtoull(text, end, base);
}

int newer_sscanf(const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = baseline_vsscanf(text, format, arguments);
    va_end(arguments);
    return count;
}

#endif
