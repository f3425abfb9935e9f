/* The loops of kernel.c once more, with operations that count themselves. */
#define TRAPEZOID_COUNT
#define trapezoid_original counted_original
#define trapezoid_shared counted_shared
#define trapezoid_vectorised counted_vectorised
#define trapezoid_restructured counted_restructured
#include "kernel.c"

trapezoid_operations trapezoid_counted;
