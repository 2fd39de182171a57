/* SPDX-License-Identifier: BSD-3-Clause
 * Expand a value such as `acts/?.h5:/rows` or `@shards.txt` into the names of the files that
 * together hold one input.
 *
 * Floor: io.  Not collective.
 *
 * A text has one name per line.  A name with *, ? or [ that is not itself a file is a pattern.  It
 * stands for the matching files, sorted by the bytes of their names; a path after the pattern
 * applies to each of them.  @LIST stands for the lines of the text file LIST, each a name or a
 * pattern, relative to the folder of LIST.  Empty lines are skipped, and so are comments: a # at
 * the beginning of a line or after a blank, and what follows it. */
#ifndef IO_SHARDS_H
#define IO_SHARDS_H

#include "io/flat_file.h"

struct shard_name {
  char *name;         /* owned */
  const char *origin; /* the pattern or list that gave it, for messages; NULL: none */
  int line;           /* line in the list; 0: not from a list */
};
struct shard_names {
  struct shard_name *list; /* [count], in their order; owned */
  int count, capacity;
  struct flat_file *files; /* [n_files] the LIST files, open as inputs; owned */
  char **texts;            /* [n_texts] names of lists, patterns; owned */
  int n_files, n_texts;
};

/* Call shards_close() also after a failure.  ERR_IO: a list cannot be opened, or nothing matches a
 * pattern; ERR_INPUT: a list is not a text, or is empty. */
int shards_open(struct shard_names *s, const char *text);
void shards_close(struct shard_names *s);

#endif
