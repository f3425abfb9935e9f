/* The trapezoidal rule in four ways that give the same integral for different work (ARSC HPC Users' Newsletter 236,
 * 2002, first article).
 *
 *     original       evaluates f at both ends of every step: each inner point twice
 *     shared         carries f of the right end over to the next step
 *     vectorised     original, with independent partial sums, which can be vectorised
 *     restructured   vectorised, with every point once: half weight for the two ends
 *
 * The article does not print f.  Its counters fit one addition, one multiplication and one division per evaluation
 * besides the argument, if a division is a reciprocal and three multiplications and the conversion of i an addition, and
 * fit exactly (additions, multiplications, reciprocals a step): second implementation, shared, 5, 6, 1; third,
 * vectorised, 8, 11, 2; fourth, restructured, 4, 5, 1.  Hence 4 / (1 + x x), whose integral from 0 to 1 is pi.  Its first
 * implementation, with 4, 5, 1, must have evaluated f once a step; the loop that it prints, `original` here, does so
 * twice. */
#include "kernel.h"
#include "operations.h"

/* f(a + i h) */
static inline double f(int i, double a, double h)
{
    const double x = add(a, multiply(i, h));
    return divide(4, add(1, multiply(x, x)));
}

/* i + 1, which the compiler does not know to be the i of the next step: it would carry f over, as `shared` does. */
static inline int after(int i)
{
    i++;
    __asm__("" : "+r"(i));
    return i;
}

PL_NOVEC_FUNCTION
double trapezoid_original(int begin, int end, double a, double h)
{
    double integral = 0;
    PL_NOVEC_LOOP
    for (int i = begin; i < end; i++)
        integral = add(integral, multiply(multiply(h, add(f(i, a, h), f(after(i), a, h))), 0.5));
    return integral;
}

PL_NOVEC_FUNCTION
double trapezoid_shared(int begin, int end, double a, double h)
{
    double integral = 0, left = f(begin, a, h);
    PL_NOVEC_LOOP
    for (int i = begin; i < end; i++) {
        const double right = f(i + 1, a, h);
        integral = add(integral, multiply(multiply(h, add(left, right)), 0.5));
        left = right;
    }
    return integral;
}

/* Where whole blocks of lanes end. */
static int blocks(int begin, int end) { return end - (end - begin) % TRAPEZOID_LANES; }

static double total(const double *sum)
{
    double integral = sum[0];
    for (int lane = 1; lane < TRAPEZOID_LANES; lane++)
        integral = add(integral, sum[lane]);
    return integral;
}

double trapezoid_vectorised(int begin, int end, double a, double h)
{
    double sum[TRAPEZOID_LANES] = {0};
    int i = begin;
    for (; i < blocks(begin, end); i += TRAPEZOID_LANES) {
        const int right = after(i);
        for (int lane = 0; lane < TRAPEZOID_LANES; lane++)
            sum[lane] = add(sum[lane], multiply(multiply(h, add(f(i + lane, a, h), f(right + lane, a, h))), 0.5));
    }
    for (; i < end; i++)
        sum[0] = add(sum[0], multiply(multiply(h, add(f(i, a, h), f(after(i), a, h))), 0.5));
    return total(sum);
}

double trapezoid_restructured(int begin, int end, double a, double h)
{
    double sum[TRAPEZOID_LANES] = {0};
    int i = begin + 1;
    for (; i < blocks(begin + 1, end); i += TRAPEZOID_LANES)
        for (int lane = 0; lane < TRAPEZOID_LANES; lane++)
            sum[lane] = add(sum[lane], f(i + lane, a, h));
    for (; i < end; i++)
        sum[0] = add(sum[0], f(i, a, h));
    return multiply(h, add(total(sum), multiply(add(f(begin, a, h), f(end, a, h)), 0.5)));
}
