/* The table of steps: what each collective is said to take, for some sizes.  Linked with the library's own steps.c. */
#include <stdio.h>

#include "latency.h"

int main(void)
{
    static const int64_t bytes[] = {0, 256, 257, 2048, 2049, 12288, 12289, 524287, 524288};
    for (int shape = 0; shape < LAT_COLLECTIVES; shape++)
        for (int size = 1; size < 18; size++)
            for (int relative = 0; relative < size; relative++)
                for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
                    lat_plan p = lat_steps((lat_shape)shape, size, relative, bytes[i]);
                    printf("%d %d %d %lld %d %d %d %d %d\n", shape, size, relative, (long long)bytes[i], p.steps, p.between, p.sends,
                           p.receives, p.depends);
                }
    return 0;
}
