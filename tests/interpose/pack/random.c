/* Thousands of random datatypes: packing, unpacking and messages give, byte for byte, what plain MPI gives, in the gaps too.
 * Usage: random SEED TYPES (two processes; linked with libplumbline_pack). */
#include "plumbline_pack.h"
#include "map.h"

enum { GUARD = 64 };
static int rank;

static void wrong(const char *what, uint64_t seed)
{
    fprintf(stderr, "rank %d, seed %llu: %s\n", rank, (unsigned long long)seed, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

typedef struct { unsigned char *all; size_t bytes; void *at; } memory;

/* Room for the items with a guard on either side, the same random bytes each time. */
static memory fill(span lies, uint64_t seed)
{
    memory m = { .bytes = (size_t)(lies.end - lies.first) + 2 * GUARD };
    m.all = malloc(m.bytes);
    for (size_t i = 0; i < m.bytes; i++)
        m.all[i] = (unsigned char)((i + seed) * 0x9E3779B97F4A7C15u >> 56);
    m.at = (void *)((uintptr_t)m.all + GUARD - (uintptr_t)lies.first);
    return m;
}

static int same(memory a, memory b) { return !memcmp(a.all, b.all, a.bytes); }

/* A receive into places that overlap has no defined result. */
static int overlaps(const map *m, span lies)
{
    unsigned char *seen = calloc((size_t)(lies.end - lies.first) + 1, 1);
    int twice = 0;
    for (long i = 0; i < m->n; i++)
        twice |= seen[m->at[i] - lies.first]++;
    free(seen);
    return twice;
}

/* Packing and unpacking alone, by the type map.  Gives whether plain MPI does the same. */
static int alone(const map *m, span lies, MPI_Datatype type, int count, int overlap, uint64_t seed)
{
    memory user = fill(lies, seed), byhand = fill(lies, seed + 1), ours = fill(lies, seed + 1),
           plain = fill(lies, seed + 1);
    const int bytes = (int)m->n;
    unsigned char *expected = malloc((size_t)bytes + 1), *packed = malloc((size_t)bytes + 1);
    int at = 0, fine;
    for (long i = 0; i < bytes; i++)
        expected[i] = *(unsigned char *)((uintptr_t)user.at + (uintptr_t)m->at[i]);
    packed[bytes] = 77;
    const int done = plumbline_pack(user.at, count, type, packed);
    if (done != bytes || memcmp(expected, packed, (size_t)bytes) || packed[bytes] != 77)
        wrong(done == bytes ? "packed bytes differ" : "not packed", seed);
    PMPI_Pack(user.at, count, type, packed, bytes, &at, MPI_COMM_WORLD);
    fine = at == bytes && !memcmp(expected, packed, (size_t)bytes);
    if (!overlap) {
        for (long i = 0; i < bytes; i++)
            *(unsigned char *)((uintptr_t)byhand.at + (uintptr_t)m->at[i]) = expected[i];
        if (plumbline_unpack(expected, ours.at, count, type) != bytes || !same(byhand, ours))
            wrong("unpacked bytes differ", seed);
        at = 0;
        if (fine) {
            PMPI_Unpack(expected, bytes, &at, plain.at, count, type, MPI_COMM_WORLD);
            fine = same(byhand, plain);
        }
    }
    free(user.all), free(byhand.all), free(ours.all), free(plain.all), free(expected), free(packed);
    return fine;
}

static void same_status(MPI_Status *a, MPI_Status *b, MPI_Datatype type, uint64_t seed)
{
    int count[2], elements[2];
    MPI_Status *of[] = { a, b };
    for (int k = 0; k < 2; k++) {
        MPI_Get_count(of[k], type, &count[k]);
        elements[k] = 0;
        if (!zeros && !mixed)   /* MPICH 4.0 divides by zero */
            MPI_Get_elements(of[k], type, &elements[k]);
    }
    if (count[0] != count[1] || elements[0] != elements[1] || a->MPI_SOURCE != b->MPI_SOURCE || a->MPI_TAG != b->MPI_TAG)
        wrong("statuses differ", seed);
}

/* From rank 0 to rank 1: plain to plain, ours to ours, ours to plain, plain to ours, absolute addresses, bytes. */
static void messages(MPI_Datatype type, span lies, int sent, int count, int bytes, uint64_t seed)
{
    memory user = fill(lies, seed), plain = fill(lies, seed + 1);
    MPI_Datatype absolute;
    MPI_Aint address;
    int length = 1;
    if (rank == 0) {
        PMPI_Send(user.at, sent, type, 1, 0, MPI_COMM_WORLD);
        MPI_Send(user.at, sent, type, 1, 1, MPI_COMM_WORLD);
        MPI_Send(user.at, sent, type, 1, 2, MPI_COMM_WORLD);
        PMPI_Send(user.at, sent, type, 1, 3, MPI_COMM_WORLD);
        MPI_Get_address(user.at, &address);
        MPI_Type_create_hindexed(1, &length, &address, type, &absolute);
        MPI_Type_commit(&absolute);
        MPI_Send(MPI_BOTTOM, sent ? 1 : 0, absolute, 1, 4, MPI_COMM_WORLD);
        MPI_Send(user.at, count, type, 1, 5, MPI_COMM_WORLD);
        MPI_Type_free(&absolute);
    } else {
        MPI_Status expected, status;
        PMPI_Recv(plain.at, count, type, 0, 0, MPI_COMM_WORLD, &expected);
        for (int tag = 1; tag < 4; tag++) {
            memory ours = fill(lies, seed + 1);
            (tag == 2 ? PMPI_Recv : MPI_Recv)(ours.at, count, type, 0, tag, MPI_COMM_WORLD, &status);
            expected.MPI_TAG = tag;
            same_status(&expected, &status, type, seed);
            if (!same(plain, ours))
                wrong(tag == 1 ? "ours to ours differs" : tag == 2 ? "ours to plain differs" : "plain to ours differs", seed);
            free(ours.all);
        }
        memory one = fill(lies, seed + 1), ours = fill(lies, seed + 1);
        MPI_Get_address(ours.at, &address);
        MPI_Type_create_hindexed(1, &length, &address, type, &absolute);
        MPI_Type_commit(&absolute);
        MPI_Recv(MPI_BOTTOM, 1, absolute, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&absolute);
        int at = 0;
        unsigned char *packed = malloc((size_t)bytes + 1), *came = malloc((size_t)bytes + 1);
        PMPI_Pack(user.at, count, type, packed, bytes, &at, MPI_COMM_WORLD);
        at = 0;
        PMPI_Unpack(packed, bytes, &at, one.at, sent ? 1 : 0, type, MPI_COMM_WORLD);
        if (!same(one, ours))
            wrong("absolute addresses differ", seed);
        PMPI_Recv(came, bytes, MPI_PACKED, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (memcmp(packed, came, (size_t)bytes))
            wrong("the bytes that travel differ", seed);
        free(one.all), free(ours.all), free(packed), free(came);
    }
    free(user.all), free(plain.all);
}

/* A message that ends within an item, as MPI_PACKED; its first bytes go where the type map says, and nothing else changes. */
static void in_part(const map *m, span lies, MPI_Datatype type, int count, uint64_t seed)
{
    const int bytes = between(0, (int)m->n / element) * element;
    memory byhand = fill(lies, seed + 1), ours = fill(lies, seed + 1);
    unsigned char *packed = calloc(1, (size_t)bytes + 1);
    MPI_Status status;
    int came;
    if (rank == 0)
        PMPI_Send(packed, bytes, MPI_PACKED, 1, 6, MPI_COMM_WORLD);
    else {
        MPI_Recv(ours.at, count, type, 0, 6, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &came);
        for (long i = 0; i < bytes; i++)
            *(unsigned char *)((uintptr_t)byhand.at + (uintptr_t)m->at[i]) = 0;
        if (came != bytes || !same(byhand, ours))
            wrong("a message that ends within an item differs", seed);
    }
    free(byhand.all), free(ours.all), free(packed);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const uint64_t first = strtoull(argv[1], NULL, 10);
    const long types = atol(argv[2]);
    long sent_types = 0, overlapping = 0, otherwise = 0;
    for (uint64_t seed = first; seed < first + (uint64_t)types; seed++) {
        state = seed * 1000003;
        const int count = between(0, 4) ? between(1, 3) : between(1, 40), sent = rarely() ? 0 : between(1, count);
        MPI_Datatype type = any_type(count);
        map m = {0};
        run(&m, type, 0, count);
        const span lies = span_of(&m);
        const int overlap = overlaps(&m, lies);
        const int fine = alone(&m, lies, type, count, overlap, seed);
        if (overlap)
            overlapping++;
        else if (!fine)
            otherwise++;
        else {
            messages(type, lies, sent, count, (int)m.n, seed);
            if (!mixed)
                in_part(&m, lies, type, count, seed);
            sent_types++;
        }
        MPI_Type_free(&type);
        free(m.at);
    }
    if (rank == 0)
        printf("%ld types: %ld sent, %ld overlap, %ld plain MPI packs otherwise than the type map says\n", types, sent_types,
               overlapping, otherwise);
    MPI_Finalize();
    return 0;
}
