/* SPDX-License-Identifier: BSD-3-Clause
 * Files of this run that are not complete yet, under names of their own, and what becomes of them
 * when the run ends.
 *
 * Floor: io.  Used by rank 0 alone; not collective.
 *
 * A temporary is made as NAME.<16 hexadecimal digits>.tmp beside NAME: never a file that was there,
 * nor one behind a link.  So all that is ever removed was made by this run. */
#ifndef IO_TEMPORARY_H
#define IO_TEMPORARY_H

#include <stdio.h>

struct temporary {
  char path[4096]; /* what it becomes */
  char name[4096]; /* where it is now */
  int slot;        /* of what the run removes; -1: it stays */
};

/* Make the file, empty; with out, *out <- it, open for writing.  When the run fails it is removed,
 * or becomes `failed` if that is not NULL.  ERR_CREATE. */
int temporary_create(struct temporary *t, const char *path, const char *failed, FILE **out);
/* Write all of it, past the stream's buffer; name is for messages.  ERR_IO. */
int temporary_write(FILE *file, const char *name, const void *bytes, size_t count);
/* Bring what was written to the disk and close the file.  ERR_IO. */
int temporary_close(const struct temporary *t, FILE *file);
/* Rename it to its path, in place of what is there.  A file that is only shown still becomes
 * `failed` when the run fails.  ERR_IO. */
int temporary_show(struct temporary *t);
int temporary_publish(struct temporary *t);

/* It stays when the run fails: rename it to NAME.<its digits>END.  ERR_IO.  And a file that a run
 * has left so, which becomes `path`. */
int temporary_keep(struct temporary *t, const char *end);
void temporary_kept_name(const struct temporary *t, const char *end, char *name); /* [4096] */
void temporary_adopt(struct temporary *t, const char *path, const char *name);

/* Remove it: the run goes on without. */
void temporary_drop(struct temporary *t);

/* Is this file, in a folder with or without others, a temporary of `name`, from any run? */
int temporary_is_of(const char *file, const char *name);
/* The same of one that was kept with this END. */
int temporary_is_kept(const char *file, const char *name, const char *end);
/* Is this path a temporary of this run? */
int temporary_is_own(const char *path);

/* Remove an empty file of this run, such as a lock, when it ends. */
int temporary_guard(const char *name);

/* The run has ended: remove temporaries, or give them the name for failed runs, the last made
 * first.  Safe at any time, also in a signal handler; exit() and the signals that end a job do it
 * too, as of a failed run. */
void temporaries_end(int is_failed);

#endif
