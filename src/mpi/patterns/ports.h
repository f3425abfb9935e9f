/* What the ports of all nodes count while the program runs: errors of links, drops, waits, bytes. */
#ifndef PATTERNS_PORTS_H
#define PATTERNS_PORTS_H

/* The first process of each node looks at the InfiniBand ports and the network devices with hardware below a folder, /sys by default;
 * a second call does nothing. */
void ports_begin(const char *root);

/* It looks again, and rank 0 prints a record of what has grown; all processes call it. */
void ports_end(void);

#endif
