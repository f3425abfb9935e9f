/* Records that survive a file system which is full, broken, gone or hung: a thread of their own writes them, and what cannot be written waits
 * in memory. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "burn.h"

static const long try_again = 500;      /* ms */

typedef struct item { struct item *next; char *text; size_t length, written; } item;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const char *path;
    int file;
    off_t end;              /* of the file, as we have left it */
    item *first, *last;
    size_t bytes, keep;
    bool busy, closing, finished;       /* busy: the first item is being written */
    burn_series so_far;
} series = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .file = -1};

static struct timespec in(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const double end = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + seconds;
    t.tv_sec = (time_t)end;
    t.tv_nsec = (long)((end - (double)t.tv_sec) * 1e9);
    return t;
}

/* What was written. */
static void drop_first(void)
{
    item *const gone = series.first;
    series.first = gone->next;
    series.last = series.first ? series.last : NULL;
    series.bytes -= gone->length;
    series.so_far.waiting--;
    free(gone->text);
    free(gone);
}

/* A file handle may outlive the file system that it was of: the file is opened again.  Half a line that is not there any more is written from
 * its begin. */
static void open_again(item *at)
{
    struct stat found = {0};
    const int file = series.path ? open(series.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (file < 0)
        return;
    if (series.file >= 0)
        close(series.file);
    series.file = file;
    if (fstat(file, &found) != 0 || found.st_size != series.end) {
        at->written = 0;
        series.end = found.st_size;
    }
}

/* Writes what it can of an item, without the lock: this may take forever. */
static int write_some(item *at)
{
    const ssize_t n = series.file < 0 ? -1 : write(series.file, at->text + at->written, at->length - at->written);
    if (n <= 0) {
        const int error = series.file < 0 ? EBADF : n < 0 ? errno : EIO;
        if (error != ENOSPC && error != EDQUOT && error != EINTR && error != EAGAIN && error != EFBIG)
            open_again(at);
        return error;
    }
    at->written += (size_t)n;
    series.end += n;
    return 0;
}

static void *write_all(void *nothing)
{
    pthread_mutex_lock(&series.lock);
    while (series.first || !series.closing) {
        item *const at = series.first;
        if (!at) {
            pthread_cond_wait(&series.changed, &series.lock);
            continue;
        }
        series.busy = true;
        pthread_mutex_unlock(&series.lock);
        const int error = write_some(at);
        pthread_mutex_lock(&series.lock);
        series.busy = false;
        if (error) {
            const struct timespec later = in(1e-3 * (double)try_again);
            series.so_far.error = error == EINTR ? series.so_far.error : error;
            pthread_cond_timedwait(&series.changed, &series.lock, &later);
        } else if (at->written == at->length) {
            series.so_far.written++;
            drop_first();
        }
    }
    series.finished = true;
    pthread_cond_broadcast(&series.changed);
    pthread_mutex_unlock(&series.lock);
    return nothing;
}

void burn_series_open(const char *path, bool append, size_t keep)
{
    struct stat found;
    pthread_t writer;
    series.path = path;
    series.keep = keep;
    series.file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | (append ? 0 : O_EXCL), 0644) : STDOUT_FILENO;
    if (series.file < 0)
        pl_fail("--series %s: %s: %s", path, strerror(errno),
                errno == EEXIST ? "--resume goes on with it; or give another name" : "give a file that can be written");
    series.end = fstat(series.file, &found) == 0 ? found.st_size : 0;
    if (pthread_create(&writer, NULL, write_all, NULL) != 0)
        pl_fail("burn: no thread that writes the records can be started: raise the limit of processes (ulimit -u)");
    pthread_detach(writer);
}

/* The oldest that is not being written, nor half written, of two or more. */
static void drop_oldest(void)
{
    assert(series.first && series.first->next);
    item **const at = series.busy || series.first->written ? &series.first->next : &series.first, *const gone = *at;
    *at = gone->next;
    series.bytes -= gone->length;
    series.so_far.waiting--;
    series.so_far.lost++;
    free(gone->text);
    free(gone);
}

void burn_series_put(char *text, size_t length)
{
    item *const last = pl_allocate(sizeof *last, "a record");
    *last = (item){NULL, text, length, 0};
    pthread_mutex_lock(&series.lock);
    if (series.last)
        series.last->next = last;
    else
        series.first = last;
    series.last = last;
    series.bytes += length;
    series.so_far.waiting++;
    while (series.bytes > series.keep && series.so_far.waiting > 2)     /* the newest is kept */
        drop_oldest();
    if (series.so_far.waiting > series.so_far.most_waiting)
        series.so_far.most_waiting = series.so_far.waiting;
    pthread_cond_broadcast(&series.changed);
    pthread_mutex_unlock(&series.lock);
}

burn_series burn_series_so_far(void)
{
    pthread_mutex_lock(&series.lock);
    const burn_series found = series.so_far;
    pthread_mutex_unlock(&series.lock);
    return found;
}

burn_series burn_series_close(double patience)
{
    const struct timespec end = in(patience);
    pthread_mutex_lock(&series.lock);
    series.closing = true;
    pthread_cond_broadcast(&series.changed);
    while (!series.finished && pthread_cond_timedwait(&series.changed, &series.lock, &end) != ETIMEDOUT)
        ;
    burn_series found = series.so_far;
    found.lost += found.waiting;
    found.hangs = series.busy;
    pthread_mutex_unlock(&series.lock);
    return found;
}
