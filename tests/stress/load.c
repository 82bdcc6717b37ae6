/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: stress_load FOLDER LAUNCHERS LAUNCHES LOADS STREAMS GRAPHS FORK
 *
 * LAUNCHERS threads launch LAUNCHES times each. Beside them four threads load and unload, LOADS
 * times together, two create and destroy streams, STREAMS rounds each, and four make graphs, GRAPHS
 * rounds each; two set attributes of the functions that all launch, look functions of the driver up
 * and make contexts, GRAPHS rounds each. FORK: 1 to fork in the middle of all this; 2 to fork when
 * every other thread is between two of its calls, for the run-time libraries of sanitizers: a lock
 * of theirs that another thread holds would stay locked in the child.
 *
 * What was launched is written to FOLDER/expected-PID, a line "KERNEL KIND COUNT" each; how the
 * process's memory grew while modules came and went, in KiB, to FOLDER/memory.
 */
#include "load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHURNERS = 4,
    STREAM_MAKERS = 2,
    GRAPH_MAKERS = 4,
    CHANGERS = 2,
    THREADS_LIMIT = 256,
    CHURN_PARTS = 5, /* memory is looked at after the first */
};

struct worker {
    pthread_t thread;
    void (*work)(unsigned number, unsigned times, struct load_counts *counts);
    unsigned number, times;
    struct load_counts counts;
};

static struct worker workers[THREADS_LIMIT];
static unsigned worker_count;
static const char *folder;
static long memory_early, memory_late;
static atomic_uint churned;

/* Of a quiet fork: who is to stop for it, and that no thread is just beginning or ending. */
static atomic_bool quiet_wanted;
static pthread_rwlock_t working; /* read by those at work; written by the one who forks */
static pthread_barrier_t all_workers;
static bool quiet;

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
        abort();
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The last of the threads to end a part looks at the memory. */
static void churn(unsigned number, unsigned times, struct load_counts *counts)
{
    for (unsigned part = 0; part < CHURN_PARTS; part++) {
        load_churn_modules(number + part, times / CHURN_PARTS, counts);
        unsigned done = atomic_fetch_add(&churned, 1) + 1;
        if (done == CHURNERS)
            memory_early = resident_kib();
        else if (done == CHURNERS * CHURN_PARTS)
            memory_late = resident_kib();
    }
}

static void write_expected(const struct load_counts *counts)
{
    static const char *const kinds[LOAD_KINDS] = {"eager", "captured", "node", "replayed"};
    char path[4096];
    snprintf(path, sizeof path, "%s/expected-%d", folder, (int)getpid());
    FILE *file = fopen(path, "w");
    if (file == NULL)
        abort();
    for (unsigned kernel = 0; kernel < LOAD_KERNELS; kernel++)
        for (unsigned kind = 0; kind < LOAD_KINDS; kind++)
            fprintf(file, "%s %s %llu\n", load_kernel_name(kernel), kinds[kind],
                    (unsigned long long)counts->of[kernel][kind]);
    fclose(file);
}

/* The child goes on alone: its own work, its own report. */
static void live_as_child(void)
{
    struct load_counts counts;
    memset(&counts, 0, sizeof counts);
    load_launch_often(1, 300, &counts);
    load_churn_modules(2, 40, &counts);
    load_make_streams(0, 10, &counts);
    load_make_graphs(3, 10, &counts);
    load_change_functions(0, 10, &counts);
    write_expected(&counts);
    exit(0);
}

void load_pause(void)
{
    if (atomic_load_explicit(&quiet_wanted, memory_order_relaxed)) {
        pthread_rwlock_unlock(&working);
        pthread_rwlock_rdlock(&working);
    }
}

/* Nothing of this is touched in the child, whose only thread did not stop. */
static pid_t fork_quietly(void)
{
    pthread_rwlock_unlock(&working);
    atomic_store(&quiet_wanted, true);
    pthread_rwlock_wrlock(&working);
    atomic_store(&quiet_wanted, false);
    pid_t child = fork();
    if (child != 0) {
        pthread_rwlock_unlock(&working);
        pthread_rwlock_rdlock(&working);
    }
    return child;
}

static void launch_and_fork(unsigned number, unsigned times, struct load_counts *counts)
{
    int status = 0;
    load_launch_often(number, times / 2, counts);
    pid_t child = quiet ? fork_quietly() : fork();
    if (child == 0)
        live_as_child();
    load_launch_often(number, times - times / 2, counts);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "the child ended with %d\n", status);
        abort();
    }
}

static void *work(void *data)
{
    struct worker *worker = data;
    if (quiet) {
        pthread_barrier_wait(&all_workers);
        pthread_rwlock_rdlock(&working);
    }
    worker->work(worker->number, worker->times, &worker->counts);
    if (quiet) {
        pthread_rwlock_unlock(&working);
        pthread_barrier_wait(&all_workers);
    }
    return NULL;
}

static void add_workers(unsigned count, unsigned times,
                        void (*what)(unsigned, unsigned, struct load_counts *))
{
    for (unsigned i = 0; i < count && worker_count < THREADS_LIMIT; i++) {
        struct worker *worker = &workers[worker_count++];
        worker->work = what;
        worker->number = i;
        worker->times = times;
    }
}

/* Those who would work wait for the one who forks. */
static void prepare_quiet_fork(void)
{
    pthread_rwlockattr_t attributes;
    if (pthread_rwlockattr_init(&attributes) != 0 ||
        pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) !=
            0 ||
        pthread_rwlock_init(&working, &attributes) != 0 ||
        pthread_barrier_init(&all_workers, NULL, worker_count) != 0)
        abort();
    quiet = true;
}

static void write_memory(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/memory", folder);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        abort();
    fprintf(file, "%ld %ld\n", memory_early, memory_late);
    fclose(file);
}

int main(int argc, char **argv)
{
    struct load_counts all;
    unsigned numbers[6];
    if (argc != 8) {
        fprintf(stderr, "usage: %s FOLDER LAUNCHERS LAUNCHES LOADS STREAMS GRAPHS FORK\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    for (int i = 0; i < 6; i++)
        numbers[i] = (unsigned)strtoul(argv[i + 2], NULL, 10);
    load_start();
    add_workers(numbers[5] != 0, numbers[1], launch_and_fork);
    add_workers(numbers[0], numbers[1], load_launch_often);
    add_workers(CHURNERS, numbers[2] / CHURNERS, churn);
    add_workers(numbers[3] ? STREAM_MAKERS : 0, numbers[3], load_make_streams);
    add_workers(numbers[4] ? GRAPH_MAKERS : 0, numbers[4], load_make_graphs);
    add_workers(numbers[4] ? CHANGERS : 0, numbers[4], load_change_functions);
    if (numbers[5] == 2)
        prepare_quiet_fork();
    for (unsigned i = 0; i < worker_count; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    memset(&all, 0, sizeof all);
    for (unsigned i = 0; i < worker_count; i++) {
        pthread_join(workers[i].thread, NULL);
        for (unsigned j = 0; j < LOAD_KERNELS * LOAD_KINDS; j++)
            (&all.of[0][0])[j] += (&workers[i].counts.of[0][0])[j];
    }
    write_expected(&all);
    write_memory();
    return 0;
}
