/* Settings, from the environment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pack.h"
#include "plumbline_pack.h"

pack_settings pack_set;
static size_t own_tlb;

/* A whole number of at most `most`; `otherwise` where the variable is not set. */
static size_t number(const char *name, size_t least, size_t most, size_t otherwise)
{
    const char *text = getenv(name);
    if (!text)
        return otherwise;
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < least || value > most)
        interpose_fail("%s=%s: not a whole number from %zu to %zu", name, text, least, most);
    return (size_t)value;
}

static pack_isa isa(void)
{
    static const char *const names[] = {[PACK_PORTABLE] = "portable", [PACK_AVX2] = "avx2", [PACK_AVX512] = "avx512f"};
    const char *text = getenv("PLUMBLINE_PACK_ISA");
    for (int k = 0; text && k <= PACK_AVX512; k++)
        if (!strcmp(text, names[k]))
            return (pack_isa)k;
    if (text)
        interpose_fail("PLUMBLINE_PACK_ISA=%s: none of portable, avx2, avx512f", text);
    return PACK_AVX512;
}

/* Entries of a TLB that no current processor falls below: what the source's had (byna2003, section 6). */
enum { TLB_ENTRIES = 64 };

void pack_settings_read(void)
{
    const long page = sysconf(_SC_PAGESIZE), first = sysconf(_SC_LEVEL1_DCACHE_SIZE), cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const size_t own_page = page > 0 ? (size_t)page : 4096;
    pack_set.page = number("PLUMBLINE_PACK_PAGE", 512, (size_t)1 << 34, own_page);
    if (pack_set.page & (pack_set.page - 1))
        interpose_fail("PLUMBLINE_PACK_PAGE=%zu: not a power of two", pack_set.page);
    pack_set.tlb = own_tlb = number("PLUMBLINE_PACK_TLB", 1, 1 << 24, TLB_ENTRIES);
    pack_set.least = number("PLUMBLINE_PACK_LEAST", 1, (size_t)1 << 40, 16 << 10);
    pack_set.memory = number("PLUMBLINE_PACK_MEMORY", 0, 1 << 24, 1024) << 20;
    pack_set.cache = number("PLUMBLINE_PACK_CACHE", 0, (size_t)1 << 40, cache > 0 ? (size_t)cache : 1 << 20);
    pack_set.first_cache = first > 0 ? (size_t)first : 32 << 10;
    pack_set.report = number("PLUMBLINE_PACK_REPORT", 0, 1, 0);
    pack_set.isa = isa();
}

void plumbline_pack_tlb(int entries) { pack_set.tlb = entries > 0 ? (size_t)entries : own_tlb; }
