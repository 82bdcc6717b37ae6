/* SPDX-License-Identifier: Apache-2.0 */
/* The map from handles to entries: one writer's view, growth, churn, and readers beside writers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "decide/handle_map.h"

struct item {
    struct handle_entry base;
    _Atomic uint64_t payload;
};

static struct item *add(struct handle_map *map, uint64_t handle, uint64_t payload)
{
    handle_map_lock(map);
    struct item *item = handle_map_new(map);
    assert_non_null(item);
    atomic_store_explicit(&item->payload, payload, memory_order_relaxed);
    assert_true(handle_map_insert(map, item, handle));
    handle_map_unlock(map);
    return item;
}

static bool take(struct handle_map *map, uint64_t handle)
{
    handle_map_lock(map);
    bool removed = handle_map_remove(map, handle);
    handle_map_unlock(map);
    return removed;
}

static void discard(struct handle_map *map)
{
    struct handle_table *table = atomic_load(&map->table);
    while (table) {
        struct handle_table *previous = table->previous;
        free(table->spare);
        free(table);
        table = previous;
    }
    for (void *block = map->blocks; block;) {
        void *next = *(void **)block;
        free(block);
        block = next;
    }
}

static void an_empty_map_finds_nothing(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    assert_null(handle_map_find(&map, 1));
    assert_null(handle_map_find(&map, 0));
    assert_false(take(&map, 1));
    discard(&map);
}

static void zero_and_the_tombstone_are_no_keys(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    add(&map, 7, 70);
    take(&map, 7);
    handle_map_lock(&map);
    assert_false(handle_map_insert(&map, handle_map_new(&map), 0));
    assert_false(handle_map_insert(&map, handle_map_new(&map), HANDLE_MAP_TOMBSTONE));
    handle_map_unlock(&map);
    assert_null(handle_map_find(&map, 0));
    assert_null(handle_map_find(&map, HANDLE_MAP_TOMBSTONE));
    discard(&map);
}

static void every_handle_is_found_while_the_map_grows(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    enum { COUNT = 20000 };
    for (uint64_t i = 1; i <= COUNT; i++)
        add(&map, i * 64, i);
    for (uint64_t i = 1; i <= COUNT; i++) {
        struct item *item = handle_map_find(&map, i * 64);
        assert_non_null(item);
        assert_int_equal(item->payload, i);
        assert_null(handle_map_find(&map, i * 64 + 1));
    }
    assert_int_equal(handle_map_count(&map), COUNT);
    discard(&map);
}

static void an_entry_stays_at_its_address_while_the_map_grows(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    struct item *first = add(&map, 5, 50);
    for (uint64_t i = 100; i < 5000; i++)
        add(&map, i, i);
    assert_ptr_equal(handle_map_find(&map, 5), first);
    discard(&map);
}

static void a_removed_handle_is_not_found_and_others_are(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    for (uint64_t i = 1; i <= 1000; i++)
        add(&map, i, i);
    for (uint64_t i = 1; i <= 1000; i += 2)
        assert_true(take(&map, i));
    for (uint64_t i = 1; i <= 1000; i++)
        assert_int_equal(handle_map_find(&map, i) != NULL, i % 2 == 0);
    assert_false(take(&map, 1));
    assert_int_equal(handle_map_count(&map), 500);
    discard(&map);
}

static void a_handle_used_again_has_its_new_entry(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    struct item *old = add(&map, 9, 1);
    uint32_t use = handle_entry_use(old);
    take(&map, 9);
    assert_int_not_equal(handle_entry_use(old), use);
    add(&map, 9, 2);
    assert_int_equal(((struct item *)handle_map_find(&map, 9))->payload, 2);
    add(&map, 9, 3);
    assert_int_equal(((struct item *)handle_map_find(&map, 9))->payload, 3);
    assert_int_equal(handle_map_count(&map), 1);
    discard(&map);
}

static void a_new_entry_is_zero_even_when_its_memory_was_used_before(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    add(&map, 9, 1);
    take(&map, 9);
    handle_map_lock(&map);
    struct item *item = handle_map_new(&map);
    assert_int_equal(item->payload, 0);
    assert_true(handle_map_insert(&map, item, 10));
    handle_map_unlock(&map);
    discard(&map);
}

static size_t size_of(const struct handle_map *map)
{
    return atomic_load(&map->table)->size;
}

static void churn_does_not_make_the_map_grow(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    enum { LIVE = 40 };
    for (uint64_t i = 1; i <= LIVE; i++)
        add(&map, i * 4096, i);
    size_t before = size_of(&map);
    for (uint64_t i = LIVE + 1; i <= 200000; i++) {
        add(&map, i * 4096, i);
        assert_true(take(&map, (i - LIVE) * 4096));
    }
    assert_true(size_of(&map) <= 2 * before);
    for (uint64_t i = 200000 - LIVE + 1; i <= 200000; i++)
        assert_non_null(handle_map_find(&map, i * 4096));
    struct handle_table *table = atomic_load(&map.table);
    size_t tables = 0;
    for (; table; table = table->previous)
        tables++;
    assert_true(tables <= 3);
    discard(&map);
}

static void walking_sees_each_entry_once_and_may_remove_it(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    for (uint64_t i = 1; i <= 300; i++)
        add(&map, i, i);
    uint64_t sum = 0;
    handle_map_lock(&map);
    size_t position = 0;
    struct item *item;
    while ((item = handle_map_next(&map, &position))) {
        sum += item->payload;
        assert_true(handle_map_remove(&map, item->base.handle));
    }
    assert_int_equal(sum, 300 * 301 / 2);
    assert_int_equal(handle_map_count(&map), 0);
    handle_map_unlock(&map);
    discard(&map);
}

static void after_a_fork_the_map_is_empty_and_usable(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    add(&map, 3, 30);
    handle_map_lock(&map); /* as by a thread that the child does not have */
    handle_map_after_fork(&map);
    assert_null(handle_map_find(&map, 3));
    add(&map, 3, 31);
    assert_int_equal(((struct item *)handle_map_find(&map, 3))->payload, 31);
    discard(&map);
}

/* ---- Readers beside writers ---- */

enum {
    READERS = 4,
    STEADY = 100,
    CHURNS = 30000,
};
#define STEADY_HANDLE(i) (UINT64_C(0x7f0000000000) + (i)*128)
#define CHURN_HANDLE(i) (UINT64_C(0x7e0000000000) + (i)*128)

struct race {
    struct handle_map *map;
    atomic_bool done;
    atomic_ulong misses, mistakes;
};

/* Entries that nobody removes must be found at every moment, with their own payload. */
static void *read_steadily(void *argument)
{
    struct race *race = argument;
    while (!atomic_load(&race->done)) {
        for (uint64_t i = 0; i < STEADY; i++) {
            struct item *item = handle_map_find(race->map, STEADY_HANDLE(i));
            if (!item)
                atomic_fetch_add(&race->misses, 1);
            else if (atomic_load_explicit(&item->payload, memory_order_relaxed) != i + 1)
                atomic_fetch_add(&race->mistakes, 1);
        }
    }
    return NULL;
}

static void readers_never_miss_an_entry_that_stays(void **state)
{
    (void)state;
    struct handle_map map = HANDLE_MAP_INITIALISER(struct item);
    struct race race = {.map = &map};
    pthread_t readers[READERS];
    for (uint64_t i = 0; i < STEADY; i++)
        add(&map, STEADY_HANDLE(i), i + 1);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_steadily, &race), 0);
    for (uint64_t i = 0; i < CHURNS; i++) {
        add(&map, CHURN_HANDLE(i), 0);
        if (i >= 90)
            take(&map, CHURN_HANDLE(i - 90));
        if (i % 3000 == 0)
            add(&map, CHURN_HANDLE(CHURNS + i), 0); /* slow growth beside the churn */
    }
    atomic_store(&race.done, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    assert_int_equal(race.misses, 0);
    assert_int_equal(race.mistakes, 0);
    discard(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_finds_nothing),
        cmocka_unit_test(zero_and_the_tombstone_are_no_keys),
        cmocka_unit_test(every_handle_is_found_while_the_map_grows),
        cmocka_unit_test(an_entry_stays_at_its_address_while_the_map_grows),
        cmocka_unit_test(a_removed_handle_is_not_found_and_others_are),
        cmocka_unit_test(a_handle_used_again_has_its_new_entry),
        cmocka_unit_test(a_new_entry_is_zero_even_when_its_memory_was_used_before),
        cmocka_unit_test(churn_does_not_make_the_map_grow),
        cmocka_unit_test(walking_sees_each_entry_once_and_may_remove_it),
        cmocka_unit_test(after_a_fork_the_map_is_empty_and_usable),
        cmocka_unit_test(readers_never_miss_an_entry_that_stays),
    };
    return cmocka_run_group_tests_name("decide_handle_map", tests, NULL, NULL);
}
