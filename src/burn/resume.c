/* What the records of a burn say of how far it came: its last phase. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "burn.h"

/* The number after a key of a line of ours; not a number where there is none. */
static bool number_of(const char *line, const char *key, double *value)
{
    const char *const at = strstr(line, key);
    return at && sscanf(at + strlen(key), "%lf", value) == 1;
}

static bool is_of(const char *line, const char *kind) { return strstr(line, kind) == line; }

static void check_start(const char *path, const char *line, int threads)
{
    static const char key[] = "\"hostname\": \"";
    char host[256] = "", told[256] = "";
    double count = 0;
    const char *const at = strstr(line, key);
    gethostname(host, sizeof host - 1);
    if (!at || sscanf(at + strlen(key), "%255[^\"]", told) != 1 || strcmp(host, told) != 0)
        pl_fail("--resume: %s is of the node %s, and this is %s: a burn goes on where it began", path, *told ? told : "?", host);
    if (!number_of(line, "\"threads\": ", &count) || (int)count != threads)
        pl_fail("--resume: %s is of %d threads, and these are %d: give as many", path, (int)count, threads);
}

/* One record, or what is left of it: of an error that is enough. */
static void read_record(const char *path, const char *text, int threads, burn_past *past, bool *begun)
{
    double done, round, errors;
    const size_t length = strlen(text);
    const bool whole = length > 1 && strcmp(text + length - 2, "}\n") == 0;
    if (is_of(text, "{\"record\": \"burn_error\""))
        past->errors++;     /* of a phase that may never have been ended: that counts all of its own */
    else if (whole && is_of(text, "{\"record\": \"burn_start\"")) {
        check_start(path, text, threads);
        *begun = true;
    } else if (whole && is_of(text, "{\"record\": \"burn_phase\"") && number_of(text, "\"done\": ", &done) &&
               number_of(text, "\"round\": ", &round) && number_of(text, "\"total_errors\": ", &errors))
        *past = (burn_past){done, (long)round, (long)errors};
}

/* A record, as a rule.  Where a node or a file server failed meanwhile it may be the half of one, with the next behind it. */
static void read_line(const char *path, char *line, size_t length, int threads, burn_past *past, bool *begun)
{
    static const char begin[] = "{\"record\": \"burn_", of_error[] = "\"from_thread\": ";
    const char *const end = line + length;
    char *at = memmem(line, length, begin, sizeof begin - 1);
    past->errors += memmem(line, at ? (size_t)(at - line) : length, of_error, sizeof of_error - 1) != NULL;
    while (at) {
        char *const next = memmem(at + 1, (size_t)(end - at - 1), begin, sizeof begin - 1);
        if (next)
            *next = 0;
        read_record(path, at, threads, past, begun);
        if (next)
            *next = *begin;
        at = next;
    }
}

burn_past burn_read_past(const char *path, int threads)
{
    burn_past past = {0};
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    off_t whole = 0;
    bool begun = false;
    if (!path)
        return past;
    struct stat found;
    FILE *const f = fopen(path, "r");
    if (!f || fstat(fileno(f), &found) != 0)
        pl_fail("--resume: %s: %s: give the file of the burn that is to go on", path, strerror(errno));
    if (!S_ISREG(found.st_mode))
        pl_fail("--resume: %s is no file: give the file of the burn that is to go on", path);
    while ((length = getline(&line, &room, f)) > 0) {
        read_line(path, line, (size_t)length, threads, &past, &begun);
        whole += line[length - 1] == '\n' ? length : 0;      /* half a line: the node failed while it was written */
    }
    fclose(f);
    free(line);
    if (!begun)
        pl_fail("--resume: %s is no record of a burn: give the file that --series wrote", path);
    if (whole < found.st_size && truncate(path, whole) != 0)
        pl_fail("--resume: %s: %s: its last line is not whole, and cannot be taken off", path, strerror(errno));
    return past;
}
