/* What all threads have in common: the lock of the tables, and the counts that it guards. */
#include "latency.h"

#include <pthread.h>
#include <sched.h>

lat_counts lat_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void lat_lock(void)
{
    if (lat_set.threads)
        pthread_mutex_lock(&lock);
}

void lat_unlock(void)
{
    if (lat_set.threads)
        pthread_mutex_unlock(&lock);
}

void lat_give_way(void)
{
    if (lat_set.threads) {
        pthread_mutex_unlock(&lock);
        sched_yield();
        pthread_mutex_lock(&lock);
    }
}
