/* SPDX-License-Identifier: BSD-3-Clause
 * truth.h5: the features of a synthetic world, and which of them fire in each row.
 *
 * Floor: io.  Used by rank 0 alone; not collective.
 *
 * /truth is a CSR matrix like supports, and /truth/features is a dictionary, so that the readers of
 * supports and dictionaries read them too. */
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
  struct support_sink sink; /* blocks of rows are written here in order; they must have `start` */
};
/* Create truth.h5 for n rows of a world, and write its features vectors[f][p]. */
int truth_output_create(struct truth_output *t, const char *path, const struct world *w, gidx n,
                        const float *vectors);
/* Publish; rows_hash: the hash of the rows (model/identity.h). */
int truth_output_finish(struct truth_output *t, uint64_t rows_hash, const struct run_fact *facts,
                        int n_facts);

#endif
