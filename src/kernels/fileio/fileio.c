/* Writing a three-dimensional array to a file and reading it back (arsc2002, second article): the variants, the folder, the
 * files, and their passes.
 *
 * One pass is one whole file: open, write or read, close; with write_fsync until the data are on the device.  Not timed:
 * making an empty file for a write; writing the file that is read, and filling or emptying the page cache. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "layout.h"
#include "plumbline.h"
#include "proof.h"

static void any_pass(void) {}   /* marks the variants that are in this build: fileio_mode_of() says what they are */

#define HERE .loop = any_pass
#ifdef PL_FORTRAN
#define FORTRAN(text) HERE, .about = text, .compiler = PL_FORTRAN_COMPILER, .flags = PL_FORTRAN_FLAGS
#else
#define FORTRAN(text) .about = "built without a Fortran compiler"
#endif

static const pl_variant variants[] = {
    {"c", HERE, .about = "write() or read() of the whole array: the yardstick"},
    {"whole_stream", FORTRAN("one statement for the array, unformatted, stream")},
    {"row_stream", FORTRAN("one for each row, unformatted, stream")},
    {"element_stream", FORTRAN("one for each element, unformatted, stream")},
    {"whole_sequential", FORTRAN("one statement for the array, unformatted, one record")},
    {"row_sequential", FORTRAN("one for each row, unformatted, a record each")},
    {"element_sequential", FORTRAN("one for each element, unformatted, a record each")},
    {"whole_formatted", FORTRAN("one statement for the array, as text, one line")},
    {"row_formatted", FORTRAN("one for each row, as text, a line each")},
    {"element_formatted", FORTRAN("one for each element, as text, a line each")},
    {0},
};

enum { OPERATION, KEPT };
enum { WRITE, WRITE_FSYNC, READ_WARM, READ_COLD, OPERATIONS };
static const char *const operations[] = {"write", "write_fsync", "read_warm", "read_cold", NULL};
static const char *const kept[] = {"nameless", "unlinked", "named", NULL};

static const pl_parameter parameters[] = {
    [OPERATION] = {"operation", WRITE, 1, "what is timed, fsync() and the state of the page cache included", .words = operations},
    [KEPT] = {"file", FILES_NAMELESS, 1, "how files vanish when the program is killed, where it can be so", .words = kept,
              .of_data = true},
    {0},
};

enum { DIRECTORY, NAME };
static const pl_string_parameter strings[] = {
    [DIRECTORY] = {"directory", "folder on the file system to be measured, $VARIABLES replaced (default: where it runs)"},
    [NAME] = {"name", "what the site calls this file system, for the record"},
    {0},
};

static fileio_mode mode_of(const pl_case *c) { return fileio_mode_of(c->variant->name); }

static bool reads(const pl_case *c) { return c->parameters[OPERATION] == READ_WARM || c->parameters[OPERATION] == READ_COLD; }

/* --- the folder ----------------------------------------------------------------------------------------------- */

static files_folder folder;     /* of all cases */

static void look_at_folder(const pl_case *c)
{
    const char *const given = c->text[DIRECTORY] ? c->text[DIRECTORY] : ".";
    if (folder.given != given)
        files_look(&folder, given, strings[DIRECTORY].name, (files_kept)c->parameters[KEPT]);
}

/* All files of one size are there at once: one to write and one to read for each layout. */
static void check_room(const pl_case *c, const fileio_mode *m)
{
    static size_t n;
    static bool wanted[FILEIO_LAYOUTS][2];
    static size_t bytes[FILEIO_LAYOUTS];
    if (n != c->n)
        memset(wanted, 0, sizeof wanted);
    n = c->n;
    wanted[m->layout][reads(c)] = true;
    bytes[m->layout] = fileio_file_bytes(c->n, m);
    double needed = 0;
    for (int i = 0; i < FILEIO_LAYOUTS; i++)
        needed += (double)bytes[i] * (wanted[i][0] + wanted[i][1]);
    if (needed > files_room(&folder))
        pl_fail("--size %zu: needs %.1f MB in %s (%s), where %.1f MB are free: choose a smaller size, fewer variants, or another "
                "--directory", c->n, needed / 1e6, folder.path, folder.type, files_room(&folder) / 1e6);
    const double memory = 16 * (double)c->n + (files_in_memory(folder.type) ? needed : 0);
    if (memory > 0.9 * (double)pl_memory_available())
        pl_fail("--size %zu: needs %.1f MB of memory for the arrays and, in a file system that is memory, the files; %.1f MB are "
                "free: choose a smaller size or fewer variants", c->n, memory / 1e6, (double)pl_memory_available() / 1e6);
}

static void check(const pl_case *c)
{
    const fileio_mode m = mode_of(c);
    look_at_folder(c);
    if (c->parameters[OPERATION] == READ_COLD && files_in_memory(folder.type))
        pl_fail("--operation read_cold: %s is %s, which is the memory itself: nothing can be dropped from it; leave it out",
                folder.path, folder.type);
    if (m.form == FILEIO_FORMATTED && (double)FILEIO_WIDTH * (double)fileio_elements_per_record(c->n, &m) > INT_MAX)
        pl_fail("--size %zu: %s writes one line, and Fortran's lines have at most %d characters: choose at most %d elements",
                c->n, c->variant->name, INT_MAX, INT_MAX / FILEIO_WIDTH);
    check_room(c, &m);
}

/* --- data ------------------------------------------------------------------------------------------------------- */

enum { SOURCE, TARGET, ARRAYS };

typedef struct {
    files_file file;
    bool open, complete;    /* complete: all that belongs into it was written */
    bool seen;              /* mincore() shows what is cached of it: not of a file system with a cache of its own (GPFS, ZFS) */
} slot;

typedef struct {
    pl_buffers *arrays;
    slot files[FILEIO_LAYOUTS][2];     /* [1]: is read, and written once */
    double resident[sizeof variants / sizeof *variants][OPERATIONS];    /* the worst of all passes; negative: not seen */
} data;

static size_t footprint(const pl_case *c) { return 2 * sizeof(double) * c->n; }

static void *create(const pl_case *c)
{
    data *d = pl_allocate(sizeof *d, "the files");
    const size_t bytes[ARRAYS] = {sizeof(double) * c->n, sizeof(double) * c->n};
    d->arrays = pl_buffers_create(c, ARRAYS, bytes, NULL);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        for (int k = 0; k < OPERATIONS; k++)
            d->resident[i][k] = NAN;
    return d;
}

static void destroy(void *old)
{
    data *d = old;
    for (int i = 0; i < FILEIO_LAYOUTS; i++)
        for (int k = 0; k < 2; k++)
            if (d->files[i][k].open)
                files_close(&d->files[i][k].file);
    pl_first_buffers_destroy(d);
}

static void touch(const pl_case *c, int thread, int threads)
{
    const data *d = c->data;
    double *const source = d->arrays->at[SOURCE], *const target = d->arrays->at[TARGET];
    const pl_range part = pl_part(c->n, thread, threads);
    for (size_t i = part.begin; i < part.end; i++) {
        source[i] = fileio_value(i);
        target[i] = 0;
    }
}

/* --- one pass --------------------------------------------------------------------------------------------------- */

static _Noreturn void fail(const pl_case *c, bool reading, const char *why)
{
    const fileio_mode m = mode_of(c);
    pl_fail("%s %s, size %zu: cannot %s the file in %s (%s): %s: it takes %.1f MB, %.1f MB are free: make room, lift the "
            "limit, or choose a smaller size or another --directory", c->kernel->name, c->variant->name, c->n,
            reading ? "read" : "write", folder.path, folder.type, why, (double)fileio_file_bytes(c->n, &m) / 1e6, files_room(&folder) / 1e6);
}

static size_t length_of(const files_file *file)
{
    struct stat about;
    return fstat(file->descriptor, &about) ? 0 : (size_t)about.st_size;
}

/* Some Fortran libraries say nothing when what they kept back for close() found no room.  Asking for the missing bytes says
 * why; where they can be had, the file is short for another reason, and verification finds it. */
static void check_length(const pl_case *c, const fileio_mode *m, const files_file *file)
{
    static const char zeros[65536];
    const size_t least = (m->form == FILEIO_FORMATTED ? FILEIO_WIDTH : sizeof(double)) * c->n, found = length_of(file);
    for (size_t at = found; at < least; at += sizeof zeros) {
        const size_t count = least - at < sizeof zeros ? least - at : sizeof zeros;
        errno = ENOSPC;
        if (pwrite(file->descriptor, zeros, count, (off_t)at) != (ssize_t)count)
            fail(c, false, strerror(errno));
    }
    if (found < least && ftruncate(file->descriptor, (off_t)found))
        fail(c, false, strerror(errno));
}

static void transfer(const pl_case *c, const fileio_mode *m, bool reading, const files_file *file, double *array)
{
    if (!m->fortran) {
        const int wrong = reading ? fileio_c_read(file->path, 8 * c->n, array) : fileio_c_write(file->path, 8 * c->n, array);
        if (wrong)
            fail(c, reading, strerror(wrong));
    }
#ifdef PL_FORTRAN
    else {
        char why[200 + 1] = "";
        size_t shape[3];
        fileio_shape(c->n, shape);
        const int record = m->form == FILEIO_FORMATTED ? FILEIO_WIDTH * (int)fileio_elements_per_record(c->n, m) : 0;
        if (fileio_fortran(reading, (int)m->granularity, (int)m->form, file->path, (int)strlen(file->path), record,
                           shape[0], shape[1], shape[2], array, why, 200)) {
            for (size_t i = strlen(why); i > 0 && why[i - 1] == ' '; i--)
                why[i - 1] = 0;
            fail(c, reading, why);
        }
    }
#endif
}

static void write_file(const pl_case *c, slot *s)
{
    const data *d = c->data;
    const fileio_mode m = mode_of(c);
    transfer(c, &m, false, &s->file, d->arrays->at[SOURCE]);
    check_length(c, &m, &s->file);
    s->complete = true;
}

static void run(const pl_case *c, const pl_plan *p)
{
    data *d = c->data;
    const fileio_mode m = mode_of(c);
    slot *const s = &d->files[m.layout][reads(c)];
    if (reads(c))
        transfer(c, &m, true, &s->file, d->arrays->at[TARGET]);
    else
        write_file(c, s);
    if (c->parameters[OPERATION] == WRITE_FSYNC && fsync(s->file.descriptor))   /* of the file, whoever wrote it */
        fail(c, false, strerror(errno));
}

/* --- before each pass --------------------------------------------------------------------------------------------- */

/* Through the page cache from end to end, in C: what is not there comes in. */
static void fill_page_cache(const pl_case *c, const files_file *file)
{
    static char buffer[1 << 20];
    ssize_t more;
    for (off_t at = 0; (more = pread(file->descriptor, buffer, sizeof buffer, at)) != 0; at += more)
        if (more < 0)
            fail(c, true, strerror(errno));
}

/* Share of the file in the page cache. */
static double warm(const pl_case *c, const files_file *file)
{
    const double share = files_resident(file->descriptor);
    if (share == 1)
        return share;
    fill_page_cache(c, file);
    return files_resident(file->descriptor);
}

static void note_resident(const pl_case *c, double share)
{
    data *d = c->data;
    double *const worst = &d->resident[c->variant - variants][c->parameters[OPERATION]];
    const bool cold = c->parameters[OPERATION] == READ_COLD;
    if (isnan(*worst) || share < 0 || (*worst >= 0 && (cold ? share > *worst : share < *worst)))
        *worst = share;
}

static void empty(const pl_case *c, slot *s)
{
    if (!s->open && !files_open(&s->file, folder.path, (files_kept)c->parameters[KEPT]))
        fail(c, false, strerror(errno));
    s->open = true;
    s->complete = false;
    if (ftruncate(s->file.descriptor, 0))
        fail(c, false, strerror(errno));
}

static void prepare(const pl_case *c)
{
    data *d = c->data;
    slot *const s = &d->files[mode_of(c).layout][reads(c)];
    if (!reads(c)) {
        empty(c, s);
        return;
    }
    if (!s->complete) {
        empty(c, s);
        write_file(c, s);
        if (fsync(s->file.descriptor))
            fail(c, false, strerror(errno));
        s->seen = warm(c, &s->file) > 0;    /* the page cache may be smaller than the file */
    }
    const bool cold = c->parameters[OPERATION] == READ_COLD;
    if (cold)
        posix_fadvise(s->file.descriptor, 0, 0, POSIX_FADV_DONTNEED);
    const double share = cold ? files_resident(s->file.descriptor) : warm(c, &s->file);
    note_resident(c, s->seen ? share : -1);
}

/* --- verification, record ------------------------------------------------------------------------------------------- */

static void poison(const pl_case *c)
{
    data *d = c->data;
    memset(d->arrays->at[TARGET], 0xFF, 8 * c->n);  /* not a number */
}

static double verify(const pl_case *c)
{
    data *d = c->data;
    const fileio_mode m = mode_of(c);
    const double *const target = d->arrays->at[TARGET];
    double worst = 0;
    if (!reads(c))
        return fileio_verify_file(c->n, &m, d->files[m.layout][0].file.descriptor);
    for (size_t i = 0; i < c->n && !isnan(worst); i++)
        worst = pl_worse(worst, fileio_error_of(target[i], i, m.form));
    return worst;
}

/* 17 digits tell every double from its neighbours; a library may still err in the last bit, there and back. */
static double tolerance(const pl_case *c) { return mode_of(c).form == FILEIO_FORMATTED ? 0x1p-52 : 0; }

static pl_work work(const pl_case *c)
{
    return (pl_work){.load_bytes = 8 * (double)c->n,
                     .source = "payload: 8 bytes per element to or from the file; not a model of memory traffic"};
}

static void facts(const pl_case *c, pl_fact *found)
{
    static char text[64];
    const data *d = c->data;
    const fileio_mode m = mode_of(c);
    const slot *const s = &d->files[m.layout][reads(c)];
    const double resident = d->resident[c->variant - variants][c->parameters[OPERATION]], free_bytes = files_room(&folder);
    size_t shape[3];
    fileio_shape(c->n, shape);
    snprintf(text, sizeof text, "%zux%zux%zu", shape[0], shape[1], shape[2]);
    *found++ = (pl_fact){.name = "path", .text = folder.path};
    *found++ = (pl_fact){.name = "file_system", .text = folder.type};
    *found++ = (pl_fact){.name = "kept", .text = kept[s->file.kept]};
    *found++ = (pl_fact){.name = "shape", .text = text};
    *found++ = (pl_fact){.name = "file_bytes", .number = (double)length_of(&s->file)};
    if (isfinite(free_bytes))
        *found++ = (pl_fact){.name = "free_bytes", .number = free_bytes};
    if (reads(c) && resident >= 0)
        *found++ = (pl_fact){.name = "resident", .number = resident};
}

static const pl_kernel fileio = {
    .name = "fileio", .title = "A(nx,ny,nz) to a file and back", .variants = variants, .parameters = parameters, .strings = strings,
    .most_threads = 1, .check = check, .footprint = footprint, .create = create, .touch = touch, .run = run, .work = work,
    .verify = verify, .tolerance = tolerance, .poison = poison, .buffers = pl_first_buffers, .destroy = destroy, .prepare = prepare,
    .facts = facts,
};

int main(int argc, char **argv) { return pl_main(argc, argv, &fileio); }
