/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_MAPPED_H
#define CUDAPOLICY_REPORT_MAPPED_H

/*
 * The image: the counters' file, or private memory laid out like it, at one address for the life of
 * the process. It begins as private memory; when the first kernel is launched a file takes its
 * place (the image is "settled"). Pages of the file are given disk blocks before they are touched:
 * a store to a mapped page that the disk has no room for would kill the program. Where there is no
 * room, private memory is laid over those pages, and the header says that the file is partial.
 * Shards are mapped apart, each when it is first needed.
 *
 * Functions marked (locked) are called between report_lock and report_unlock. Nothing here
 * allocates from the heap or calls into the loader.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/layout.h"
#include "report/log.h"

/* The module's one lock: held at first sights, never on the launch path. */
void report_lock(void);
void report_unlock(void);

/* The address of the image, NULL while there is none. Any thread. */
extern unsigned char *report_image;
/* Set once no remapping of the image's pages in use will happen any more: until then, counters that
 * are otherwise changed without the lock are changed with it. Any thread, atomic. */
extern bool report_image_settled;

/* The process's own counts, published to the header; never read back from the file, which others
 * could have changed. (locked) */
extern struct report_counts report_counts;

struct report_header *report_image_header(void);
void *report_image_region(enum report_region region);

/* Remembers where the file will be; NULL: nowhere. Takes no lock, allocates nothing. */
void report_image_path(const char *path);
/* The path as an absolute one; NULL when no report is wanted. */
const char *report_image_json_path(void);
/* The level at which trouble with files is said. */
extern enum report_log_level report_image_trouble;

/* Makes the image if there is none: private memory, with header, first kernel and first cell. False
 * when there is no address space for it; it is not tried again. (locked) */
bool report_image_make(void);

/* Puts the file in the image's place, once. What cannot be done is said in a warning, and the image
 * stays private. (locked) */
void report_image_settle(void);

/* Makes the first `bytes` bytes of a region, or of one shard, safe to touch. False when there is
 * neither disk nor memory nor address space, or the region ends before: the caller's table is full.
 * (locked) */
bool report_image_reserve(enum report_region region, uint64_t bytes);
bool report_image_reserve_shard(uint32_t shard, uint64_t bytes);
/* NULL while it is not mapped. The shared one is there while the image is. Any thread. */
struct report_shard *report_image_shard(uint32_t shard);

/* Appends a string; returns its offset, 0 for "" and when there is no room. (locked) */
uint32_t report_image_add_text(const char *text);
/* The string at an offset, "" when there is none. (locked) */
const char *report_image_text(uint32_t offset);

/* Stores a count of report_counts in the header so that readers see what stands below it. (locked)
 */
void report_image_publish(void);

/* The file's name while there is one, else NULL. */
const char *report_image_file(void);
/* Removes the file, if it is still the one that was made. */
void report_image_remove_file(void);
/* No further page of the file will be asked of the disk: private memory is taken instead. (locked)
 */
void report_image_detach(void);

/* In the child after fork: exchanges the image for a private copy of its tables without counters,
 * so that numbers given out before still stand for the same kernels and cells. The parent's file is
 * not written to. */
void report_image_after_fork(void);

#endif
