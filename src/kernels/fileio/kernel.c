/* The yardstick: the array through write() and read(), with nothing between it and the kernel.  The Fortran ways are in
 * kernel.F90 (arsc2002, second article). */
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int fileio_c_write(const char *path, size_t bytes, const void *from)
{
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return errno;
    int wrong = 0;
    for (size_t done = 0; done < bytes && !wrong;) {
        const ssize_t more = write(file, (const char *)from + done, bytes - done);     /* Linux: at most 2 GiB at once */
        if (more >= 0)
            done += (size_t)more;
        else if (errno != EINTR)
            wrong = errno;
    }
    return close(file) && !wrong ? errno : wrong;
}

int fileio_c_read(const char *path, size_t bytes, void *to)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno;
    int wrong = 0;
    for (size_t done = 0; done < bytes && !wrong;) {
        const ssize_t more = read(file, (char *)to + done, bytes - done);
        if (more > 0)
            done += (size_t)more;
        else if (more == 0)
            wrong = EIO;
        else if (errno != EINTR)
            wrong = errno;
    }
    close(file);
    return wrong;
}
