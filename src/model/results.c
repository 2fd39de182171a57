/* SPDX-License-Identifier: BSD-3-Clause
 * The table of metrics: names and formulas are here only, for files and reports. */
#include "model/results.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/num.h"

#define AT(member) offsetof(struct metrics, member)

const struct metric_row metric_rows[] = {
    {"explained_variance",
     "1 - RSS / TSS; RSS = sum of e^2, e = x - sum_j c_j d_j; TSS about the column means", 0, 1,
     AT(explained_variance)},
    {"fvu", "RSS / TSS, the fraction of variance unexplained", 0, 1, AT(fvu)},
    {"mean_squared_error", "RSS / (N P)", 0, 1, AT(mean_squared_error)},
    {"mean_cosine", "mean over rows of <x, y> / (|x| |y|), y = sum_j c_j d_j; 0 where either is 0",
     0, 1, AT(mean_cosine)},
    {"l0", "mean over rows of the number of support atoms whose code is not 0", 0, 1, AT(l0)},
    {"negative_codes", "share of the codes, of frames of their entries, that are less than 0", 0, 1,
     AT(negative_codes)},
    {"zero_codes", "share of the codes, of frames of their entries, that are 0", 0, 1,
     AT(zero_codes)},
    {"dead_atoms", "atoms that are in no row's support", 1, 0, AT(dead_atoms)},
    {"density_above_1pct", "share of atoms that are in the support of more than 1 % of the rows", 0,
     0, AT(density_above_1pct)},
    {"density_above_10pct", "share of atoms that are in the support of more than 10 % of the rows",
     0, 0, AT(density_above_10pct)},
    {"max_decoder_cosine",
     "largest |<d_a, d_b>| of two atoms, f32 chain (frames: largest norm of a vector's projection "
     "on "
     "another frame)",
     0, 0, AT(max_decoder_cosine)},
};
const int metric_count = (int)(sizeof metric_rows / sizeof metric_rows[0]);

const char density_formula[] = "number of rows in whose support the atom is";
const char density_histogram_formula[] =
    "atoms by density: never; then the decades up to and including 1e-9, 1e-8, .. 1e-1 and 1";

/* Bin 0 is for atoms in no row; bin b = 1 .. 10 for densities above 10^(b - 11) up to 10^(b - 10),
 * bin 1 also for all smaller ones. */
static int density_bin(gidx count, gidx n)
{
  if (count == 0) return 0;
  int bin = DENSITY_BINS - 1;
  for (real scaled = 10.0 * (real)count; scaled <= (real)n && bin > 1; scaled *= 10) bin--;
  return bin;
}

void metrics_density(struct metrics *m, const gidx *density, gidx n, idx k)
{
  gidx above_1 = 0, above_10 = 0;
  m->n = n;
  m->k = k;
  m->density = density;
  m->dead_atoms = 0;
  memset(m->density_histogram, 0, sizeof m->density_histogram);
  for (idx a = 0; a < k; a++) {
    m->dead_atoms += density[a] == 0;
    above_1 += density[a] > n / 100;
    above_10 += density[a] > n / 10;
    m->density_histogram[density_bin(density[a], n)]++;
  }
  m->density_above_1pct = k ? (real)above_1 / k : nan_canonical();
  m->density_above_10pct = k ? (real)above_10 / k : nan_canonical();
}

void metrics_fit(struct metrics *m, real rss, real tss, real cosines, gidx nonzero)
{
  real nan = nan_canonical();
  m->fvu = tss > 0 ? rss / tss : nan;
  m->explained_variance = tss > 0 ? 1 - rss / tss : nan;
  m->mean_squared_error = m->n ? rss / ((real)m->n * m->p) : nan;
  m->mean_cosine = m->n ? cosines / (real)m->n : nan;
  m->l0 = m->n ? (real)nonzero / (real)m->n : nan;
}

void metrics_rows(struct metrics *m, const struct norms *norms, real tss)
{
  real total = norms ? norms_total(norms) : 0;
  m->mean_fraction = total > 0 ? fmax(0, 1 - tss / total) : nan_canonical();
  m->massive = norms ? norms_massive(norms) : (struct massive_rows){0};
}

void codes_count(struct code_counts *c, const float *codes, gidx count)
{
  gidx negative = 0, zero = 0;
  for (gidx i = 0; i < count; i++) {
    negative += codes[i] < 0;
    zero += codes[i] == 0;
  }
  c->all += count;
  c->negative += negative;
  c->zero += zero;
}

void metrics_codes(struct metrics *m, const struct code_counts *c)
{
  m->negative_codes = c->all ? (real)c->negative / (real)c->all : nan_canonical();
  m->zero_codes = c->all ? (real)c->zero / (real)c->all : nan_canonical();
}
