/* SPDX-License-Identifier: BSD-3-Clause
 * The names of the files that together hold one input: what a value such as `acts/?.h5:/rows` or
 * `@shards.txt` stands for.
 *
 * Floor: io.  Not collective.
 *
 * A text has a name in each line.  A name with *, ? or [ that is no file itself is a pattern, and
 * stands for the files that match it, sorted by their bytes; a path behind it is that of each.
 * @LIST stands for the lines of the text file LIST: each a name or a pattern, relative to the
 * folder of LIST; empty lines are left out, and so is what follows a # at the beginning of a line
 * or behind a blank. */
#ifndef IO_SHARDS_H
#define IO_SHARDS_H

#include "io/flat_file.h"

struct shard_name {
  char *name;         /* owned */
  const char *origin; /* the pattern or list that it is from, for messages; NULL: itself */
  int line;           /* of the list; 0: of none */
};
struct shard_names {
  struct shard_name *list; /* [count], in their order; owned */
  int count, capacity;
  struct flat_file *files; /* [n_files] the lists, open as inputs; owned */
  char **texts;            /* [n_texts] names of lists, patterns; owned */
  int n_files, n_texts;
};

/* shards_close() follows also when it fails.  ERR_IO: a list cannot be opened, or nothing matches a
 * pattern; ERR_INPUT: a list is no text, or empty. */
int shards_open(struct shard_names *s, const char *text);
void shards_close(struct shard_names *s);

#endif
