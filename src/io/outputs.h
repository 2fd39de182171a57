/* SPDX-License-Identifier: BSD-3-Clause
 * Result files: written under a temporary name, verified, then renamed, so that a file which exists
 * is complete.
 *
 * Floor: io.  Used by rank 0 alone; not collective.  Objects and types: doc/formats.md. */
#ifndef IO_OUTPUTS_H
#define IO_OUTPUTS_H

#include "base/types.h"
#include "io/h5.h"
#include "model/results.h"

/* Where a command writes: --output is a folder (created when missing), or a file when it ends in
 * ".h5". */
struct output_place {
  char file[4096], used[4096], log[4096]; /* result, deck, log */
};
/* name: of the result in the folder, "supports.h5".  ERR_CREATE when a file is there already and
 * force is 0, or the folder cannot be made or written. */
int output_place(struct output_place *place, const char *output, const char *name, int force);

/* One fact of a run, for /run: text, or a number when text is NULL. */
struct run_fact {
  const char *name, *text;
  real number;
};

/* A result being written. */
struct result_file {
  struct h5_file h5;
  char path[4096], temporary[4096];
};
/* Create the temporary file with root attributes format and format_version.  ERR_CREATE, also when
 * the folder's file system has less than `bytes` free. */
int result_create(struct result_file *r, const char *path, gidx bytes);
/* Write /run, close, reopen and verify every checksum and invariant, sync, rename, sync the
 * folder. */
int result_publish(struct result_file *r, const struct run_fact *facts, int n_facts);
/* Remove the temporary file of the result in progress, if any; safe at any time, for main. */
void result_discard(void);

/* supports.h5 */
struct supports_shape {
  gidx n;
  idx k, s, d, p;
  int has_codes;
};
struct supports_file {
  struct result_file result;
  struct supports_shape shape;
  struct h5_array indices, score, data, codes; /* codes: d > 1 only */
  struct support_sink sink;                    /* writes blocks of rows here */
  void *work;                                  /* owned */
};
gidx supports_bytes(const struct supports_shape *shape); /* on disk, estimated from above */
int supports_create(struct supports_file *f, const char *path, const struct supports_shape *shape);
/* Write indptr, metrics, density, mean (NULL: none), rho, rounds; publish. */
struct supports_ending {
  const struct metrics *metrics;
  const real *mean; /* [p] or NULL */
  real rho;
  idx rounds;
  gidx sweeps; /* of refit; 0: not written */
};
int supports_finish(struct supports_file *f, const struct supports_ending *ending,
                    const struct run_fact *facts, int n_facts);
/* Give back what an unfinished file holds; safe after supports_finish and on a zeroed struct. */
void supports_close(struct supports_file *f);

/* A matrix in a result file of its own: rows.h5 and dictionary.h5, written in blocks. */
struct matrix_file {
  struct result_file result;
  struct h5_array array;
};
int rows_create(struct matrix_file *f, const char *path, gidx n, idx p);
int dictionary_create(struct matrix_file *f, const char *path, idx k, idx d, idx p);
int matrix_write(struct matrix_file *f, gidx first, gidx count, const float *values);
/* Add a further array of the file before it is published: real [n] (/mean) or others. */
int matrix_add(struct matrix_file *f, const char *object, enum h5_type type, int rank,
               const gidx *shape, const void *values);
int matrix_finish(struct matrix_file *f, const struct run_fact *facts, int n_facts);
/* As supports_close. */
void matrix_close(struct matrix_file *f);

#endif
