#include "exchange.h"

#include <math.h>
#include <stdlib.h>

enum { COUNT_TAG = 1, ATOM_TAG, GHOST_TAG, MOVES = 8 };     /* position and velocity of an atom that moves */

void md_grid(int ranks, int grid[3])
{
    grid[0] = grid[1] = grid[2] = 0;
    MPI_Dims_create(ranks, 3, grid);
}

bool md_open(md_process *p, MPI_Comm all, int working)
{
    *p = (md_process){0};
    p->works = app_open_first(&p->app, all, working);
    if (!p->works)
        return false;
    md_grid(p->app.ranks, p->grid);
    p->at[0] = p->app.rank % p->grid[0];
    p->at[1] = p->app.rank / p->grid[0] % p->grid[1];
    p->at[2] = p->app.rank / p->grid[0] / p->grid[1];
    return true;
}

/* Which process is so many steps away in one dimension, around the box. */
static int neighbour(const md_process *p, int d, int away)
{
    int at[3] = {p->at[0], p->at[1], p->at[2]};
    at[d] = (at[d] + away + p->grid[d]) % p->grid[d];
    return (at[2] * p->grid[1] + at[1]) * p->grid[0] + at[0];
}

void md_prepare(md_process *p)
{
    const size_t room = p->system->room;
    p->packed = app_memory(malloc(MOVES * room * sizeof *p->packed));
    p->arrived = app_memory(malloc(MOVES * room * sizeof *p->arrived));
    for (int k = 0; k < 6; k++) {
        md_swap *const w = &p->swap[k];
        const int d = k / 2, away = k % 2 ? 1 : -1;
        const bool face = k % 2 ? p->at[d] == p->grid[d] - 1 : p->at[d] == 0;
        *w = (md_swap){.to = neighbour(p, d, away), .from = neighbour(p, d, -away), .shift = face ? -away * p->system->box[d] : 0,
                       .which = app_memory(malloc(room * sizeof *w->which))};
    }
}

void md_close(md_process *p)
{
    for (int k = 0; k < 6; k++)
        free(p->swap[k].which);
    free(p->packed);
    free(p->arrived);
    app_close(&p->app);
}

static _Noreturn void collapsed(size_t count)
{
    pl_tell_wrong("the system has collapsed");
    pl_fail("%zu atoms where there is no room for them: the system has collapsed; do not use this build", count);
}

/* Sends `count` times `words` doubles and receives as many as the other side has; their number. */
static size_t exchange(md_process *p, size_t count, size_t words, const double *from, int to, double *into, size_t room, int source, int tag)
{
    const double own = (double)count;
    double theirs = own;
    if (to != p->app.rank) {
        app_exchange(&p->app, p->app.world, &own, 1, to, &theirs, 1, source, COUNT_TAG);
        if (theirs > (double)room)
            collapsed((size_t)theirs);
        app_exchange(&p->app, p->app.world, from, words * count, to, into, words * (size_t)theirs, source, tag);
        return (size_t)theirs;
    }
    if (count > room)
        collapsed(count);
    memcpy(into, from, words * count * sizeof *into);
    return count;
}

/* Atoms whose place in one dimension is the neighbour's that is `away`. */
static void migrate(md_process *p, int d, int away)
{
    md_system *const s = p->system;
    size_t going = 0, kept = 0;
    const int home = (p->at[d] + away + p->grid[d]) % p->grid[d];
    for (size_t i = 0; i < s->now.n; i++) {
        double *const x = s->now.x + 4 * i, *const v = s->v + 4 * i;
        const int place = (int)(x[d] / s->edge[d]);
        const bool goes = (place < p->grid[d] ? place : p->grid[d] - 1) == home;
        double *const to = goes ? p->packed + MOVES * going++ : s->now.x + 4 * kept, *const speed = goes ? to + 4 : s->v + 4 * kept;
        kept += !goes;
        memmove(to, x, 4 * sizeof *to);
        memmove(speed, v, 4 * sizeof *to);
    }
    const size_t came = exchange(p, going, MOVES, p->packed, neighbour(p, d, away), p->arrived, s->own_room - kept, neighbour(p, d, -away),
                                 ATOM_TAG);
    for (size_t k = 0; k < came; k++) {
        memcpy(s->now.x + 4 * (kept + k), p->arrived + MOVES * k, 4 * sizeof *p->arrived);
        memcpy(s->v + 4 * (kept + k), p->arrived + MOVES * k + 4, 4 * sizeof *p->arrived);
    }
    s->now.n = kept + came;
    p->migrated += (double)going;
}

static void pack(const md_process *p, const md_swap *w, int d)
{
    for (size_t k = 0; k < w->count; k++) {
        memcpy(p->packed + 4 * k, p->system->now.x + 4 * (size_t)w->which[k], 4 * sizeof *p->packed);
        p->packed[4 * k + (size_t)d] += w->shift;
    }
}

/* Own atoms and ghosts that came before are ghosts of whoever is on the other side of a face that they are near. */
static void send_ghosts(md_process *p, int k, size_t known)
{
    md_system *const s = p->system;
    md_swap *const w = &p->swap[k];
    const int d = k / 2;
    w->count = 0;
    for (size_t i = 0; i < known; i++) {
        const double x = s->now.x[4 * i + (size_t)d];
        if (k % 2 ? x >= s->low[d] + s->edge[d] - MD_REACH : x < s->low[d] + MD_REACH)
            w->which[w->count++] = (uint32_t)i;
    }
    pack(p, w, d);
    w->first = s->now.n + s->now.ghosts;
    w->came = exchange(p, w->count, 4, p->packed, w->to, s->now.x + 4 * w->first, s->room - w->first, w->from, GHOST_TAG);
    s->now.ghosts += w->came;
}

void md_exchange(md_process *p)
{
    md_system *const s = p->system;
    s->now.ghosts = 0;
    for (size_t i = 0; i < 4 * s->now.n; i++)
        if (i % 4 < 3) {
            double *const x = s->now.x + i;
            *x -= s->box[i % 4] * floor(*x / s->box[i % 4]);
            *x = *x < s->box[i % 4] ? *x : 0;
        }
    for (int d = 0; d < 3; d++) {
        if (p->grid[d] > 1)
            migrate(p, d, -1);
        if (p->grid[d] > 2)
            migrate(p, d, 1);
    }
    for (int k = 0; k < 6; k += 2) {
        const size_t known = s->now.n + s->now.ghosts;
        send_ghosts(p, k, known);
        send_ghosts(p, k + 1, known);
    }
}

void md_follow(md_process *p)
{
    for (int k = 0; k < 6; k++) {
        const md_swap *const w = &p->swap[k];
        double *const into = p->system->now.x + 4 * w->first;
        pack(p, w, k / 2);
        if (w->to == p->app.rank)
            memcpy(into, p->packed, 4 * w->count * sizeof *into);
        else
            app_exchange(&p->app, p->app.world, p->packed, 4 * w->count, w->to, into, 4 * w->came, w->from, GHOST_TAG);
    }
}
