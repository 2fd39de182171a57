/* SPDX-License-Identifier: BSD-3-Clause
 * Parts of an encoding.  A part.h5 is a supports.h5 of a range of rows; its group /part has the
 * numbers and sums that are needed to join it with the other parts.
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
/* Is this attribute a mark of input files?  A mark is made of sizes and times, and does not depend
 * on values. */
int part_is_mark(const char *attribute);

/* The file name of the part that begins at row `first`: `output` if that ends in ".h5", otherwise a
 * file in the folder `output`.  The files beside it get names of their own too, so that parts can
 * be made at the same time.  Valid until the next call. */
const char *part_name(const char *output, gidx first);

/* An open part, and its contents. */
struct part_input {
  struct supports_input supports;
  struct supports_shape shape; /* of the part */
  struct encode_part part;     /* shift and sums are owned by the arena */
  int normalized;
  int is_whole;  /* 1: a whole result, whose `part` has only n and total */
  gidx *density; /* [k]; NULL for a whole result */
  real max_decoder_cosine;
  struct arena arena;
};
/* Verify a part, open it, and read all except its supports.  Call part_input_close() also after a
 * failure.  ERR_IO: cannot open; ERR_INPUT: damaged, or no part. */
int part_input_open(struct part_input *p, const char *path);
/* The same; also accepts a whole result, unless refit made it. */
int part_or_whole_open(struct part_input *p, const char *path);
void part_input_close(struct part_input *p);

/* As part_input_open(), but without verifying the supports: part_copy_once() does that while it
 * copies them, so that they are read only once. */
int part_input_open_unread(struct part_input *p, const char *path);
/* Verify a part of part_input_open_unread() while its supports go to a sink, beginning with its row
 * `first`.  ERR_INPUT: it is damaged, and the caller must discard what the sink has received. */
int part_copy_once(struct part_input *p, const struct support_sink *sink, gidx first);

/* Write the supports of a part to a sink, beginning with its row `first`. */
int part_copy(const struct part_input *p, const struct support_sink *sink, gidx first);

/* Returns 1 if the file is a part of this kind that a stopped job left.  If whole is not 0, the
 * part must also have fewer than `whole` rows.  Returns 0 also if the file cannot be read. */
int part_is_left(const char *path, const char *kind, gidx whole);

#endif
