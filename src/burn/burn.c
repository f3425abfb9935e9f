/* burn: DGEMM, multiply-adds, memory, cache and messages in turn on all cores, for hours (docs/howto/burn.rst).  It uses the runtime's threads,
 * topology and options, but not pl_main(): there are no cases, no repetitions and no limit, and what it saw is said as it goes. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "burn.h"

static void note_signal(int number) { atomic_store(&burn_signal, number); }

int main(int argc, char **argv)
{
    static burn_options options;
    options = burn_parse(argc, argv);
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);       /* whoever read the records has gone: the burn goes on */
    signal(SIGXFSZ, SIG_IGN);       /* a limit on the size of files is a full file system like any other */
    burn_state state = {.options = &options};
    const int code = pl_with_team(options.threads, burn_run, &state);
    fflush(stdout);
    /* Does not wait for the writer.  Where that waits in the kernel and cannot be killed (a frozen or dead disk, unlike NFS or a pipe), all has been
     * said, but whoever waits for this process waits until the file system answers. */
    _exit(code);
}
