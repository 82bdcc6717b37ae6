/* SPDX-License-Identifier: Apache-2.0 */
#include "place/own.h"

#include <pthread.h>
#include <stdlib.h>

struct own {
    struct own *next;
    cuda_green_context green;
    int device;
};

/* No call of the driver under it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct own *all;

void place_own_made(cuda_green_context green, int device)
{
    struct own *own = malloc(sizeof *own);
    if (!own)
        return;
    pthread_mutex_lock(&mutex);
    *own = (struct own){all, green, device};
    all = own;
    pthread_mutex_unlock(&mutex);
}

int place_own_going(cuda_green_context green)
{
    int device = -1;
    pthread_mutex_lock(&mutex);
    struct own **at = &all, *own;
    while (*at && (*at)->green != green)
        at = &(*at)->next;
    own = *at;
    if (own) {
        *at = own->next;
        device = own->device;
    }
    pthread_mutex_unlock(&mutex);
    free(own);
    return device;
}

bool place_own_exist(int device)
{
    pthread_mutex_lock(&mutex);
    const struct own *own = all;
    while (own && own->device != device)
        own = own->next;
    pthread_mutex_unlock(&mutex);
    return own != NULL;
}

void place_own_start(void)
{
    pthread_mutex_init(&mutex, NULL);
    while (all) {
        struct own *own = all;
        all = own->next;
        free(own);
    }
}
