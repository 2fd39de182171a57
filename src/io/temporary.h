/* SPDX-License-Identifier: BSD-3-Clause
 * Temporary files: the incomplete files of this run, and their removal or renaming when the run
 * ends.
 *
 * Floor: io.  Used by rank 0 alone; not collective.
 *
 * A temporary is created as a new file, NAME.<16 hexadecimal digits>.tmp beside NAME; an existing
 * file or link is never opened.  So the temporaries that a run removes are files that it made. */
#ifndef IO_TEMPORARY_H
#define IO_TEMPORARY_H

#include <stdio.h>

struct temporary {
  char path[4096]; /* its final path */
  char name[4096]; /* its present path */
  int slot;        /* index in the table of files to remove at the end; -1: it stays */
};

/* Create the file, empty.  If out is not NULL, *out <- the file open for writing.  If the run
 * fails, the file is removed, or renamed to `failed` if that is not NULL.  ERR_CREATE. */
int temporary_create(struct temporary *t, const char *path, const char *failed, FILE **out);
/* Write all bytes, without the stream's buffer; name is for messages.  ERR_IO. */
int temporary_write(FILE *file, const char *name, const void *bytes, size_t count);
/* Sync the file to the disk and close it.  ERR_IO. */
int temporary_close(const struct temporary *t, FILE *file);
/* Rename it to its final path, replacing a file there.  After temporary_show() it still becomes
 * `failed` if the run fails; after temporary_publish() it stays.  ERR_IO. */
int temporary_show(struct temporary *t);
int temporary_publish(struct temporary *t);

/* temporary_keep(): rename it to NAME.<its digits>END, where it stays if the run fails.  ERR_IO.
 * temporary_adopt(): take over the file at `name`, which another run has kept, and whose final path
 * is `path`. */
int temporary_keep(struct temporary *t, const char *end);
void temporary_kept_name(const struct temporary *t, const char *end, char *name); /* [4096] */
void temporary_adopt(struct temporary *t, const char *path, const char *name);

/* Create, write and publish a text. */
int temporary_text_publish(const char *path, const char *text, size_t bytes);

/* Remove it now. */
void temporary_drop(struct temporary *t);

/* Is `file` the name of a temporary of `name`, from any run? */
int temporary_is_of(const char *file, const char *name);
/* The same for one that was kept with this END. */
int temporary_is_kept(const char *file, const char *name, const char *end);
/* Is this path a temporary of this run? */
int temporary_is_own(const char *path);

/* When the run ends, remove an empty file that it made, such as a lock. */
int temporary_guard(const char *name);

/* At the end of the run: remove temporaries, or rename them to `failed`, in reverse order of
 * creation.  Safe at any time, also in a signal handler.  exit() and the signals that end a job
 * call it too, as for a failed run. */
void temporaries_end(int is_failed);

#endif
