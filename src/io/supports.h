/* SPDX-License-Identifier: BSD-3-Clause
 * Supports and codes: supports.h5, and any CSR matrix as input.
 *
 * Floor: io.  Reading is not collective: every rank opens the file itself and reads its own part.
 * Rank 0 alone writes. */
#ifndef IO_SUPPORTS_H
#define IO_SUPPORTS_H

#include "io/identity.h"
#include "io/outputs.h"
#include "io/schema.h"
#include "model/part.h"
#include "model/results.h"
#include "model/supports.h"

extern const struct file_kind supports_kind;
extern const struct object_table supports_objects;
int supports_check(struct verify *v); /* supports_check.c */

/* Check the shape[2] of a CSR matrix, an attribute with no data behind it, before memory is taken
 * for it.  ERR_INPUT when a number is out of range, or when there are far more atoms than entries
 * and no densities are stored for them. */
int supports_shape_check(const struct h5_file *f, const gidx *shape, gidx entries);

/* What is known before routing: n rows with supports of s atoms out of k, each a frame of d vectors
 * of p columns. */
struct supports_shape {
  gidx n;
  idx k, s, d, p;
  int has_codes; /* codes are solved, not only scores known */
  int nonnegative;
  const char *encoder; /* kind of the imported encoder whose codes they are, of encoder_names[]:
                        * rows have up to s atoms; NULL: none, they have s */
};

/* supports.h5 being written. */
struct supports_output {
  struct result_file result;
  struct supports_shape shape;
  struct h5_array indices, score, data, codes; /* codes: d > 1 only */
  struct h5_array indptr;                      /* where rows may have fewer than s atoms */
  struct support_sink sink;                    /* blocks of rows are written here, in order */
  float *summary;                              /* `data` of a chunk of frames; owned */
  struct phase hashing;                        /* what the hashes took, as part of writing */
};
gidx supports_bytes(const struct supports_shape *shape); /* size on disk, estimated from above */
int supports_output_create(struct supports_output *f, const char *path,
                           const struct supports_shape *shape);
/* The same for a part of the rows (part.h): shape is that of the part. */
int supports_part_create(struct supports_output *f, const char *path,
                         const struct supports_shape *shape);
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

/* Supports named on the command line. */
struct supports_input {
  struct support_source source;
  const char *file;    /* borrowed: the name without /group */
  idx top_s, rounds;   /* as the file says; of a foreign file -1 and 1 */
  const char *encoder; /* as in supports_shape */
  int nonnegative;     /* as the file says: codes are at least 0; 0 when it does not say */
  real rho;            /* penalty with which the codes were solved; 0 when the file does not say */
  real *mean;          /* [mean_length] subtracted from the rows; NULL: nothing was; owned */
  gidx mean_length;
  gidx sweeps;                        /* of refit so far */
  struct identity inputs;             /* that the codes were solved for, where the file says it;
                                       * a dictionary that was scaled first is not */
  struct identity contents;           /* of a refit, with the dictionary that it belongs to */
  real explained_variance;            /* as the file says; NaN when it does not */
  struct supports_input_state *state; /* owned */
};
/* Open FILE[:/GROUP], a CSR matrix as encode, scipy or AnnData write it; the default is /supports.
 * ERR_IO: cannot open; ERR_INPUT: no such group, missing or wrong arrays or attributes, damaged. */
int supports_input_open(struct supports_input *f, const char *name);
/* The same for a file that may be a part, which the other refuses; for part.c. */
int supports_part_open(struct supports_input *f, const char *name);
/* *encoder <- the kind of the encoder whose codes a file has, as in supports_shape. */
int supports_encoder_read(const struct h5_file *f, const char **encoder);
/* Has the file a score beside each code? */
int supports_have_scores(const struct supports_input *f);
const struct h5_file *supports_input_file(const struct supports_input *f);
void supports_input_close(struct supports_input *f);

#endif
