#include <string.h>

#include "plumbline.h"

bool pl_cpu_has(const char *isa)
{
    if (!isa)
        return true;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!strcmp(isa, "sse2"))
        return __builtin_cpu_supports("sse2");
    if (!strcmp(isa, "avx2"))
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (!strcmp(isa, "avx512f"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma");
#endif
    return false;
}
