/* SPDX-License-Identifier: BSD-3-Clause
 * A result that several jobs write together, each job a range of its rows.  The result is NAME.<16
 * digits>.growing; the digits are a hash of the settings that all jobs must share.  Beside it each
 * range has a journal of its own (journal.h): NAME.<the same digits>.<first row>-<end>.journal.
 *
 * Floor: io.  Not collective.
 *
 * So jobs need not communicate: no two write the same bytes, and a range is done when its journal
 * says so.  The journals are made before the first row is written, and their names give the rows of
 * each job.  The growing file has a random id, which each journal records.  So a journal of an
 * earlier growing file with the same name is recognised.  The growing file is first written under a
 * temporary name, and gets its own name when the text at its beginning is complete.  Jobs later
 * write only segments (io/h5/slabs.h), which come after this text.  All jobs hold a shared claim of
 * the result (place.h).  `merge` needs an exclusive claim. */
#ifndef IO_RANGES_H
#define IO_RANGES_H

#include "base/types.h"

struct range {
  gidx first, end;
  char journal[4096];
};
struct range_list {
  char growing[4096]; /* the name of the growing file; "": there is none.  The name is also set if
                       * only journals exist.  Of several growing files without journals it is any
                       * one. */
  int has_growing;    /* the growing file exists */
  char single[4096];  /* the growing file of a single job that writes all rows; "": none */
  struct range *all;  /* [count], in the order of their rows; owned */
  int count;
};
/* Find the growing files and journals of the result at `path`.  Call ranges_free() also after a
 * failure.  ERR_CREATE: journals of several growing files exist. */
int ranges_find(struct range_list *list, const char *path);
void ranges_free(struct range_list *list);
/* Is this growing file written by several jobs? */
int ranges_are(const char *growing);

/* growing[4096] <- the name of the growing file for jobs that share this text.  journal[4096] <-
 * the name of a range's journal. */
int ranges_name(const char *path, const char *text, char *growing);
void range_journal(const char *growing, gidx first, gidx end, char *journal);
/* Make the growing file, with an id and the text at its beginning.  The beginning is overwritten
 * when the file becomes an HDF5 file.  A file that exists is left as it is.  ERR_CREATE. */
int ranges_create(const char *growing, const char *text);
/* *text <- the text at the beginning of the growing file, which the caller frees, and *id (or NULL)
 * <- its id; text NULL: it was overwritten already. */
int ranges_text(const char *growing, char **text, gidx *id);

/* A run that ends before it has recorded anything removes its journal.  It also removes the growing
 * file if it made this file, and if no journal of it exists.  ranges_hold(): call this when the run
 * has claimed the journal, which is open as `file`.  ranges_keep(): call this after the first
 * record.  ranges_give_up(): call this at the end of the run, with the lock of
 * output_claim_shared(). */
int ranges_hold(const char *journal, int file);
void ranges_keep(void);
void ranges_give_up(int lock);

/* ERR_CREATE: several jobs write the result at `path`, and this run has not called
 * ranges_publish().  A run that publishes their result calls ranges_publish() first. */
int ranges_check_free(const char *path);
void ranges_publish(void);

#endif
