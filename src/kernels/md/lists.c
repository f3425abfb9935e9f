/* Cells and Verlet lists.  The cells are sorted by counting, by all threads at once; within a cell atoms stand in the order of their
 * numbers, so that lists, and sums over them, are the same whoever was first. */
#include "md.h"

void md_barrier(md_worker w)
{
    if (w.threads > 1)
        pl_barrier();
}

int md_cell(const md_system *s, int d, double x)
{
    const int inner = s->cells[d] - 2 * MD_LAYERS, last = s->cells[d] - 1;
    const double at = (x - s->low[d]) / s->edge[d] * inner + MD_LAYERS;
    return !(at >= 0) ? 0 : at >= last ? last : (int)at;     /* what is no number, too */
}

static uint32_t cell_of(const md_system *s, const double *x)
{
    const int at[3] = {md_cell(s, 0, x[0]), md_cell(s, 1, x[1]), md_cell(s, 2, x[2])};
    return (uint32_t)((at[2] * s->cells[1] + at[1]) * s->cells[0] + at[0]);
}

/* Rounding may have put an own atom on the face of the box. */
static int inner(const md_system *s, int d, double x)
{
    const int at = md_cell(s, d, x), last = s->cells[d] - MD_LAYERS - 1;
    return at < MD_LAYERS ? MD_LAYERS : at > last ? last : at;
}

static void count(md_system *s, md_image *image, pl_range part)
{
    for (size_t i = part.begin; i < part.end; i++) {
        s->cell_of[i] = cell_of(s, image->x + 4 * i);
        __atomic_fetch_add(&s->cursor[s->cell_of[i]], 1, __ATOMIC_RELAXED);
    }
}

static void fill(md_system *s, md_image *image, pl_range part)
{
    for (size_t i = part.begin; i < part.end; i++) {
        const double *const x = image->x + 4 * i;
        image->entry[__atomic_fetch_add(&s->cursor[s->cell_of[i]], 1, __ATOMIC_RELAXED)] = (md_entry){{x[0], x[1], x[2]}, (int64_t)i};
    }
}

/* Few in a cell. */
static void sort(md_entry *first, md_entry *end)
{
    for (md_entry *next = first + 1; next < end; next++) {
        const md_entry own = *next;
        md_entry *at = next;
        for (; at > first && at[-1].index > own.index; at--)
            *at = at[-1];
        *at = own;
    }
}

void md_build(md_system *s, md_image *image, md_worker w)
{
    const size_t cells = (size_t)s->cells[0] * (size_t)s->cells[1] * (size_t)s->cells[2];
    const pl_range mine = pl_part(cells, w.thread, w.threads), part = pl_part(image->n + image->ghosts, w.thread, w.threads);
    for (size_t k = mine.begin; k < mine.end; k++)
        s->cursor[k] = 0;
    md_barrier(w);
    count(s, image, part);
    md_barrier(w);
    uint32_t before = 0, own = 0;
    for (size_t k = mine.begin; k < mine.end; k++)
        own += s->cursor[k];
    s->of_thread[w.thread].value = own;
    md_barrier(w);
    for (int t = 0; t < w.thread; t++)
        before += (uint32_t)s->of_thread[t].value;
    for (size_t k = mine.begin; k < mine.end; k++) {
        image->begin[k] = before;
        before += s->cursor[k];
        s->cursor[k] = image->begin[k];
    }
    if (w.thread == w.threads - 1)
        image->begin[cells] = before;
    md_barrier(w);
    fill(s, image, part);
    md_barrier(w);
    for (size_t k = mine.begin; k < mine.end; k++)
        sort(image->entry + image->begin[k], image->entry + image->begin[k + 1]);
    md_barrier(w);
}

/* Candidates of a row of cells that are near; in a half list those of the thread's own atoms go to `mutual`, all others to `rest`. */
typedef struct { int32_t *mutual, *rest; int32_t mutuals, rests; } found;

static inline void look_along(const md_entry *e, const md_entry *end, const double *x, int64_t i, found *to)
{
    int32_t count = to->rests;
    if (end - e > 15 * MD_MOST)
        end = e + 15 * MD_MOST;
    for (; e < end; e++) {
        const double dx = x[0] - e->x[0], dy = x[1] - e->x[1], dz = x[2] - e->x[2];
        to->rest[count] = (int32_t)e->index;
        count += (dx * dx + dy * dy + dz * dz < MD_REACH * MD_REACH) & (e->index != i);
    }
    to->rests = count;
}

/* Of a half list: those before i that are of the same thread have it in their lists. */
static void divide(found *to, int64_t i, pl_range own)
{
    int32_t kept[MD_MOST], rests = 0;
    for (int32_t k = 0; k < to->rests; k++) {
        const int32_t j = to->rest[k];  /* NOLINT(clang-analyzer-core.uninitialized.Assign): look_along() has written all before rests */
        if (j < (int64_t)own.begin || j >= (int64_t)own.end)
            kept[rests++] = j;
        else if (j > i)
            to->mutual[to->mutuals++] = j;
    }
    for (int32_t k = 0; k < rests; k++)
        to->mutual[to->mutuals + k] = kept[k];
    to->rests = rests;
}

void md_list(md_system *s, const md_image *image, pl_range part, pl_range own, bool half)
{
    md_lists *const l = &s->lists;
    uint64_t next = (uint64_t)own.begin * MD_MOST;
    const int row = s->cells[0], plane = s->cells[0] * s->cells[1];
    for (size_t i = part.begin; i < part.end; i++) {
        const double *const x = image->x + 4 * i;
        int32_t near[16 * MD_MOST];      /* a row of cells may add whatever it has before the number is looked at */
        found to = {l->neighbour + next, near, 0, 0};
        const int64_t cell = (int64_t)inner(s, 2, x[2]) * plane + (int64_t)inner(s, 1, x[1]) * row + inner(s, 0, x[0]);
        for (int z = -MD_LAYERS; z <= MD_LAYERS && to.rests <= MD_MOST; z++)
            for (int y = -MD_LAYERS; y <= MD_LAYERS && to.rests <= MD_MOST; y++) {
                const int64_t centre = cell + z * plane + y * row;
                look_along(image->entry + image->begin[centre - MD_LAYERS], image->entry + image->begin[centre + MD_LAYERS + 1], x,
                           (int64_t)i, &to);
            }
        if (to.rests > MD_MOST) {       /* it has collapsed, and goes on to be found wrong */
            to.rests = MD_MOST;
            s->clipped = true;
        }
        if (half)
            divide(&to, (int64_t)i, own);
        else
            /* NOLINTNEXTLINE(clang-analyzer-unix.cstring.UninitializedRead): look_along() has written all before rests */
            memcpy(to.mutual, to.rest, (size_t)to.rests * sizeof *to.rest);
        l->begin[i] = next;
        l->mutual[i] = to.mutuals;
        l->count[i] = to.mutuals + to.rests;
        next += (uint64_t)l->count[i];
        for (; next % MD_PAD; next++)
            l->neighbour[next] = (int32_t)s->room;
    }
}
