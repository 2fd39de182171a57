/* SPDX-License-Identifier: BSD-3-Clause
 * Parts of an encoding: a part.h5 is a supports.h5 of a range of rows, and has in /part what
 * joining it with the others takes.
 *
 * Floor: io.  Not collective. */
#ifndef IO_PART_H
#define IO_PART_H

#include "io/supports.h"
#include "io/supports_input.h"
#include "model/part.h"

extern const struct file_kind part_kind;

/* Write /part. */
int part_write(const struct h5_file *f, const struct encode_part *part);
/* Is this attribute a mark of files, which says nothing of values? */
int part_is_mark(const char *attribute);

/* The name of the part from row `first` on, where the output is a folder: all that lies beside it
 * has a name of its own, too, so that parts may be made at the same time.  Valid until the next
 * call. */
const char *part_name(const char *output, gidx first);

/* A part that is open, and what it says. */
struct part_input {
  struct supports_input supports;
  struct supports_shape shape; /* of the part */
  struct encode_part part;     /* shift and sums are owned by the arena */
  int normalized;
  int is_whole;  /* it is no part: of the numbers of its part only n and total are there */
  gidx *density; /* [k]; NULL of a whole */
  real max_decoder_cosine;
  struct arena arena;
};
/* Verify a part, open it and read all but its supports.  part_input_close() follows also when it
 * fails.  ERR_IO: cannot open; ERR_INPUT: damaged, or no part. */
int part_input_open(struct part_input *p, const char *path);
/* The same, and of a whole too, unless refit made it. */
int part_or_whole_open(struct part_input *p, const char *path);
void part_input_close(struct part_input *p);

/* part_input_open() that leaves the supports to part_copy_once(), so that they are read once. */
int part_input_open_unread(struct part_input *p, const char *path);
/* Verify such a part while its supports go to a sink, from its row `first` on.  ERR_INPUT: it is
 * damaged; what the sink has got is worth nothing then. */
int part_copy_once(struct part_input *p, const struct support_sink *sink, gidx first);

/* Write the supports of a part to a sink, from its row `first` on. */
int part_copy(const struct part_input *p, const struct support_sink *sink, gidx first);

#endif
