/* Where the data lie: mapping, huge pages, NUMA node of the pages, memory that is left. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

enum { USUAL = 2 << 20, MOST_SPARE = 32 << 20 };

size_t pl_huge_page(void)
{
    static size_t size;
    char line[64];
    if (!size && pl_read_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", line, sizeof line))
        size = strtoul(line, NULL, 10);
    return size = size ? size : USUAL;
}

/* Small buffers get a whole huge page as well, unless that is hundreds of megabytes for each. */
static size_t whole(size_t bytes) { return pl_round_up(bytes, pl_huge_page() <= MOST_SPARE ? pl_huge_page() : USUAL); }

/* A page of half a gigabyte (64-bit Arm with base pages of 64 KiB) has the arrays of threads of several nodes in it, and lies where the first
 * of them touched it. */
pl_pages pl_pages_for(pl_pages asked, int threads)
{
    return asked == PL_HUGE && pl_huge_page() > MOST_SPARE && !pl_on_one_node(threads) ? PL_BASE : asked;
}

/* For the whole pages among these bytes: what begins and ends between two of them shares those with others. */
void pl_advise(void *p, size_t bytes, pl_pages pages)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), before = -(uintptr_t)p % page;
    /* A refusal (a kernel without transparent huge pages) shows in the record's huge_page_share. */
    if (bytes >= before + page)
        (void)madvise((unsigned char *)p + before, (bytes - before) / page * page, pages == PL_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

/* Aligned to a huge page, so that the physical layout is the same in every run. */
void *pl_map(size_t bytes, pl_pages pages)
{
    const size_t page = pl_huge_page(), align = whole(bytes) >= page ? page : USUAL, length = whole(bytes) + align;
    unsigned char *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    unsigned char *aligned = (unsigned char *)pl_round_up((uintptr_t)p, align);
    if (aligned > p)
        munmap(p, (size_t)(aligned - p));
    const size_t rest = (size_t)(p + length - aligned) - whole(bytes);
    if (rest)
        munmap(aligned + whole(bytes), rest);
    pl_advise(aligned, whole(bytes), pages);
    return aligned;
}

void pl_unmap(void *p, size_t bytes) { munmap(p, whole(bytes)); }

/* Linux 6.1, and others, hides pages that NUMA balancing has unmapped, to see who comes for them, from both of the questions below.  Where it
 * shows less than half of what is there, nothing is known. */
static bool enough(double seen, double there) { return seen >= there / 2; }

/* Bytes of the mapping that begins there which lie in memory, hidden or not; 0 if nobody says. */
static double resident(uintptr_t begin)
{
    FILE *f = fopen("/proc/self/numa_maps", "r");
    char line[4096];
    double pages = 0;
    bool inside = false;
    while (f && !inside && fgets(line, sizeof line, f)) {
        inside = strtoul(line, NULL, 16) == begin;
        double count;
        for (const char *at = line; inside && (at = strstr(at, " N")); at++)
            pages += sscanf(at, " N%*d=%lf", &count) == 1 ? count : 0;
    }
    if (f)
        fclose(f);
    return pages * (double)sysconf(_SC_PAGESIZE);
}

/* Share of anonymous huge pages of the mapping that holds p, from /proc/self/smaps. */
static bool huge_share(const void *p, double *share)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    uintptr_t begin = 0, end = 0;
    bool found = false;
    double size = 0;
    if (!f)
        return false;
    while (!found && fgets(line, sizeof line, f)) {
        uintptr_t first, last;
        double kib;
        if (sscanf(line, "%zx-%zx ", &first, &last) == 2)
            begin = first, end = last;
        const bool inside = (uintptr_t)p >= begin && (uintptr_t)p < end;
        if (inside && sscanf(line, "Rss: %lf", &kib) == 1)
            size = kib;
        else if (inside && sscanf(line, "AnonHugePages: %lf", &kib) == 1) {
            *share = size > 0 ? kib / size : 0;
            found = true;
        }
    }
    fclose(f);
    return found && enough(1024 * size, resident(begin));
}

/* Nodes of up to 1000 pages spread evenly over the buffer. */
static void nodes_of(const void *p, size_t bytes, pl_page_report *report)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t pages = bytes / page + 1, count = pages < 1000 ? pages : 1000;
    void *address[1000];
    int status[1000], seen = 0;
    for (size_t i = 0; i < count; i++) {
        status[i] = -1;
        address[i] = (void *)(((uintptr_t)p + i * (bytes / count)) / page * page);
    }
    if (syscall(SYS_move_pages, 0, count, address, NULL, status, 0) != 0)
        return;
    for (size_t i = 0; i < count; i++)
        seen += status[i] >= 0;
    for (size_t i = 0; i < count && enough(seen, (double)count); i++) {
        int j = 0;
        if (status[i] < 0)
            continue;
        while (j < report->count && report->node[j] != status[i])
            j++;
        if (j == (int)(sizeof report->node / sizeof *report->node))
            continue;
        if (j == report->count) {
            report->node[j] = status[i];
            report->count++;
        }
        report->share[j] += 1.0 / seen;
    }
}

pl_page_report pl_look_at_pages(const void *p, size_t bytes)
{
    pl_page_report report = {0};
    if (p && bytes) {
        nodes_of(p, bytes, &report);
        report.huge_known = huge_share(p, &report.huge_share);
    }
    return report;
}

size_t pl_memory_available(void)
{
    char text[64];
    const size_t kib = pl_field_of("/proc/meminfo", "MemAvailable", text, sizeof text) ? strtoul(text, NULL, 10) : 0;
    const size_t available = kib ? kib * 1024 : SIZE_MAX;
    const double left = pl_memory_left("");
    return left < (double)available ? (size_t)left : available;
}
