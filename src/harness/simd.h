/* One width of the SIMD instructions of x86-64, by names that are the same for each: a loop is written once.  A kernel has its loops in a
 * file that begins with this one, and includes that file for each width, after `#define PL_SIMD 512`, 256 or 128.
 *
 *   NAME(loop)      the function's name: loop_avx512, loop_avx2, loop_sse2
 *   TARGET          its attribute
 *   LANES           doubles in a VECTOR
 *   MM(operation)   the intrinsic of this width
 *   INDICES(from)   LANES indices of 32 bits; GATHER_FROM(x, indices) takes the doubles that are there: not of SSE2
 */
#include <immintrin.h>

#undef NAME
#undef TARGET
#undef LANES
#undef VECTOR
#undef MM
#undef FMADD
#undef INDICES
#undef GATHER_FROM

#if PL_SIMD == 512
#define NAME(loop) loop##_avx512
#define TARGET __attribute__((target("avx512f,fma")))
#define LANES 8
#define VECTOR __m512d
#define MM(operation) _mm512_##operation
#define INDICES(from) _mm256_loadu_si256((const __m256i *)(from))
#define GATHER_FROM(x, indices) _mm512_i32gather_pd(indices, x, 8)
#elif PL_SIMD == 256
#define NAME(loop) loop##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 4
#define VECTOR __m256d
#define MM(operation) _mm256_##operation
#define INDICES(from) _mm_loadu_si128((const __m128i *)(from))
#define GATHER_FROM(x, indices) _mm256_i32gather_pd(x, indices, 8)
#else
#define NAME(loop) loop##_sse2
#define TARGET __attribute__((target("sse2")))
#define LANES 2
#define VECTOR __m128d
#define MM(operation) _mm_##operation
#endif

#define LOAD(from) MM(loadu_pd)(from)
#define STORE(to, x) MM(storeu_pd)(to, x)
#define LOAD_ALIGNED(from) MM(load_pd)(from)
#define STORE_ALIGNED(to, x) MM(store_pd)(to, x)
#define STREAM(to, x) MM(stream_pd)(to, x)      /* past the caches */
#define SET1(x) MM(set1_pd)(x)
#define ADD(x, y) MM(add_pd)(x, y)
#define SUB(x, y) MM(sub_pd)(x, y)
#define MUL(x, y) MM(mul_pd)(x, y)
#if PL_SIMD == 128
#define FMADD(x, y, z) ADD(MUL(x, y), z)        /* SSE2 has none */
#else
#define FMADD(x, y, z) MM(fmadd_pd)(x, y, z)    /* x * y + z */
#endif

/* What is stored past the caches is stored by whole lines: `for (k = 0; k < LINE; k += LANES)` within the loop is unrolled away. */
#define LINE (PL_LINE / sizeof(double))
#define UNROLL _Pragma("GCC unroll 4")

#undef PL_SIMD
