/* SPDX-License-Identifier: BSD-3-Clause
 * Metrics that follow from the supports must have their exact bits, the others their range; every
 * formula must be the one of the table. */
#include "io/verify.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/results.h"

/* What rounding may add to a cosine. */
#define COSINE_SLACK 1e-3

static int same_bits(real a, real b)
{
  return memcmp(&a, &b, sizeof a) == 0;
}

static int metric_read(const struct verify *v, const struct metric_row *row, struct metrics *m)
{
  char name[128];
  char *at = (char *)m + row->offset;
  if (row->is_integer)
    TRY(h5_read_long(v->file, "/metrics", row->name, (gidx *)(void *)at));
  else {
    real value;
    TRY(h5_read_real(v->file, "/metrics", row->name, &value));
    CHECK(!isnan(value) || same_bits(value, canonical_nan()), ERR_INPUT,
          "metric '%s' is a NaN of other bits than 0x7ff8000000000000", row->name);
    memcpy(at, &value, sizeof value);
  }
  metric_formula_name(row->name, name, sizeof name);
  TRY(verify_text(v, "/metrics", name, row->formula));
  return OK;
}

static int range_check(const char *name, real value, real least, real most)
{
  CHECK(isnan(value) || (value >= least && value <= most), ERR_INPUT,
        "metric '%s' is %.17g, not in %g .. %g", name, value, least, most);
  return OK;
}

static int equal_check(const char *name, real value, real counted)
{
  CHECK(same_bits(value, counted), ERR_INPUT,
        "metric '%s' is %.17g, the rest of the file gives %.17g", name, value, counted);
  return OK;
}

static int fit_check(const struct metrics *m, const struct support_counts *counts)
{
  real nan = canonical_nan(), n = (real)counts->n;
  TRY(range_check("fvu", m->fvu, 0, INFINITY));
  TRY(equal_check("explained_variance", m->explained_variance, isnan(m->fvu) ? nan : 1 - m->fvu));
  TRY(range_check("mean_squared_error", m->mean_squared_error, 0, INFINITY));
  TRY(range_check("mean_cosine", m->mean_cosine, -1 - COSINE_SLACK, 1 + COSINE_SLACK));
  TRY(equal_check("l0", m->l0, counts->n ? (real)counts->nonzero / n : nan));
  return OK;
}

/* The first difference between an i64 array of the file and what was counted. */
static int counts_compare(const struct verify *v, const char *object, gidx count,
                          const gidx *counted)
{
  enum { PIECE = 4096 };
  gidx stored[PIECE];
  struct h5_array a;
  int status = h5_array_open(v->file, object, &a);
  for (gidx first = 0; first < count && status == OK; first += PIECE) {
    gidx n = count - first < PIECE ? count - first : PIECE;
    status = h5_array_read(&a, first, n, TYPE_I64, stored);
    for (gidx i = 0; i < n && status == OK; i++)
      if (stored[i] != counted[first + i])
        status = status_fail(
            ERR_INPUT, __FILE__, __LINE__, "entry %lld of '%s' is %lld, the supports give %lld",
            (long long)(first + i), object, (long long)stored[i], (long long)counted[first + i]);
  }
  h5_array_close(&a);
  return status;
}

int verify_metrics(const struct verify *v, const struct support_counts *counts, int has_codes)
{
  struct metrics m = {0}, counted = {0};
  metrics_density(&counted, counts->density, counts->n, counts->k);
  for (int i = 0; i < metric_count; i++)
    if (has_codes || !metric_rows[i].needs_codes) TRY(metric_read(v, &metric_rows[i], &m));
  if (has_codes) TRY(fit_check(&m, counts));
  TRY(equal_check("dead_atoms", (real)m.dead_atoms, (real)counted.dead_atoms));
  TRY(equal_check("density_above_1pct", m.density_above_1pct, counted.density_above_1pct));
  TRY(equal_check("density_above_10pct", m.density_above_10pct, counted.density_above_10pct));
  TRY(range_check("max_decoder_cosine", m.max_decoder_cosine, 0, 1 + COSINE_SLACK));
  TRY(counts_compare(v, "/metrics/density", counts->k, counts->density));
  TRY(counts_compare(v, "/metrics/density_histogram", DENSITY_BINS, counted.density_histogram));
  TRY(verify_text(v, "/metrics/density", "formula", density_formula));
  TRY(verify_text(v, "/metrics/density_histogram", "formula", density_histogram_formula));
  verify_note(v, "metrics   counted again from the supports, formulas as in the table");
  return OK;
}
