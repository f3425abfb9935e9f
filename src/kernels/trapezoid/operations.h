/* Double-precision arithmetic by name, so that the loops of kernel.c can be compiled twice: as they are, and counting
 * what they do.  The work of a variant is then counted, not claimed. */
#ifndef PLUMBLINE_OPERATIONS_H
#define PLUMBLINE_OPERATIONS_H

typedef struct { long adds, multiplies, divides; } trapezoid_operations;

#ifdef TRAPEZOID_COUNT
extern trapezoid_operations trapezoid_counted;
#define COUNT(operation) (void)trapezoid_counted.operation++
#else
#define COUNT(operation) (void)0
#endif

static inline double add(double x, double y) { COUNT(adds); return x + y; }
static inline double multiply(double x, double y) { COUNT(multiplies); return x * y; }
static inline double divide(double x, double y) { COUNT(divides); return x / y; }

#endif
