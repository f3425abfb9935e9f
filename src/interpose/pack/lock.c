/* The lock of all tables; nothing unless MPI_THREAD_MULTIPLE. */
#include <pthread.h>

#include "pack.h"

bool pack_active, pack_threaded;
static pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;

void pack_lock(void)
{
    if (pack_threaded)
        pthread_mutex_lock(&tables);
}

void pack_unlock(void)
{
    if (pack_threaded)
        pthread_mutex_unlock(&tables);
}
