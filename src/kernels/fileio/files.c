/* Files of which nothing remains, whatever ends the program; and what can be known of a file system. */
#define _GNU_SOURCE /* O_TMPFILE, mkostemp(), mincore() */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "plumbline.h"

/* --- names that must go ------------------------------------------------------------------------------------- */

enum { MOST_NAMES = 32 };
static char names[MOST_NAMES][PATH_MAX];        /* empty: free */

static void remove_names(void)
{
    for (int i = 0; i < MOST_NAMES; i++)
        if (names[i][0])
            unlink(names[i]);
}

static void end_by(int number)
{
    remove_names();
    signal(number, SIG_DFL);
    raise(number);
}

/* What a shell ignores (nohup) stays ignored. */
static void remove_names_at_the_end(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGPIPE};
    static bool once;
    if (once)
        return;
    once = true;
    atexit(remove_names);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (signal(ends[i], end_by) == SIG_IGN)
            signal(ends[i], SIG_IGN);
}

static char *remember(const char *name)
{
    remove_names_at_the_end();
    for (int i = 0; i < MOST_NAMES; i++)
        if (!names[i][0])
            return strcpy(names[i], name);
    pl_fail("%s: more than %d files with names at once", name, MOST_NAMES);
}

/* --- files ---------------------------------------------------------------------------------------------------- */

/* Whether a file without a name can be opened again through the process's own table of open files. */
static bool opens_again(files_file *file)
{
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->descriptor);
    const int again = open(file->path, O_RDWR | O_CLOEXEC);
    if (again < 0)
        return false;
    close(again);
    return true;
}

static bool open_nameless(files_file *file, const char *directory)
{
#ifdef O_TMPFILE
    file->kept = FILES_NAMELESS;
    file->descriptor = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file->descriptor >= 0 && opens_again(file))
        return true;
    if (file->descriptor >= 0)
        close(file->descriptor);
#endif
    return false;
}

/* Signals wait until the name is gone or known to the handlers. */
static bool open_with_name(files_file *file, const char *directory, files_kept wanted)
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s/.plumbline-fileio-XXXXXX", directory) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return false;
    }
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    file->descriptor = mkostemp(name, O_CLOEXEC);
    bool done = file->descriptor >= 0;
    if (done && wanted == FILES_NAMED) {
        file->kept = FILES_NAMED;
        strcpy(file->path, remember(name));
    } else if (done) {
        file->kept = FILES_UNLINKED;
        unlink(name);
        done = opens_again(file);
        if (!done)
            close(file->descriptor);
    }
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return done;
}

bool files_open(files_file *file, const char *directory, files_kept wanted)
{
    return (wanted <= FILES_NAMELESS && open_nameless(file, directory)) ||
           (wanted <= FILES_UNLINKED && open_with_name(file, directory, FILES_UNLINKED)) ||
           open_with_name(file, directory, FILES_NAMED);
}

void files_close(files_file *file)
{
    if (file->kept == FILES_NAMED) {
        unlink(file->path);
        for (int i = 0; i < MOST_NAMES; i++)
            if (!strcmp(names[i], file->path))
                names[i][0] = 0;
    }
    close(file->descriptor);
}

/* --- what is known of a file system --------------------------------------------------------------------------- */

static char *expanded(const char *text, const char *option)
{
    char *const result = pl_allocate(PATH_MAX, option);
    size_t length = 0;
    for (const char *p = text; *p;) {
        const char *part = p;
        size_t count = 1;
        if (*p == '$') {
            const bool braces = p[1] == '{';
            const char *const name = p + 1 + braces;
            const size_t letters = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
            char variable[256];
            if (!letters || letters >= sizeof variable || (braces && name[letters] != '}'))
                pl_fail("--%s %s: a $ without the name of a variable: write $NAME or ${NAME}", option, text);
            memcpy(variable, name, letters);
            variable[letters] = 0;
            part = getenv(variable);
            if (!part || !*part)
                pl_fail("--%s %s: %s is not set where the program runs: set it, or name the folder", option, text, variable);
            count = strlen(part);
            p = name + letters + braces;
        } else
            p++;
        if (length + count >= PATH_MAX)
            pl_fail("--%s %s: longer than a path may be: name a folder with a shorter one", option, text);
        memcpy(result + length, part, count);
        length += count;
    }
    return result;
}

/* The number by which the kernel knows the mount of an open file; -1 where it does not say. */
static long mount_of(int descriptor)
{
    char path[64], mount[32];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
    return pl_field_of(path, "mnt_id", mount, sizeof mount) ? strtol(mount, NULL, 10) : -1;
}

/* The numbers that statfs() gives do not tell ext4 from ext3, nor one FUSE file system from another: the list of mounts
 * does.  In a line of it the type stands behind " - ". */
static void find_type(int descriptor, char *type, size_t length)
{
    char *line = NULL;
    size_t room = 0;
    struct statfs found;
    const long mount = mount_of(descriptor);
    *type = 0;
    FILE *const mounts = mount < 0 ? NULL : fopen("/proc/self/mountinfo", "r");
    while (mounts && !*type && getline(&line, &room, mounts) > 0) {
        const char *const behind = strstr(line, " - ");
        if (behind && strtol(line, NULL, 10) == mount)
            snprintf(type, length, "%.*s", (int)strcspn(behind + 3, " "), behind + 3);
    }
    free(line);
    if (mounts)
        fclose(mounts);
    if (!*type)
        snprintf(type, length, "0x%lx", fstatfs(descriptor, &found) ? 0L : (unsigned long)found.f_type);
}

/* Tried, not looked up: the permissions of root, of access lists and of read-only mounts are known only then. */
void files_look(files_folder *folder, const char *given, const char *option, files_kept wanted)
{
    struct stat about;
    files_file file;
    char *const directory = expanded(given, option);
    if (stat(directory, &about))
        pl_fail("--%s %s: %s: name a folder on the file system to be measured", option, directory, strerror(errno));
    if (!S_ISDIR(about.st_mode))
        pl_fail("--%s %s: is not a folder: name a folder on the file system to be measured", option, directory);
    if (!files_open(&file, directory, wanted))
        pl_fail("--%s %s: cannot make a file there: %s: name a folder that can be written to", option, directory, strerror(errno));
    find_type(file.descriptor, folder->type, sizeof folder->type);
    files_close(&file);
    folder->given = given;
    folder->path = realpath(directory, NULL);
    if (!folder->path)
        pl_fail("--%s %s: %s: name a folder on the file system to be measured", option, directory, strerror(errno));
    free(directory);
    signal(SIGXFSZ, SIG_IGN);   /* a limit of the file size is an error of write(), not the end */
}

double files_room(const files_folder *folder)
{
    struct statvfs fs;
    return statvfs(folder->path, &fs) || !fs.f_blocks ? INFINITY : (double)fs.f_bavail * (double)fs.f_frsize;
}

bool files_in_memory(const char *type)
{
    return !strcmp(type, "tmpfs") || !strcmp(type, "ramfs") || !strcmp(type, "devtmpfs") ||
           !strcmp(type, "0x1021994") || !strcmp(type, "0x858458f6");
}

double files_resident(int descriptor)
{
    struct stat about;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (fstat(descriptor, &about) || about.st_size <= 0)
        return -1;
    const size_t bytes = (size_t)about.st_size, pages = (bytes + page - 1) / page;
    void *const at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED)
        return -1;
    unsigned char *const held = pl_allocate(pages, "the list of pages");
    size_t count = 0;
    const bool seen = !mincore(at, bytes, held);
    for (size_t i = 0; i < pages; i++)
        count += held[i] & 1;
    free(held);
    munmap(at, bytes);
    return seen ? (double)count / (double)pages : -1;
}
