/* SPDX-License-Identifier: BSD-3-Clause
 * The metrics of supports.h5: attributes of /metrics with a formula beside each, and densities.
 *
 * Floor: io.  Not collective.  What the metrics are: model/results.h. */
#ifndef IO_METRICS_H
#define IO_METRICS_H

#include "io/schema.h"
#include "model/results.h"

extern const struct object_table metrics_objects;

/* Write all metrics; without codes, those that do not need them. */
int metrics_write(const struct h5_file *h5, const struct metrics *m, int has_codes);

/* What one pass over /supports counts. */
struct support_counts {
  gidx n, nnz, nonzero; /* rows, entries, entries with a code that is not 0 */
  idx k;
  gidx *density;   /* [k] rows that have the atom; borrowed */
  int has_offsets; /* those of rows were checked too, and each row has top-s entries */
};
/* Check the metrics against the counts: what follows from them has its exact bits, the others are
 * in their range, and every formula is the one of model/results.h. */
int metrics_check(const struct verify *v, const struct support_counts *counts, int has_codes);

/* Print the metrics and a bar for each decade of density; as in struct file_kind. */
int metrics_show(const struct h5_file *f, FILE *out, const char **group);

#endif
