/* SPDX-License-Identifier: BSD-3-Clause
 * A result that several jobs write, each a range of its rows: NAME.<16 digits>.growing, whose
 * digits are of what the jobs have to have in common, and beside it a journal of each range,
 * NAME.<the same digits>.<first row>-<end>.journal, which is that job's alone (journal.h).
 *
 * Floor: io.  Not collective.
 *
 * So jobs need nothing of each other while they are at work: no two write the same bytes, and a
 * range is done when its journal says so.  The journals are made before the first row is written,
 * and their names say which rows are whose. */
#ifndef IO_RANGES_H
#define IO_RANGES_H

#include "base/types.h"

struct range {
  gidx first, end;
  char journal[4096];
};
struct range_list {
  char growing[4096]; /* "": there are none; it is also named where journals alone are there */
  int has_growing;    /* it is there */
  char single[4096];  /* the growing file of one job of all rows; "": there is none */
  struct range *all;  /* [count], in the order of their rows; owned */
  int count;
};
/* What is there of the result at `path`.  ranges_free() follows also when it fails.  ERR_CREATE:
 * there are several growing files. */
int ranges_find(struct range_list *list, const char *path);
void ranges_free(struct range_list *list);
/* Is this growing file one of several jobs? */
int ranges_are(const char *growing);

/* growing[4096] <- the name for jobs with this text in common, and journal[4096] <- of a range. */
int ranges_name(const char *path, const char *text, char *growing);
void range_journal(const char *growing, gidx first, gidx end, char *journal);
/* Make the growing file if it is missing, and let it begin with the text: that is replaced when it
 * becomes a file of HDF5's.  ERR_CREATE. */
int ranges_create(const char *growing, const char *text);
/* *text, which the caller frees, <- that with which it begins; NULL: it has none any more. */
int ranges_text(const char *growing, char **text);

/* ERR_CREATE where several jobs write the result at `path`, unless this run publishes it. */
int ranges_check_free(const char *path);
void ranges_publish(void);

#endif
