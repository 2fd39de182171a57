/* SPDX-License-Identifier: BSD-3-Clause
 * Supports and codes: writing supports.h5.  Rank 0 creates the file; with supports_ranks.h all
 * ranks write its rows.
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

/* The same check for rows in memory, which are part of a file of this shape.  Call
 * supports_rows_check() for blocks in ascending order, where `data` is /supports/data of the block.
 * supports_rows_end() then gives their counts; the pass owns counts->density.  ERR_INPUT. */
struct support_pass;
struct supports_shape;
int supports_rows_open(struct support_pass **pass, const struct supports_shape *shape, idx rounds);
int supports_rows_check(struct support_pass *pass, const struct support_block *block,
                        const float *data);
int supports_rows_end(struct support_pass *pass, struct support_counts *counts);
void supports_rows_close(struct support_pass *pass); /* safe on NULL */
/* *bytes <- the memory that a check of a file of this shape needs if its rows go to a taker
 * (check.h). */
int supports_taking_bytes(const struct supports_shape *shape, gidx entries, gidx *bytes);

/* The properties that are known before routing: n rows with supports of s atoms out of k, each a
 * frame of d vectors of p columns. */
struct supports_shape {
  gidx n;
  idx k, s, d, p;
  int has_codes; /* 1: the file has codes; 0: scores only */
  int nonnegative;
  const char *encoder; /* name, in encoder_names[], of the encoder that chose the supports; rows
                        * then have at most s atoms.  NULL: no encoder; rows have exactly s atoms */
  int solved;          /* with an encoder: codes were solved for (N.24k); 0: they are the
                        * encoder's */
  const struct score_cuts *cuts; /* the score cuts (model/cuts.h) by which the supports were chosen
                                  * (N.58), complete when the file is finished; NULL: none;
                                  * borrowed */
};

/* supports.h5 being written. */
struct supports_output {
  struct result_file result;
  struct supports_shape shape;
  struct h5_array indices, score, data, codes; /* codes: d > 1 only */
  struct h5_array indptr;                      /* only if rows may have fewer than s atoms */
  struct support_sink sink;                    /* blocks of rows are written here, in order */
  float *summary;                              /* /supports/data of some chunks, for d > 1; owned */
  idx rounds;                                  /* of routing, used when ranks check rows */
  int has_slabs;                               /* 0: HDF5 chooses the places of chunks */
  struct h5_slabs slabs;                       /* of indices, score, data, codes (d > 1), indptr */
  struct support_counts counts;                /* of the rows that ranks have checked; owns
                                                * density */
  struct support_pass *pass; /* the check of the rows that this rank wrote since supports_rows_end()
                              * last gave counts; NULL: not begun; owned */
  struct worker checker;     /* the thread that checks rows while others are written; owned */
  gidx checked, taken;       /* rows below `checked` are checked; those below `taken` were given to
                              * the checker */
  gidx unchecked, unsynced;  /* bytes written since the checker last got rows, and since the last
                              * sync */
  struct phase hashing;      /* time spent on hashes, as part of writing */
};
/* Size on disk, an upper bound.  If rows may have all k atoms, entries are not counted. */
gidx supports_bytes(const struct supports_shape *shape);
int supports_output_create(struct supports_output *f, const char *path,
                           const struct supports_shape *shape);
/* The same for a part of the rows (part.h): shape is that of the part. */
int supports_part_create(struct supports_output *f, const char *path,
                         const struct supports_shape *shape);
/* Open the file that another rank has created at `name`, to write rows of it.  ERR_IO: this rank
 * cannot see the file. */
int supports_output_open(struct supports_output *f, const char *name,
                         const struct supports_shape *shape);
/* Create or open a growing file, which becomes an HDF5 file only at the end
 * (supports_growing_end()). supports_growing_create(): on rank 0, with disk space reserved for all
 * rows.  supports_growing_open(): the file that a stopped run left at `name` with the first `rows`
 * rows.  ERR_CREATE; ERR_IO; ERR_INPUT: the file is too short. */
int supports_growing_create(struct supports_output *f, const char *path,
                            const struct supports_shape *shape);
int supports_growing_open(struct supports_output *f, const char *path, const char *name,
                          const struct supports_shape *shape, gidx rows);
/* The same for a growing file at `name` that several jobs write (ranges.h); this job continues with
 * row `next`. */
int supports_growing_join(struct supports_output *f, const char *path, const char *name,
                          const struct supports_shape *shape, gidx next);
/* Rows of a segment (h5/slabs.h).  The range of a job begins at a multiple of this number.  0:
 * chunks of this shape have no fixed places in the file. */
gidx supports_segment_rows(const struct supports_shape *shape);
/* Write /supports/indptr for rows first .. end - 1 that this job has written, sync it and read it
 * again.  ERR_IO. */
int supports_offsets_write(struct supports_output *f, gidx first, gidx end);
/* Call this on rank 0 when all rows are written: the growing file becomes an HDF5 file of this
 * kind. supports_output_finish() follows. */
int supports_growing_end(struct supports_output *f, const struct file_kind *kind);
/* arrays <- the arrays of entries (all except indptr); returns their number. */
enum { SUPPORTS_ARRAYS = 4 };
int supports_output_arrays(struct supports_output *f, struct h5_array *arrays[SUPPORTS_ARRAYS]);
/* End the file early: it becomes a part (part.h) with the `rows` rows written so far. */
int supports_output_cut(struct supports_output *f, gidx rows);
/* Values that are complete after the last row. */
struct supports_ending {
  const struct metrics *metrics;
  const real *mean; /* [p], or NULL: nothing was subtracted */
  real rho;
  idx rounds;
  int normalized; /* the dictionary's atoms were scaled to unit norm first */
  gidx sweeps;    /* of refit; 0: not written */
  struct identity inputs, contents;
  const struct encode_part *part; /* for a part; NULL: no part */
};
/* Write what remains, and publish. */
int supports_output_finish(struct supports_output *f, const struct supports_ending *ending,
                           const struct run_fact *facts, int n_facts);
/* Give back what an unfinished file holds; safe after supports_output_finish() and on a zeroed
 * struct. */
void supports_output_close(struct supports_output *f);

#endif
