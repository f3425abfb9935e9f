/* How the ranks stand along the axes.  Unless told otherwise z is not cut, and x and y as equally as can be: that gives the
 * message lengths of anderson1997, table 13: 4 x 4, 4 x 8, 8 x 8, 8 x 16 and 16 x 16 ranks on 64^3 points. */
#include <stdio.h>
#include <string.h>

#include "sp.h"

/* Points that two blocks share an edge of must lie in these two. */
static bool cuts(int n, int ranks) { return n % ranks == 0 && (ranks == 1 || n / ranks >= SP_EDGE); }

static bool fits(const sp_options *o, const int *ranks)
{
    for (int a = 0; a < SP_AXES; a++)
        if (!cuts(o->n, ranks[a]) || (o->ranks[a] && o->ranks[a] != ranks[a]))
            return false;
    return true;
}

/* The next divisor of a number after this one, up to the number itself; 0 after that. */
static int next_divisor(int of, int after)
{
    for (int d = after + 1; d <= of; d++)
        if (of % d == 0)
            return d;
    return 0;
}

/* The best way that fits: the fewest along z; then the most along x that are not more than along y; then any. */
static bool best_of(const sp_options *o, int total, int *best)
{
    for (int z = next_divisor(total, 0); z; z = next_divisor(total, z)) {
        const int plane = total / z;
        bool found = false;
        for (int x = next_divisor(plane, 0); x && !(found && x > plane / x); x = next_divisor(plane, x)) {
            const int ranks[SP_AXES] = {x, plane / x, z};
            if (!fits(o, ranks))
                continue;
            memcpy(best, ranks, sizeof ranks);
            found = true;
        }
        if (found)
            return true;
    }
    return false;
}

/* Appends to a list until it is full. */
static bool append(char *list, size_t room, const char *item)
{
    const size_t length = strlen(list);
    if (length + strlen(item) + 8 > room) {
        strcat(list, ", ...");
        return false;
    }
    snprintf(list + length, room - length, "%s%s", length ? ", " : "", item);
    return true;
}

/* Ways in which so many ranks can stand. */
static void list_grids(int n, int total, char *list, size_t room)
{
    const sp_options free_choice = {.n = n};
    char item[64];
    for (int z = next_divisor(total, 0); z; z = next_divisor(total, z))
        for (int y = next_divisor(total / z, 0); y; y = next_divisor(total / z, y)) {
            const int ranks[SP_AXES] = {total / z / y, y, z};
            if (!fits(&free_choice, ranks))
                continue;
            snprintf(item, sizeof item, "%d x %d x %d", ranks[0], ranks[1], ranks[2]);
            if (!append(list, room, item))
                return;
        }
}

/* Numbers of ranks that can share the cube, near this one. */
static void list_totals(int n, int total, char *list, size_t room)
{
    const sp_options free_choice = {.n = n};
    int ranks[SP_AXES];
    char item[16];
    const long most = (long)n / SP_EDGE * (n / SP_EDGE) * (n / SP_EDGE);     /* blocks of the least size */
    int from = total, found = 0;
    while (from > 1 && found < 3)
        found += best_of(&free_choice, --from, ranks);
    for (found = 0; found < 6 && from <= most && from <= 4L * total; from++)
        if (best_of(&free_choice, from, ranks)) {
            snprintf(item, sizeof item, "%d", from);
            found++;
            if (!append(list, room, item))
                return;
        }
}

bool sp_choose(sp_options *o, int ranks, char *why)
{
    int best[SP_AXES];
    char list[128] = "";
    if (best_of(o, ranks, best)) {
        memcpy(o->ranks, best, sizeof best);
        return true;
    }
    if (o->ranks[0] || o->ranks[1] || o->ranks[2]) {
        list_grids(o->n, ranks, list, sizeof list);
        if (*list) {
            snprintf(why, SP_WHY, "%d ranks cannot stand as asked along x, y, z (%d, %d, %d; 0: any) on %d^3 points: "
                     "possible are %s", ranks, o->ranks[0], o->ranks[1], o->ranks[2], o->n, list);
            return false;
        }
    }
    list_totals(o->n, ranks, list, sizeof list);
    snprintf(why, SP_WHY, "%d ranks cannot share %d^3 points, in blocks of equal size with at least %d points along a cut "
             "axis: give another number of ranks (%s) or of points", ranks, o->n, SP_EDGE, list);
    return false;
}
