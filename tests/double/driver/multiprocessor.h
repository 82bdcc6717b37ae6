/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORDING_DRIVER_MULTIPROCESSOR_H
#define RECORDING_DRIVER_MULTIPROCESSOR_H

/* Multiprocessors (SMs) of a device, sets of them, and what each belongs to. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SM_MAX 256 /* SMs of a device */
#define SM_WORDS (SM_MAX / 64)

/* SMs by their numbers. */
struct sm_set {
    uint64_t bits[SM_WORDS];
};

#define SIZES_MAX 32

/* Sizes of parts of a device that follow each other. */
struct sizes {
    int count;
    int size[SIZES_MAX];
};

#define DOMAIN_NONE (-1)

struct text;

void sm_set_add(struct sm_set *set, unsigned int sm);
bool sm_set_has(const struct sm_set *set, unsigned int sm);
unsigned int sm_set_count(const struct sm_set *set);
void sm_set_unite(struct sm_set *set, const struct sm_set *other);
void sm_set_remove(struct sm_set *set, const struct sm_set *other);
/* Adds SMs of `from`, in the order of their numbers, until the set has `count`. */
void sm_set_fill(struct sm_set *set, const struct sm_set *from, unsigned int count);
void text_sm_set(struct text *text, const struct sm_set *set);
/* The SMs of any device that this process may use. */
struct sm_set device_sms(void);
int domain_count(void);
/* SMs of a locality domain, as the device attribute has it. */
int domain_multiprocessors(void);
int domain_of(unsigned int sm); /* or DOMAIN_NONE */
int gpc_of(unsigned int sm);
/* Takes `size` SMs that lie in one GPC and one domain out of the set; empty when there are none. */
struct sm_set gpc_take(struct sm_set *from, unsigned int size);
/* How many groups of `size` SMs in one GPC the set has. */
unsigned int gpc_groups(const struct sm_set *set, unsigned int size);
void multiprocessors_refresh(void);

#endif
