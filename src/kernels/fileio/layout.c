/* Which bytes a file has: the modes, the shape of the array, and its values. */
#include <math.h>
#include <string.h>

#include "layout.h"
#include "plumbline.h"

fileio_mode fileio_mode_of(const char *name)
{
    fileio_mode m = {strcmp(name, "c") != 0, FILEIO_WHOLE, FILEIO_STREAM, FILEIO_LAYOUTS - 1};
    if (!strncmp(name, "element_", 8))
        m.granularity = FILEIO_ELEMENT;
    else if (!strncmp(name, "row_", 4))
        m.granularity = FILEIO_ROW;
    if (strstr(name, "_formatted"))
        m.form = FILEIO_FORMATTED;
    else if (strstr(name, "_sequential"))
        m.form = FILEIO_SEQUENTIAL;
    if (m.form != FILEIO_STREAM)
        m.layout = (int)m.form * 3 + (int)m.granularity;
    return m;
}

static size_t largest_divisor(size_t n, size_t most)
{
    size_t d = most;
    while (n % d)
        d--;
    return d;
}

void fileio_shape(size_t n, size_t *shape)
{
    shape[2] = largest_divisor(n, (size_t)(cbrt((double)n) + 1e-6));
    const size_t planes = n / shape[2];
    shape[1] = largest_divisor(planes, (size_t)(sqrt((double)planes) + 1e-6));
    shape[0] = planes / shape[1];
}

size_t fileio_elements_per_record(size_t n, const fileio_mode *m)
{
    size_t shape[3];
    fileio_shape(n, shape);
    return m->granularity == FILEIO_ELEMENT ? 1 : m->granularity == FILEIO_ROW ? shape[0] : n;
}

/* Sequential files have a marker of 4 bytes before and behind each record, and those above 2^31 - 9 bytes are split. */
enum { MARKER = 4, MOST_SUBRECORD = 2147483639 };

size_t fileio_file_bytes(size_t n, const fileio_mode *m)
{
    const size_t each = fileio_elements_per_record(n, m), records = n / each;
    switch (m->form) {
    case FILEIO_FORMATTED: return FILEIO_WIDTH * n + records;
    case FILEIO_SEQUENTIAL: return 8 * n + 2 * MARKER * records * ((8 * each + MOST_SUBRECORD - 1) / MOST_SUBRECORD);
    default: return 8 * n;
    }
}

double fileio_value(size_t i)
{
    const uint64_t x = pl_random_bits(i);
    const double size = (double)(x >> 11 | 1) * 0x1p-53;
    return x & 1 ? -size : size;
}
