/* Reading a file back byte by byte, by nothing that Fortran has. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plumbline.h"
#include "proof.h"

typedef struct {
    int descriptor;
    off_t at;
    size_t held, next;
    char buffer[1 << 16];
} reader;

static bool take(reader *r, void *to, size_t count)
{
    for (char *p = to; count;) {
        if (r->next == r->held) {
            const ssize_t more = pread(r->descriptor, r->buffer, sizeof r->buffer, r->at);
            if (more <= 0)
                return false;
            r->at += more;
            r->held = (size_t)more;
            r->next = 0;
        }
        const size_t part = count < r->held - r->next ? count : r->held - r->next;
        memcpy(p, r->buffer + r->next, part);
        r->next += part;
        p += part;
        count -= part;
    }
    return true;
}

/* The payload of sequential records, their markers looked at: the length before and behind each subrecord; negative before
 * if another follows, and behind if one went before. */
typedef struct {
    int64_t left, length;   /* of the subrecord at hand */
    bool continued, continues;
} record;

static bool begin_subrecord(reader *r, record *q)
{
    int32_t marker;
    if (!take(r, &marker, sizeof marker))
        return false;
    q->continues = marker < 0;
    q->length = q->left = marker < 0 ? -(int64_t)marker : marker;
    return true;
}

static bool end_subrecord(reader *r, record *q)
{
    int32_t marker;
    const bool right = take(r, &marker, sizeof marker) && marker == (q->continued ? -q->length : q->length);
    q->continued = q->continues;
    return right && q->left == 0;
}

static bool take_payload(reader *r, record *q, char *to, size_t count)
{
    while (count) {
        if (q->left == 0 && !(q->continues && end_subrecord(r, q) && begin_subrecord(r, q)))
            return false;
        const size_t part = (int64_t)count < q->left ? count : (size_t)q->left;
        if (!take(r, to, part))
            return false;
        q->left -= (int64_t)part;
        to += part;
        count -= part;
    }
    return true;
}

static bool take_number(reader *r, fileio_form form, record *q, double *x)
{
    char text[FILEIO_WIDTH + 1] = "", *end;
    if (form != FILEIO_FORMATTED)
        return form == FILEIO_SEQUENTIAL ? take_payload(r, q, (char *)x, sizeof *x) : take(r, x, sizeof *x);
    if (!take(r, text, FILEIO_WIDTH))
        return false;
    *x = strtod(text, &end);
    return end == text + FILEIO_WIDTH;
}

double fileio_error_of(double found, size_t i, fileio_form form)
{
    const double right = fileio_value(i);
    if (form == FILEIO_FORMATTED)
        return fabs(found - right) / fabs(right);
    return memcmp(&found, &right, sizeof right) ? INFINITY : 0;
}

double fileio_verify_file(size_t n, const fileio_mode *m, int descriptor)
{
    static reader r;
    const size_t each = fileio_elements_per_record(n, m);
    double worst = 0, x;
    r = (reader){.descriptor = descriptor};
    for (size_t i = 0; i < n;) {
        record q = {0};
        if (m->form == FILEIO_SEQUENTIAL && !begin_subrecord(&r, &q))
            return INFINITY;
        for (size_t k = 0; k < each; k++, i++) {
            if (!take_number(&r, m->form, &q, &x))
                return INFINITY;
            worst = pl_worse(worst, fileio_error_of(x, i, m->form));
        }
        char line_end = '\n';
        if (m->form == FILEIO_SEQUENTIAL && (q.continues || !end_subrecord(&r, &q)))
            return INFINITY;
        if (m->form == FILEIO_FORMATTED && (!take(&r, &line_end, 1) || line_end != '\n'))
            return INFINITY;
    }
    char beyond;
    return take(&r, &beyond, 1) ? INFINITY : worst;
}
