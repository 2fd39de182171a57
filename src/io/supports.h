/* SPDX-License-Identifier: BSD-3-Clause
 * Supports and codes: supports.h5, which rank 0 makes; supports_ranks.h lets all ranks write it.
 *
 * Floor: io. */
#ifndef IO_SUPPORTS_H
#define IO_SUPPORTS_H

#include "base/worker.h"
#include "io/identity.h"
#include "io/metrics.h"
#include "io/outputs.h"
#include "io/schema.h"
#include "model/cuts.h"
#include "model/part.h"
#include "model/results.h"
#include "model/supports.h"

#define OFFSETS_PATH "/supports/indptr"
extern const struct file_kind supports_kind;
extern const struct object_table supports_objects;
int supports_check(struct verify *v); /* supports_check.c */

/* The same of rows that are there in memory, as part of a file of this shape: check blocks in
 * ascending order, `data` being /supports/data of a block; then *counts <- theirs, whose density
 * lives in the pass.  ERR_INPUT. */
struct support_pass;
struct supports_shape;
int supports_rows_open(struct support_pass **pass, const struct supports_shape *shape, idx rounds);
int supports_rows_check(struct support_pass *pass, const struct support_block *block,
                        const float *data);
int supports_rows_end(struct support_pass *pass, struct support_counts *counts);
void supports_rows_close(struct support_pass *pass); /* safe on NULL */
/* *bytes <- what a check of a file of this shape holds, whose rows go to a taker. */
int supports_taking_bytes(const struct supports_shape *shape, gidx entries, gidx *bytes);

/* What is known before routing: n rows with supports of s atoms out of k, each a frame of d vectors
 * of p columns. */
struct supports_shape {
  gidx n;
  idx k, s, d, p;
  int has_codes; /* codes are solved, not only scores known */
  int nonnegative;
  const char *encoder; /* kind of the imported encoder whose supports they are, of encoder_names[]:
                        * rows have up to s atoms; NULL: none, they have s */
  int solved;          /* with an encoder: codes are solved (N.24k), not its own */
  const struct score_cuts *cuts; /* by which the supports were chosen (N.58), known when the file
                                  * is finished; NULL: none; borrowed */
};

/* supports.h5 being written. */
struct supports_output {
  struct result_file result;
  struct supports_shape shape;
  struct h5_array indices, score, data, codes; /* codes: d > 1 only */
  struct h5_array indptr;                      /* where rows may have fewer than s atoms */
  struct support_sink sink;                    /* blocks of rows are written here, in order */
  float *summary;                              /* `data` of some chunks of frames; owned */
  idx rounds;                                  /* of routing, where ranks check rows */
  int has_slabs;                               /* 0: HDF5 says where chunks are */
  struct h5_slabs slabs;                       /* of indices, score, data, codes if any, indptr */
  struct support_counts counts;                /* of rows that ranks have checked; density: owned */
  struct support_pass *pass; /* of this rank's rows since then; NULL: none is checked yet; owned */
  struct worker checker;     /* checks them beside the writing; owned */
  gidx checked, taken;       /* rows before these are checked, and are by the checker */
  gidx unchecked, unsynced;  /* bytes behind what it has, and since the last sync */
  struct phase hashing;      /* what the hashes took, as part of writing */
};
gidx supports_bytes(const struct supports_shape *shape); /* size on disk, estimated from above */
int supports_output_create(struct supports_output *f, const char *path,
                           const struct supports_shape *shape);
/* The same for a part of the rows (part.h): shape is that of the part. */
int supports_part_create(struct supports_output *f, const char *path,
                         const struct supports_shape *shape);
/* The same of a file that another rank has made at `name`, to write rows of it.  ERR_IO: it is not
 * seen here. */
int supports_output_open(struct supports_output *f, const char *name,
                         const struct supports_shape *shape);
/* The same two of a file that is none of HDF5's yet: on rank 0, with room for all, and as a run
 * that stopped has left it at `name`, with the first `rows` rows.  ERR_CREATE; ERR_IO, ERR_INPUT:
 * it is shorter. */
int supports_growing_create(struct supports_output *f, const char *path,
                            const struct supports_shape *shape);
int supports_growing_open(struct supports_output *f, const char *path, const char *name,
                          const struct supports_shape *shape, gidx rows);
/* The same of one that several jobs write, at `name` (ranges.h), of which this one goes on with row
 * `next`. */
int supports_growing_join(struct supports_output *f, const char *path, const char *name,
                          const struct supports_shape *shape, gidx next);
/* How many rows a segment has, in which such jobs write; 0: rows of this shape have no places. */
gidx supports_segment_rows(const struct supports_shape *shape);
/* Where rows begin that a job has written of such a file, on the disk and read again.  Then what
 * is published takes that from the shape, where f->counts.has_offsets.  ERR_IO. */
int supports_offsets_write(struct supports_output *f, gidx first, gidx end);
/* All rows are written: it becomes one, of a kind, which supports_output_finish() ends.  Rank 0. */
int supports_growing_end(struct supports_output *f, const struct file_kind *kind);
/* Its arrays that have rows. */
enum { SUPPORTS_ARRAYS = 4 };
int supports_output_arrays(struct supports_output *f, struct h5_array *arrays[SUPPORTS_ARRAYS]);
/* No more rows are written: the file becomes a part that has those that were, `rows` of them. */
int supports_output_cut(struct supports_output *f, gidx rows);
/* What is known after the last row. */
struct supports_ending {
  const struct metrics *metrics;
  const real *mean; /* [p], or NULL: nothing was subtracted */
  real rho;
  idx rounds;
  int normalized; /* the dictionary's atoms were scaled first */
  gidx sweeps;    /* of refit; 0: not written */
  struct identity inputs, contents;
  const struct encode_part *part; /* of a part */
};
/* Write what remains, and publish. */
int supports_output_finish(struct supports_output *f, const struct supports_ending *ending,
                           const struct run_fact *facts, int n_facts);
/* Give back what an unfinished file holds; safe after supports_output_finish() and on a zeroed
 * struct. */
void supports_output_close(struct supports_output *f);

#endif
