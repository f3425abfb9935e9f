/* Matrix Market coordinate files: real, integer or pattern; general, symmetric or skew-symmetric.
 *
 * Boisvert, Pozo, Remington 1996, The Matrix Market Exchange Formats (NISTIR 5935).  What is not supported is refused by
 * name; what is malformed, with its line. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "matrix.h"

typedef struct {
    const char *name;
    FILE *stream;
    char *line;
    size_t room;
    long number;        /* of the line */
} text_file;

#define REFUSE(f, format, ...) \
    pl_fail("--matrix %s, line %ld: " format, (f)->name, (f)->number, ##__VA_ARGS__)

static text_file open_text(const char *name)
{
    struct stat status;
    text_file f = {.name = name, .stream = fopen(name, "r")};
    if (!f.stream)
        pl_fail("--matrix %s: %s: give a Matrix Market file", name, strerror(errno));
    if (fstat(fileno(f.stream), &status) || !S_ISREG(status.st_mode))
        pl_fail("--matrix %s: not a file: give a Matrix Market file", name);
    return f;
}

static bool next_line(text_file *f)
{
    errno = 0;
    const ssize_t length = getline(&f->line, &f->room, f->stream);      /* NOLINT(clang-analyzer-unix.Stream): spmv_read() closes it */
    if (length < 0 && (errno || ferror(f->stream)))
        pl_fail("--matrix %s: cannot be read after line %ld: %s", f->name, f->number, strerror(errno));
    if (length < 0)
        return false;
    f->number++;
    if (strlen(f->line) != (size_t)length)
        REFUSE(f, "holds a byte 0: this is no text file, but a compressed or damaged one");
    return true;
}

static bool is_blank(const char *text) { return text[strspn(text, " \t\r\n")] == 0; }

/* A whole number from `least` to `most`; what follows it is where *at then points. */
static long long whole(const text_file *f, char **at, const char *what, long long least, long long most)
{
    char *end;
    *at += strspn(*at, " \t");
    errno = 0;
    const long long value = strtoll(*at, &end, 10);
    if (end == *at || !(*end == 0 || strchr(" \t\r\n", *end)))
        REFUSE(f, "%s is missing or not a whole number", what);
    if (errno || value < least || value > most)
        REFUSE(f, "%s is %.*s, outside %lld .. %lld", what, (int)(end - *at), *at, least, most);
    *at = end;
    return value;
}

static double real(const text_file *f, char **at)
{
    char *end;
    const double value = strtod(*at, &end);
    if (end == *at || !(*end == 0 || strchr(" \t\r\n", *end)))
        REFUSE(f, "the value is missing or not a number");
    if (!isfinite(value))
        REFUSE(f, "the value is not a finite number");
    *at = end;
    return value;
}

/* One of the words, as its position; others are refused, by name. */
static int choice(const text_file *f, const char *what, const char *word, const char *const *known, const char *list)
{
    for (int i = 0; known[i]; i++)
        if (word && !strcasecmp(word, known[i]))
            return i;
    REFUSE(f, "%s %s is not supported: this reads %s", what, word ? word : "(missing)", list);
}

enum field { REAL, INTEGER, PATTERN };
enum symmetry { GENERAL, SYMMETRIC, SKEW };

static void read_header(text_file *f, enum field *field, enum symmetry *symmetry)
{
    static const char *const objects[] = {"matrix", NULL}, *const formats[] = {"coordinate", NULL},
                             *const fields[] = {"real", "integer", "pattern", NULL},
                             *const symmetries[] = {"general", "symmetric", "skew-symmetric", NULL};
    unsigned char magic[2] = {0};
    if (fread(magic, 1, 2, f->stream) == 2 && magic[0] == 0x1F && magic[1] == 0x8B)
        pl_fail("--matrix %s: is compressed: unpack it with gunzip first", f->name);
    if (fseek(f->stream, 0, SEEK_SET))
        pl_fail("--matrix %s: %s", f->name, strerror(errno));
    if (!next_line(f))
        pl_fail("--matrix %s: is empty: give a Matrix Market file", f->name);
    static const char *const blank = " \t\r\n";
    char *rest, *word = strtok_r(f->line, blank, &rest);
    if (!word || strcmp(word, "%%MatrixMarket"))
        REFUSE(f, "does not begin with %%%%MatrixMarket: give a Matrix Market file");
    choice(f, "object", strtok_r(NULL, blank, &rest), objects, "a matrix");
    choice(f, "format", strtok_r(NULL, blank, &rest), formats, "coordinate");
    *field = (enum field)choice(f, "field", strtok_r(NULL, blank, &rest), fields, "real, integer and pattern");
    *symmetry = (enum symmetry)choice(f, "symmetry", strtok_r(NULL, blank, &rest), symmetries,
                                      "general, symmetric and skew-symmetric");
    if ((word = strtok_r(NULL, blank, &rest)))
        REFUSE(f, "%s does not belong to the header", word);
    if (*field == PATTERN && *symmetry == SKEW)
        REFUSE(f, "a skew-symmetric pattern has no signs: the format knows no such matrix");
}

/* Rows, columns and elements; refused where the matrix would exceed the memory. */
static void read_size(text_file *f, spmv_source *m, enum symmetry symmetry)
{
    do {
        if (!next_line(f))
            pl_fail("--matrix %s: ends before the line of sizes", f->name);
    } while (f->line[0] == '%' || is_blank(f->line));
    char *at = f->line;
    m->rows = (size_t)whole(f, &at, "the number of rows", 1, INT32_MAX);
    m->columns = (size_t)whole(f, &at, "the number of columns", 1, INT32_MAX);
    m->elements = (size_t)whole(f, &at, "the number of entries", 1, 1LL << 50);
    if (!is_blank(at))
        REFUSE(f, "three sizes are expected: rows, columns, entries");
    if (symmetry != GENERAL && m->rows != m->columns)
        REFUSE(f, "a symmetric matrix has as many rows as columns, not %zu and %zu", m->rows, m->columns);
    if ((double)m->elements > (double)m->rows * (double)m->columns)
        REFUSE(f, "%zu entries are more than %zu x %zu elements", m->elements, m->rows, m->columns);
    /* As read, in rows, and laid out for the kernel */
    const double twice = symmetry == GENERAL ? 1 : 2;
    const double needed = (16 + 24 * twice) * (double)m->elements + 48 * (double)m->rows + 8 * (double)m->columns;
    const double free_now = (double)pl_memory_available();
    if (needed > 0.9 * free_now)
        REFUSE(f, "the matrix needs %.1f GB, of %.1f GB that are free: use a node with more memory", needed / 1e9,
               free_now / 1e9);
}

static spmv_element read_element(text_file *f, const spmv_source *m, enum field field, enum symmetry symmetry)
{
    spmv_element e = {.value = 1};
    char *at = f->line;
    e.row = (int32_t)(whole(f, &at, "the row", 1, (long long)m->rows) - 1);
    e.column = (int32_t)(whole(f, &at, "the column", 1, (long long)m->columns) - 1);
    if (field == REAL)
        e.value = real(f, &at);
    if (field == INTEGER)
        e.value = (double)whole(f, &at, "the value", -(1LL << 53), 1LL << 53);
    if (!is_blank(at))
        REFUSE(f, "something follows the entry: one entry on each line is expected");
    if (symmetry != GENERAL && e.row < e.column)
        REFUSE(f, "(%d, %d) is above the diagonal: of a symmetric matrix the file holds the lower triangle only", e.row + 1,
               e.column + 1);
    if (symmetry == SKEW && e.row == e.column)
        REFUSE(f, "(%d, %d) is on the diagonal, which is zero in a skew-symmetric matrix", e.row + 1, e.column + 1);
    return e;
}

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the line is freed at the end, whatever is written to *m before */
void spmv_read(const char *name, spmv_source *m)
{
    enum field field;
    enum symmetry symmetry;
    text_file f = open_text(name);
    read_header(&f, &field, &symmetry);
    read_size(&f, m, symmetry);
    m->mirrored = symmetry == GENERAL ? 0 : symmetry == SKEW ? -1 : 1;
    m->element = pl_allocate(m->elements * sizeof *m->element, "the matrix");
    size_t count = 0;
    while (next_line(&f)) {
        if (is_blank(f.line))
            continue;
        if (count == m->elements)
            REFUSE(&f, "more entries than the %zu that are announced", m->elements);
        m->element[count++] = read_element(&f, m, field, symmetry);
    }
    if (count < m->elements)
        pl_fail("--matrix %s: ends in line %ld, after %zu of the %zu entries that are announced", name, f.number, count,
                m->elements);
    free(f.line);
    fclose(f.stream);
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */
