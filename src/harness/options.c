/* The command line: what is wrong with an option, or with two of them together, is one line that says how to fix it. */
#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* --- variants ----------------------------------------------------------------------------------------------- */

static void names_of(const pl_kernel *kernel, char *text, size_t length)
{
    const char *before = "";    /* a name that stands more than once does so in successive lines */
    *text = 0;
    for (const pl_variant *v = kernel->variants; v->name; before = v++->name)
        if (strcmp(v->name, before))
            snprintf(text + strlen(text), length - strlen(text), "%s%s", *text ? ", " : "", v->name);
}

static void add_variant(pl_variants *list, const pl_variant *v)
{
    list->value = pl_grow(list->value, (size_t)(list->count + 1) * sizeof *list->value, "the list of variants");
    list->value[list->count++] = v;
}

/* A name may stand in the table more than once, the widest instruction set first: the first that runs here is taken.  NULL, if none does
 * and there is `another` choice. */
static const pl_variant *find(const pl_kernel *kernel, const char *name, bool another)
{
    const pl_variant *named = NULL;
    for (const pl_variant *v = kernel->variants; v->name; v++)
        if (!strcmp(v->name, name)) {
            if (v->loop && pl_cpu_has(v->isa))
                return v;
            named = v;
        }
    if (!named) {
        char known[1024];
        names_of(kernel, known, sizeof known);
        pl_fail("--variants %s: %s has no such variant; it has %s", name, kernel->name, known);
    }
    if (another)
        return NULL;
    if (!named->loop)
        pl_fail("--variants %s: not in this build: %s", name, named->about);
    pl_fail("--variants %s: this CPU has no %s: leave the variant out", name, named->isa);
}

/* Of "A|B" the first that runs here; of "A|" A, or NULL. */
static const pl_variant *first_of(const pl_kernel *kernel, char *names)
{
    char *rest = strchr(names, '|');
    if (!rest)
        return find(kernel, names, false);
    *rest++ = 0;
    const pl_variant *found = find(kernel, names, true);
    return found || !*rest ? found : first_of(kernel, rest);
}

static void variants(const pl_kernel *kernel, const char *text, pl_variants *list)
{
    if (!strcmp(text, "all")) {
        for (const pl_variant *v = kernel->variants; v->name; v++) {
            bool again = false;
            for (int i = 0; i < list->count; i++)
                again |= !strcmp(list->value[i]->name, v->name);
            if (v->loop && pl_cpu_has(v->isa) && !v->by_name && !again)
                add_variant(list, v);
        }
        return;
    }
    char *const copy = pl_duplicate(text), *rest = copy, *item;
    while ((item = pl_next_item("variants", &rest))) {
        const pl_variant *const found = first_of(kernel, item);
        if (found)
            add_variant(list, found);
    }
    free(copy);
    if (!list->count)
        pl_fail("--variants %s: none of them runs here", text);
}

/* The first variant that runs here; the first, whose absence is then told, if none does. */
static const pl_variant *usual(const pl_kernel *kernel)
{
    for (const pl_variant *v = kernel->variants; v->name; v++)
        if (v->loop && pl_cpu_has(v->isa))
            return v;
    return find(kernel, kernel->variants[0].name, false);
}

static _Noreturn void list_variants(const pl_kernel *kernel)
{
    if (pl_processes.rank > 0)
        exit(0);
    printf("%s: %s (%s build)\n", kernel->name, kernel->title, pl_threading());
    for (const pl_variant *v = kernel->variants; v->name; v++)
        printf("  %-14s %-8s %s%s\n", v->name, v->isa ? v->isa : "-", v->about,
               !v->loop ? " [not in this build]" : !pl_cpu_has(v->isa) ? " [not on this CPU]" : v->by_name ? " [not of all]" : "");
    exit(0);
}

static _Noreturn void help(const pl_kernel *kernel)
{
    if (pl_processes.rank > 0)
        exit(0);
    printf("%s: %s\n\n"
           "  --variants A,B,..|all  run these, interleaved: A, B, A, B, ... (default: the first that runs here); 'A|B': B where A does not run\n"
           "                         here; 'A|': A or nothing\n"
           "  --list                 what variants there are, and which this CPU can run\n"
           "  --size N,..            elements (default %s)\n"
           "  --sweep FIRST:LAST:P   P sizes evenly spaced in log N\n"
           "  --per-thread           sizes are per thread\n"
           "  --threads T,..         interleaved as well (default 1)\n"
           "  --cpus C,..            fail unless thread or rank i ran on the i-th of these CPUs\n"
           "  --capacity L3=BYTES,.. what is ours of each cache of a level, where that is less than its size\n"
           "  --init parinit,noinit  first touch by every thread, or by thread 0\n"
           "  --alloc dynamic,static arrays of just the length needed, or of a fixed length of 1e6; malloc, allocate: each from there\n"
           "  --shift K,..           arrays aligned to 4096 bytes and shifted by 0, K, 2K, ... bytes\n"
           "  --pages huge|base      ask for transparent huge pages (default), or forbid them\n"
           "  --limit[=FILE]         interleave the limit streams on a working set of the same size; those of FILE, which the\n"
           "                         first process with it writes\n"
           "  --samples S            timed repetitions of every case, at least 10, with --passes 3 (default 20)\n"
           "  --min-time SECONDS     length of one repetition, at least (default 0.01)\n"
           "  --passes P,..          passes of one repetition, instead of --min-time\n"
           "  --sync block|pass      barrier after a repetition (default), or after every pass\n"
           "  --probes on|off        core-to-core latency, clock and additions per cycle beside each repetition (default on)\n"
           "  --table                a table for people besides the records\n",
           kernel->name, kernel->title, kernel->own_size || kernel->usual_size ? "what the kernel's data have" : "1e6");
    for (const pl_parameter *t = kernel->parameters; t && t->name; t++)
        if (t->words) {
            printf("  --%-20s %s (default %s; there are", t->name, t->about, t->words[t->value]);
            for (int i = 0; t->words[i]; i++)
                printf(" %s", t->words[i]);
            puts(")");
        } else
            printf("  --%-20s %s (default %ld)\n", t->name, t->about, t->value);
    for (const pl_string_parameter *t = kernel->strings; t && t->name; t++)
        printf("  --%-20s %s\n", t->name, t->about);
    exit(0);
}

/* --- all together ------------------------------------------------------------------------------------------- */

static void check_sizes(const pl_options *o, const pl_kernel *kernel)
{
    for (int i = 0; i < o->sizes.count; i++)
        for (int t = 0; o->per_thread && t < o->threads.count; t++)
            if ((double)o->sizes.value[i] * o->threads.value[t] > PL_MAX_SIZE)
                pl_fail("--size %zu: with --per-thread this is more than %g elements", o->sizes.value[i], PL_MAX_SIZE);
    for (int i = 0; i < o->shifts.count; i++) {
        if (o->shifts.value[i] % sizeof(double))
            pl_fail("--shift %zu: arrays hold doubles: give a multiple of 8 bytes", o->shifts.value[i]);
        if (o->shifts.value[i] && !kernel->arrays)
            pl_fail("--shift %zu: %s has no arrays that can be shifted: leave it out", o->shifts.value[i], kernel->name);
    }
    bool any_dynamic = false;
    for (int i = 0; i < o->allocs.count; i++) {
        any_dynamic |= o->allocs.value[i] == PL_DYNAMIC;
        if (o->allocs.value[i] != PL_DYNAMIC && !kernel->arrays)
            pl_fail("--alloc %s: %s has no %s arrays: leave it out", pl_allocs[o->allocs.value[i]], kernel->name, pl_allocs[o->allocs.value[i]]);
        if (o->allocs.value[i] == PL_ALLOCATE && !kernel->allocate)
            pl_fail("--alloc allocate: %s was built without a Fortran compiler, or has no Fortran: leave it out", kernel->name);
    }
    for (int i = 0; i < o->shifts.count; i++)
        if (o->shifts.value[i] && !any_dynamic)
            pl_fail("--shift %zu: arrays of --alloc %s lie where they lie: leave it out, or choose dynamic ones as well", o->shifts.value[i],
                    pl_allocs[o->allocs.value[0]]);
}

void pl_check_threads(const pl_options *o, const pl_kernel *kernel)
{
    const pl_cpus allowed = pl_allowed_cpus();
    for (int i = 0; i < o->threads.count; i++) {
        if (kernel && kernel->most_threads && o->threads.value[i] > kernel->most_threads)
            pl_fail("--threads %d: %s runs with at most %d: ask for fewer", o->threads.value[i], kernel->name, kernel->most_threads);
        if (o->threads.value[i] > allowed.count)
            pl_fail("--threads %d: only %d CPUs are allowed here: ask for at most as many", o->threads.value[i], allowed.count);
        if (o->threads.value[i] > 1 && !strcmp(pl_threading(), "serial"))
            pl_fail("--threads %d: this is the serial build: use the OpenMP one", o->threads.value[i]);
        if (o->cpus.count && o->cpus.count < o->threads.value[i] * pl_processes.ranks)
            pl_fail("--cpus names %d CPUs for %d %s: name one for each", o->cpus.count,
                    o->threads.value[i] * pl_processes.ranks, pl_processes.ranks > 1 ? "ranks" : "threads");
    }
    /* A launcher that binds leaves to each process its own CPU: where they ran is looked at afterwards. */
    for (int i = 0; pl_processes.ranks == 1 && i < o->cpus.count; i++) {
        bool known = false;
        for (int j = 0; j < allowed.count; j++)
            known |= allowed.cpu[j] == o->cpus.value[i];
        if (!known)
            pl_fail("--cpus %d: this CPU is outside the affinity mask: choose CPUs that taskset -cp $$ lists", o->cpus.value[i]);
    }
}

static void check_pairs(const pl_kernel *kernel)
{
    if (kernel->in_pairs && pl_processes.ranks < 2)
        pl_fail("%s needs 2 processes, it was started with %d: start it with mpirun -np 2 or more", kernel->name,
                pl_processes.ranks);
    if (kernel->in_pairs && pl_processes.ranks % 2)
        pl_fail("%s needs pairs of processes, it was started with %d: give an even number", kernel->name, pl_processes.ranks);
}

pl_numbers pl_parse_cpus(const char *text)
{
    const char *rest;
    const pl_cpus list = pl_parse_cpulist(text, &rest);
    if (!list.count || *rest)
        pl_fail("--cpus %s: give CPUs, for example 0-3,8", text);
    return (pl_numbers){list.count, list.cpu};
}

/* L1=BYTES,L3=BYTES: what is ours of the caches. */
void pl_parse_capacities(const char *text)
{
    char *const copy = pl_duplicate(text), *rest = copy, *item;
    while ((item = pl_next_item("capacity", &rest))) {
        const int level = item[0] == 'L' && item[1] > '0' && item[1] < '0' + PL_LEVELS && item[2] == '=' ? item[1] - '0' : 0;
        if (!level)
            pl_fail("--capacity %s: give what is ours of each cache of a level in bytes, for example L2=524288,L3=4718592", item);
        pl_capacity[level] = pl_parse_size("capacity", item + 3, 1024, PL_MAX_SIZE);
    }
    free(copy);
}

/* One value or a list, none twice: each is a case of its own. */
static void parse_parameter(const pl_parameter *t, const char *text, pl_numbers *list)
{
    char *const copy = pl_duplicate(text), *rest = copy, *item;
    list->count = 0;
    if (t->given)
        *t->given = true;
    while ((item = pl_next_item(t->name, &rest))) {
        const long value = t->words ? pl_parse_position(t->name, item, t->words)
                                    : pl_parse_number(t->name, item, !t->from_zero, t->most ? t->most : 1 << 30);
        if (!t->words && value % t->multiple)
            pl_fail("--%s %ld: must divide into whole cache lines: give a multiple of %ld elements", t->name, value, t->multiple);
        for (int i = 0; i < list->count; i++)
            if (list->value[i] == value)
                pl_fail("--%s: %s stands there twice: give each value once", t->name, item);
        pl_add_number(list, (int)value);
    }
    free(copy);
}

static void set_defaults(pl_options *o, const pl_kernel *kernel)
{
    if (!o->variants.count)
        add_variant(&o->variants, usual(kernel));
    if (!o->sizes.count)
        pl_add_size(&o->sizes, kernel->own_size ? kernel->own_size(o->strings) : kernel->usual_size ? kernel->usual_size : 1000000);
    if (!o->threads.count)
        pl_add_number(&o->threads, 1);
    if (!o->inits.count)
        pl_add_number(&o->inits, PL_PARINIT);
    if (!o->allocs.count)
        pl_add_number(&o->allocs, PL_DYNAMIC);
    if (!o->shifts.count)
        pl_add_size(&o->shifts, 0);
    if (!o->passes.count)
        pl_add_size(&o->passes, 0);
}

pl_options pl_parse(int argc, char **argv, const pl_kernel *kernel)
{
    static const char *const inits[] = {"parinit", "noinit", NULL}, *const pages[] = {"huge", "base", NULL}, *const syncs[] = {"block", "pass", NULL},
                             *const probes[] = {"on", "off", NULL};
    enum { VARIANTS = 1, LIST, SIZE, SWEEP, PER_THREAD, THREADS, CPUS, CAPACITY, INIT, ALLOC, SHIFT, PAGES, LIMIT, SAMPLES, MIN_TIME,
           PASSES, SYNC, PROBES, TABLE, HELP, PARAMETER, STRING = PARAMETER + PL_MAX_PARAMETERS };
    struct option known[STRING + PL_MAX_STRINGS + 1] = {
        {"variants", 1, 0, VARIANTS}, {"list", 0, 0, LIST}, {"size", 1, 0, SIZE}, {"sweep", 1, 0, SWEEP},
        {"per-thread", 0, 0, PER_THREAD}, {"threads", 1, 0, THREADS}, {"cpus", 1, 0, CPUS}, {"capacity", 1, 0, CAPACITY}, {"init", 1, 0, INIT},
        {"alloc", 1, 0, ALLOC}, {"shift", 1, 0, SHIFT}, {"pages", 1, 0, PAGES}, {"limit", 2, 0, LIMIT},
        {"samples", 1, 0, SAMPLES}, {"min-time", 1, 0, MIN_TIME}, {"passes", 1, 0, PASSES}, {"sync", 1, 0, SYNC},
        {"probes", 1, 0, PROBES}, {"table", 0, 0, TABLE}, {"help", 0, 0, HELP}};
    pl_options o = {.samples = 20, .min_time = 0.01, .probes = true};
    const char *samples = NULL;
    int last = HELP;
    for (int i = 0; kernel->parameters && kernel->parameters[i].name; i++) {
        pl_add_number(&o.parameters[i], (int)kernel->parameters[i].value);
        known[last++] = (struct option){kernel->parameters[i].name, 1, 0, PARAMETER + i};
    }
    for (int i = 0; kernel->strings && kernel->strings[i].name; i++)
        known[last++] = (struct option){kernel->strings[i].name, 1, 0, STRING + i};
    opterr = 0;
    /* "+": in order, so that the option at hand is known when it is refused. */
    for (int c, at = 1; (c = getopt_long(argc, argv, "+", known, NULL)) != -1; at = optind)
        switch (c) {
        case VARIANTS: variants(kernel, optarg, &o.variants); break;
        case LIST: list_variants(kernel);
        case SIZE: pl_parse_sizes("size", optarg, &o.sizes, kernel->from_zero ? 0 : 1, PL_MAX_SIZE); break;
        case SWEEP: pl_parse_sweep(optarg, &o.sizes); break;
        case PER_THREAD: o.per_thread = true; break;
        case THREADS: pl_parse_thread_counts(optarg, &o.threads); break;
        case CPUS: o.cpus = pl_parse_cpus(optarg); break;
        case CAPACITY: pl_parse_capacities(optarg); break;
        case INIT: pl_parse_words("init", optarg, inits, &o.inits); break;
        case ALLOC: pl_parse_words("alloc", optarg, pl_allocs, &o.allocs); break;
        case SHIFT: pl_parse_sizes("shift", optarg, &o.shifts, 0, 1 << 30); break;
        case PAGES: o.pages = (pl_pages)pl_parse_position("pages", optarg, pages); break;
        case LIMIT: o.limit = true, o.choice = optarg; break;
        case SAMPLES: samples = optarg; break;
        case MIN_TIME: o.min_time = pl_parse_seconds("min-time", optarg); break;
        case PASSES: pl_parse_sizes("passes", optarg, &o.passes, 1, PL_MAX_SIZE); break;
        case SYNC: o.every_pass = pl_parse_position("sync", optarg, syncs) == 1; break;
        case PROBES: o.probes = pl_parse_position("probes", optarg, probes) == 0; break;
        case TABLE: o.table = true; break;
        case HELP: help(kernel);
        case '?':
            pl_fail("%s: unknown option, or its value is missing or one too many: --help lists them all", argv[at]);
        default:
            if (c >= STRING)
                o.strings[c - STRING] = optarg;
            else {
                assert(kernel->parameters);     /* they have made it known */
                parse_parameter(&kernel->parameters[c - PARAMETER], optarg, &o.parameters[c - PARAMETER]);
            }
        }
    if (optind < argc)
        pl_fail("%s: not an option: --help lists them all", argv[optind]);
    if (samples)    /* who says how many passes wants to know whether results are right */
        o.samples = (int)pl_parse_number("samples", samples, o.passes.count ? 3 : 10, 100000);
    set_defaults(&o, kernel);
    check_pairs(kernel);
    check_sizes(&o, kernel);
    pl_check_threads(&o, kernel);
    return o;
}
