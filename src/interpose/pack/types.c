/* The layout of each datatype that was sent or received, kept as an attribute of the datatype: MPI gives it back when the
 * datatype is freed.  The attribute's look-up costs as much as a short message, so that a small table of those met last
 * stands before it; an entry leaves it with its attribute. */
#include <pthread.h>
#include <stdlib.h>

#include "pack.h"

enum { SLOTS = 64, MOST_BYTES = 1 << 28 };      /* bytes of one layout's description, at most */

static int keyval = MPI_KEYVAL_INVALID;
static pack_layout *met[SLOTS], *all;
static pthread_mutex_t describing = PTHREAD_MUTEX_INITIALIZER;     /* one thread at a time makes attributes */

static MPI_Datatype plain[SLOTS];               /* those of the usual ones that have a slot to themselves */

static size_t slot_number(MPI_Datatype type) { return ((uint64_t)(uintptr_t)type * 0x9E3779B97F4A7C15u) >> 58; }
static pack_layout **slot_of(MPI_Datatype type) { return &met[slot_number(type)]; }

bool pack_is_plain(MPI_Datatype type) { return plain[slot_number(type)] == type; }

static void release(pack_layout *layout)
{
    if (--layout->users)
        return;
    *(layout->before ? &layout->before->after : &all) = layout->after;
    if (layout->after)
        layout->after->before = layout->before;
    pack_arena_free(&layout->arena);
    free(layout);
}

void pack_layout_release(pack_layout *layout)
{
    pack_lock();
    release(layout);
    pack_unlock();
}

static int freed(MPI_Datatype type, int key, void *value, void *extra)
{
    pack_lock();
    if (*slot_of(type) == value)
        *slot_of(type) = NULL;
    release(value);
    pack_unlock();
    return MPI_SUCCESS;
}

static pack_layout *describe(MPI_Datatype type)
{
    pack_layout *layout = calloc(1, sizeof *layout);
    if (!layout)
        return NULL;
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    *layout = (pack_layout){.type = type, .extent = extent, .users = 1, .arena.allowed = MOST_BYTES};
    layout->understood = pack_flatten(type, &layout->arena, &layout->whole);
    if (!layout->understood) {
        pack_arena_free(&layout->arena);
        layout->whole = (pack_part){0};
    }
    pack_lock();
    layout->after = all;
    if (all)
        all->before = layout;
    all = layout;
    pack_unlock();
    return layout;
}

pack_layout *pack_layout_of(MPI_Datatype type)
{
    pack_lock();
    pack_layout *layout = *slot_of(type);
    if (layout && layout->type == type) {
        layout->users++;
        pack_unlock();
        return layout;
    }
    pack_unlock();

    /* MPI is not called with that lock held: its callback takes it. */
    pthread_mutex_lock(&describing);
    int found;
    PMPI_Type_get_attr(type, keyval, &layout, &found);
    if (!found && (layout = describe(type)))
        PMPI_Type_set_attr(type, keyval, layout);
    pthread_mutex_unlock(&describing);
    if (!layout)
        return NULL;
    pack_lock();
    layout->users++;
    *slot_of(type) = layout;
    pack_unlock();
    return layout;
}

void pack_types_start(void)
{
    const MPI_Datatype usual[] = {
        MPI_UNSIGNED_CHAR, MPI_SHORT, MPI_LONG_LONG, MPI_INT64_T, MPI_INT32_T, MPI_UNSIGNED, MPI_LONG, MPI_C_DOUBLE_COMPLEX,
        MPI_PACKED, MPI_CHAR, MPI_FLOAT, MPI_INT, MPI_BYTE, MPI_DOUBLE,     /* the most usual last: they keep their slots */
    };
    for (size_t k = 0; k < SLOTS; k++)
        plain[k] = MPI_DATATYPE_NULL;           /* which is refused before */
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        plain[slot_number(usual[k])] = usual[k];
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, freed, &keyval, NULL);
}

/* After MPI_Finalize: what is left belongs to datatypes that were never freed. */
void pack_types_stop(void)
{
    while (all) {
        all->users = 1;
        release(all);
    }
    for (int i = 0; i < SLOTS; i++)
        met[i] = NULL;
}
