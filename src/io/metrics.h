/* SPDX-License-Identifier: BSD-3-Clause
 * The metrics of supports.h5: attributes of /metrics, each with an attribute for its formula, and
 * the densities of atoms.
 *
 * Floor: io.  Not collective.  model/results.h defines the metrics. */
#ifndef IO_METRICS_H
#define IO_METRICS_H

#include "base/json.h"
#include "io/schema.h"
#include "model/results.h"

extern const struct object_table metrics_objects;

/* Write all metrics; without has_codes write only the metrics that need no codes. */
int metrics_write(const struct h5_file *h5, const struct metrics *m, int has_codes);
/* Add the same metrics as an entry "metrics" of the open JSON object. */
void metrics_json(const struct metrics *m, int has_codes, struct json *j);

/* What one pass over /supports counts. */
struct support_counts {
  gidx n, nnz, nonzero; /* rows, entries, entries with a code that is not 0 */
  idx k;
  gidx *density;   /* [k] rows that have the atom; borrowed */
  int has_offsets; /* /supports/indptr was checked too, and each row has s entries */
};
/* Check the metrics against the counts: metrics that follow from the counts must have the exact
 * bits, the others must be in their range, and every formula must be that of model/results.h. */
int metrics_check(const struct verify *v, const struct support_counts *counts, int has_codes);

/* Print the metrics, and a bar for each decade of density.  This is a show_below() of struct
 * file_kind. */
int metrics_show(const struct h5_file *f, FILE *out, const char **group);

#endif
