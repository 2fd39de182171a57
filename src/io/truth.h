/* SPDX-License-Identifier: BSD-3-Clause
 * truth.h5: the features of a synthetic world, and which of them fire in each row.
 *
 * Floor: io.  Used by rank 0 alone; not collective.
 *
 * /truth is a CSR matrix as supports are, and /truth/features a dictionary, so that the readers of
 * both take them. */
#ifndef IO_TRUTH_H
#define IO_TRUTH_H

#include "io/outputs.h"
#include "io/schema.h"
#include "model/results.h"
#include "model/world.h"

#define TRUTH_GROUP "/truth"
#define TRUTH_FEATURES TRUTH_GROUP "/features"

extern const struct file_kind truth_kind;

struct truth_output {
  struct result_file result;
  struct h5_array indptr, indices, data;
  struct support_sink sink; /* blocks of rows with `start` are written here, in order */
};
/* Create truth.h5 for n rows of a world, whose vectors[f][p] are written at once. */
int truth_output_create(struct truth_output *t, const char *path, const struct world *w, gidx n,
                        const float *vectors);
/* Publish; rows_hash: of the rows that it is the truth of (model/identity.h). */
int truth_output_finish(struct truth_output *t, uint64_t rows_hash, const struct run_fact *facts,
                        int n_facts);

#endif
