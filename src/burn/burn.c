/* burn: DGEMM, multiply-adds, memory, cache and messages in turn on all cores, for hours (docs/howto/burn.rst).  It uses the runtime's threads,
 * topology and options, but not pl_main(): there are no cases, no repetitions and no limit, and what it saw is said as it goes. */
#include <signal.h>

#include "burn.h"

static void note_signal(int number) { atomic_store(&burn_signal, number); }

int main(int argc, char **argv)
{
    static burn_options options;
    burn_go_apart();
    const struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    options = burn_parse(argc, argv);
    signal(SIGPIPE, SIG_IGN);       /* whoever read the records has gone: the burn goes on */
    signal(SIGXFSZ, SIG_IGN);       /* a limit on the size of files is a full file system like any other */
    burn_state state = {.options = &options};
    const int code = pl_with_team(options.threads, burn_run, &state);
    fflush(stdout);
    burn_leave(code);
}
