/* The machine's limits by themselves: all limit streams at given working sets. */
#include "plumbline.h"

int main(int argc, char **argv) { return pl_main(argc, argv, &pl_streams); }
