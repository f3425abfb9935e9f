/* What is said of pages of which the kernel shows a part: BYTES TOUCHED -> `nodes sum_of_shares huge_known`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

int main(int argc, char **argv)
{
    const size_t bytes = strtoul(argv[argc - 2], NULL, 10), touched = strtoul(argv[argc - 1], NULL, 10);
    char *const p = pl_map(bytes, PL_BASE);
    if (!p)
        return 1;
    memset(p, 1, touched);
    const pl_page_report report = pl_look_at_pages(p, bytes);
    double sum = 0;
    for (int i = 0; i < report.count; i++)
        sum += report.share[i];
    printf("%d %.3f %d\n", report.count, sum, report.huge_known);
    return 0;
}
