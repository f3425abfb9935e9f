#ifndef PLUMBLINE_FILEIO_FILES_H
#define PLUMBLINE_FILEIO_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* How a file is kept so that nothing remains of it: it never had a name; its name was removed at once; or it has one, which
 * is removed at the end and by the signals that can be caught. */
typedef enum { FILES_NAMELESS, FILES_UNLINKED, FILES_NAMED } files_kept;

typedef struct {
    int descriptor;         /* open for reading and writing as long as the file is wanted */
    files_kept kept;
    char path[PATH_MAX];    /* by which any language opens it */
} files_file;

/* A new, empty file; kept as wanted, or as the file system can.  False with errno. */
bool files_open(files_file *, const char *directory, files_kept wanted);
void files_close(files_file *);

/* A folder that files can be made in.  Its type is that of the file system, as /proc says it: ext4, xfs, tmpfs, nfs4, lustre, overlay, ... */
typedef struct {
    const char *given;      /* as the option has it */
    char *path;
    char type[64];
} files_folder;

/* $NAME and ${NAME} in what is given are replaced by the environment's values.  Fails where no file can be made there. */
void files_look(files_folder *, const char *given, const char *option, files_kept);
double files_room(const files_folder *);    /* bytes that may still be written; infinite where the file system does not say */
bool files_in_memory(const char *type);     /* the file system is the memory itself: nothing can be dropped */

/* Share of the pages of a file that the page cache holds; negative where that cannot be seen. */
double files_resident(int descriptor);

#endif
