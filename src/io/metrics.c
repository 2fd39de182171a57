/* SPDX-License-Identifier: BSD-3-Clause
 * Writing, checking and printing all use the table metric_rows of model/results.h. */
#include "io/metrics.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/check.h"

enum { BAR_WIDTH = 40 };

/* A cosine may exceed 1 by this much, because of rounding. */
#define COSINE_SLACK 1e-3

static const struct object_row object_rows[] = {
    {"/metrics/density", TYPE_I64, "K", 1, "rows in whose support the atom is"},
    {"/metrics/density_histogram", TYPE_I64, "11", 1, "atoms by decade of density"},
};
const struct object_table metrics_objects = {object_rows, LENGTH(object_rows)};

/* out <- "NAME_formula", the name of the attribute with the formula of a metric. */
static void formula_name(const char *metric, char *out, size_t capacity)
{
  snprintf(out, capacity, "%s_formula", metric);
}

int metrics_write(const struct h5_file *h5, const struct metrics *m, int has_codes)
{
  char formula[128];
  for (int i = 0; i < metric_count; i++) {
    const struct metric_row *row = &metric_rows[i];
    if (row->needs_codes && !has_codes) continue;
    const char *value = (const char *)m + row->offset;
    if (row->is_integer)
      TRY(h5_attribute_long(h5, "/metrics", row->name, *(const gidx *)(const void *)value));
    else
      TRY(h5_attribute_real(h5, "/metrics", row->name, *(const real *)(const void *)value));
    formula_name(row->name, formula, sizeof formula);
    TRY(h5_attribute_text(h5, "/metrics", formula, row->formula));
  }
  TRY(object_write_vector(h5, "/metrics/density", m->k, m->density));
  TRY(object_write_vector(h5, "/metrics/density_histogram", DENSITY_BINS, m->density_histogram));
  TRY(h5_attribute_text(h5, "/metrics/density", "formula", density_formula));
  TRY(h5_attribute_text(h5, "/metrics/density_histogram", "formula", density_histogram_formula));
  return OK;
}

void metrics_json(const struct metrics *m, int has_codes, struct json *j)
{
  json_object(j, "metrics");
  for (int i = 0; i < metric_count; i++) {
    const struct metric_row *row = &metric_rows[i];
    const char *at = (const char *)m + row->offset;
    gidx whole;
    real value;
    if (row->needs_codes && !has_codes) continue;
    memcpy(&whole, at, sizeof whole);
    memcpy(&value, at, sizeof value);
    if (row->is_integer)
      json_long(j, row->name, whole);
    else
      json_real(j, row->name, value);
  }
  json_end(j);
}

static int same_bits(real a, real b)
{
  return memcmp(&a, &b, sizeof a) == 0;
}

/* Read a metric into its member of *m, and check its formula. */
static int metric_read(const struct verify *v, const struct metric_row *row, struct metrics *m)
{
  char name[128];
  char *at = (char *)m + row->offset;
  if (row->is_integer)
    TRY(h5_read_long(v->file, "/metrics", row->name, (gidx *)(void *)at));
  else {
    real value;
    TRY(h5_read_real(v->file, "/metrics", row->name, &value));
    CHECK(!isnan(value) || same_bits(value, nan_canonical()), ERR_INPUT,
          "metric '%s' is a NaN of other bits than 0x7ff8000000000000" ANEW, row->name);
    memcpy(at, &value, sizeof value);
  }
  formula_name(row->name, name, sizeof name);
  TRY(check_text(v, "/metrics", name, row->formula));
  return OK;
}

static int range_check(const char *name, real value, real min, real max)
{
  CHECK(isnan(value) || (value >= min && value <= max), ERR_INPUT,
        "metric '%s' is %.17g, not in %g .. %g" ANEW, name, value, min, max);
  return OK;
}

static int equal_check(const char *name, real value, real counted)
{
  CHECK(same_bits(value, counted), ERR_INPUT,
        "metric '%s' is %.17g, the rest of the file gives %.17g" ANEW, name, value, counted);
  return OK;
}

/* Check the metrics that need codes. */
static int fit_check(const struct metrics *m, const struct support_counts *counts)
{
  real nan = nan_canonical(), n = (real)counts->n;
  TRY(range_check("fvu", m->fvu, 0, INFINITY));
  TRY(equal_check("explained_variance", m->explained_variance, isnan(m->fvu) ? nan : 1 - m->fvu));
  TRY(range_check("mean_squared_error", m->mean_squared_error, 0, INFINITY));
  TRY(range_check("mean_cosine", m->mean_cosine, -1 - COSINE_SLACK, 1 + COSINE_SLACK));
  TRY(equal_check("l0", m->l0, counts->n ? (real)counts->nonzero / n : nan));
  return OK;
}

/* Report the first difference between an i64 array of the file and the counted numbers. */
static int counts_compare(const struct verify *v, const char *object, gidx count,
                          const gidx *counted)
{
  enum { PIECE = 4096 };
  gidx stored[PIECE];
  struct h5_array a;
  int status = h5_array_open(v->file, object, &a);
  for (gidx first = 0; first < count && status == OK; first += PIECE) {
    gidx n = imin(PIECE, count - first);
    status = h5_array_read(&a, first, n, TYPE_I64, stored);
    for (gidx i = 0; i < n && status == OK; i++)
      if (stored[i] != counted[first + i])
        status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                             "entry %lld of '%s' is %lld, the supports give %lld" ANEW,
                             (long long)(first + i), object, (long long)stored[i],
                             (long long)counted[first + i]);
  }
  h5_array_close(&a);
  return status;
}

int metrics_check(const struct verify *v, const struct support_counts *counts, int has_codes)
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
  TRY(check_text(v, "/metrics/density", "formula", density_formula));
  TRY(check_text(v, "/metrics/density_histogram", "formula", density_histogram_formula));
  check_note(v, "metrics   counted again from the supports, formulas as in the table");
  return OK;
}

static int attributes_print(const struct h5_file *f, FILE *out)
{
  fprintf(out, "\nmetrics\n");
  for (int i = 0; i < metric_count; i++) {
    const struct metric_row *row = &metric_rows[i];
    gidx whole;
    real value;
    int there;
    TRY(h5_attribute_exists(f, "/metrics", row->name, &there));
    if (!there) continue;
    if (row->is_integer) {
      TRY(h5_read_long(f, "/metrics", row->name, &whole));
      fprintf(out, "  %-*s %14lld  %s\n", NAME_WIDTH, row->name, (long long)whole, row->formula);
    } else {
      TRY(h5_read_real(f, "/metrics", row->name, &value));
      fprintf(out, "  %-*s %14.6g  %s\n", NAME_WIDTH, row->name, value, row->formula);
    }
  }
  return OK;
}

static int histogram_read(const struct h5_file *f, gidx *bins)
{
  struct h5_array a;
  int status = h5_array_open(f, "/metrics/density_histogram", &a);
  if (status == OK && (a.rank != 1 || a.shape[0] != DENSITY_BINS))
    status =
        status_fail(ERR_INPUT, __FILE__, __LINE__, "'%s' of '%s' does not have %d entries" ANEW,
                    a.object, f->path, DENSITY_BINS);
  if (status == OK) status = h5_array_read(&a, 0, DENSITY_BINS, TYPE_I64, bins);
  h5_array_close(&a);
  return status;
}

static int histogram_print(const struct h5_file *f, FILE *out)
{
  gidx bins[DENSITY_BINS], max = 1;
  TRY(histogram_read(f, bins));
  for (int i = 0; i < DENSITY_BINS; i++) max = imax(max, bins[i]);
  fprintf(out, "\natoms by the share of rows that they are in\n");
  for (int i = 0; i < DENSITY_BINS; i++) {
    char label[32], bar[BAR_WIDTH + 1];
    int length = bins[i] > 0 ? (int)((double)bins[i] / (double)max * (BAR_WIDTH - 1)) + 1 : 0;
    memset(bar, '#', sizeof bar);
    bar[length] = '\0';
    if (i == 0)
      snprintf(label, sizeof label, "never");
    else
      snprintf(label, sizeof label, "up to 1e%d", i - DENSITY_BINS + 1);
    fprintf(out, "  %-*s %14lld%s%s\n", NAME_WIDTH, label, (long long)bins[i], length ? "  " : "",
            bar);
  }
  return OK;
}

int metrics_show(const struct h5_file *f, FILE *out, const char **group)
{
  int there;
  TRY(h5_exists(f, "/metrics/density_histogram", &there));
  if (!there) return OK;
  TRY(attributes_print(f, out));
  TRY(histogram_print(f, out));
  *group = "/metrics";
  return OK;
}
