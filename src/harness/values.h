/* What an option's value may be: one number, one word, or a list of them.
 *
 * `option` is its name, without the dashes: whatever is wrong ends the program in one line (pl_fail) that begins with --NAME and says
 * what may stand there.  Lists grow by what is read: an option that is given twice adds to what it had. */
#ifndef PLUMBLINE_VALUES_H
#define PLUMBLINE_VALUES_H

#include <stddef.h>

#define PL_MAX_SIZE 1e15   /* elements: bytes can be counted in 64 bits */

typedef struct { int count; size_t *value; } pl_sizes;
typedef struct { int count; int *value; } pl_numbers;

/* Single values. */
long pl_parse_number(const char *option, const char *text, long smallest, long largest);
size_t pl_parse_size(const char *option, const char *text, double smallest, double largest);    /* may be written 1e6 or 16777216 */
enum { PL_TICKS = 1000 };       /* of the clock's resolution that a sample lasts at least */
double pl_parse_seconds(const char *option, const char *text);      /* from PL_TICKS to a minute */

/* Words, as their positions in `known`, which ends with NULL: one of them, and a list. */
int pl_parse_position(const char *option, const char *text, const char *const *known);
void pl_parse_words(const char *option, const char *text, const char *const *known, pl_numbers *);

/* Lists of numbers. */
void pl_parse_sizes(const char *option, const char *text, pl_sizes *, double smallest, double largest);
void pl_parse_thread_counts(const char *text, pl_numbers *);    /* of --threads: none twice */
void pl_parse_sweep(const char *text, pl_sizes *);              /* of --sweep, FIRST:LAST:POINTS: even in log N, ends included, none twice */

/* Lists of anything else: the items of a copy, which pl_next_item() cuts up, one after the other; NULL at its end.  An empty item is
 * refused: it is an unset variable of somebody's script. */
char *pl_duplicate(const char *text);       /* to be freed */
char *pl_next_item(const char *option, char **rest);
void pl_add_size(pl_sizes *, size_t value);
void pl_add_number(pl_numbers *, int value);

#endif
