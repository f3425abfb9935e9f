/* Who writes to a file system that hangs may wait in the kernel and cannot be killed (a frozen or dead disk), nor can the whole process.  So the burn
 * is a process of its own, and the one that others wait for has no file: it takes the burn's exit code from a pipe. */
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"

static int pipe_of_code[2];
static pid_t burn;

static void pass_on(int number) { kill(burn, number); }

static int wait_for_burn(void)
{
    static const int patience = 5000;       /* ms, for what it says in the end */
    int code, status = 0;
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        close(file);
    close(pipe_of_code[1]);
    if (read(pipe_of_code[0], &code, sizeof code) > 0) {
        signal(SIGTERM, SIG_IGN);           /* it ends: another signal is no reason not to wait for that */
        signal(SIGINT, SIG_IGN);
        poll(&(struct pollfd){.fd = pipe_of_code[0], .events = POLLIN}, 1, patience);
        return code;
    }
    waitpid(burn, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void burn_go_apart(void)
{
    if (pipe(pipe_of_code) != 0 || (burn = fork()) < 0)
        pl_fail("burn: no process can be started: raise the limit of processes (ulimit -u)");
    if (burn == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return;
    }
    const struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    _exit(wait_for_burn());
}

void burn_announce(int code)
{
    if (write(pipe_of_code[1], &code, sizeof code) < 0)
        _exit(code);    /* nobody waits any more */
}

void burn_leave(int code)
{
    /* Whoever waits, for one of these, need not wait for the writer.  The pipe is the last of them: when it is closed, the other process ends, and
     * this one with it. */
    for (int file = 0; file <= pipe_of_code[1]; file++)
        close(file);
    _exit(code);
}
