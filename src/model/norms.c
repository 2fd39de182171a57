/* SPDX-License-Identifier: BSD-3-Clause
 * The exponent and the first bits of a square determine its bin. */
#include "model/norms.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"

enum { BIAS = 1023, BITS = 52, KEPT = 23, PART_BITS = 3, LANES = 8 };

_Static_assert(1 << PART_BITS == NORM_PARTS, "bins are the first bits of a significand");

static int bin_of(uint64_t bits)
{
  gidx bin = (gidx)(bits >> (BITS - PART_BITS)) - (BIAS - NORM_SPAN) * NORM_PARTS;
  return (int)imax(0, imin(bin, NORM_BINS - 1));
}

void norms_add(struct norms *n, real square)
{
  uint64_t bits;
  memcpy(&bits, &square, sizeof bits);
  int bin = bin_of(bits);
  uint64_t part = (bits & (((uint64_t)1 << BITS) - 1)) >> (BITS - KEPT);
  n->count[bin]++;
  if (bin) n->sum[bin] += (gidx)(part | (uint64_t)1 << KEPT);
}

real norms_square(const float *x, idx p, const real *k)
{
  real lane[LANES] = {0}, square = 0;
  for (idx c = 0; c < p; c++) {
    real t = x[c] - (k ? k[c] : 0);
    lane[c % LANES] += t * t;
  }
  for (int l = 0; l < LANES; l++) square += lane[l];
  return square;
}

void norms_rows(struct norms *n, const float *x, gidx count, idx p, const real *k)
{
  for (gidx i = 0; i < count; i++) norms_add(n, norms_square(x + i * p, p, k));
}

void norms_join(struct norms *n, const struct norms *more)
{
  for (int b = 0; b < NORM_BINS; b++) {
    n->count[b] += more->count[b];
    n->sum[b] += more->sum[b];
  }
}

gidx norms_used(const struct norms *n)
{
  gidx used = 0;
  for (int b = 0; b < NORM_BINS; b++) used += n->count[b] != 0;
  return used;
}

void norms_pack(const struct norms *n, gidx *packed)
{
  for (int b = 0; b < NORM_BINS; b++) {
    if (!n->count[b]) continue;
    *packed++ = b;
    *packed++ = n->count[b];
    *packed++ = n->sum[b];
  }
}

int norms_unpack(struct norms *n, const gidx *packed, gidx used)
{
  *n = (struct norms){0};
  for (gidx i = 0; i < used; i++, packed += 3) {
    int is_one = packed[0] >= 0 && packed[0] < NORM_BINS && packed[1] > 0 && packed[2] >= 0;
    if (!is_one || n->count[packed[0]]) return 0;
    n->count[packed[0]] = packed[1];
    n->sum[packed[0]] = packed[2];
  }
  return 1;
}

/* The sum of bins first .. NORM_BINS - 1, ascending. */
static real sum_from(const struct norms *n, int first)
{
  real sum = 0;
  for (int b = first; b < NORM_BINS; b++)
    if (n->sum[b]) sum += ldexp((real)n->sum[b], b / NORM_PARTS - NORM_SPAN - KEPT);
  return sum;
}

real norms_total(const struct norms *n)
{
  return sum_from(n, 1);
}

/* The bin of the median row, where rows of zeros do not count; NORM_BINS if there is none. */
static int median_bin(const struct norms *n)
{
  gidx before = 0, half = 0;
  int median = 1;
  for (int b = 1; b < NORM_BINS; b++) half += n->count[b];
  half = (half + 1) / 2;
  while (median < NORM_BINS && (before += n->count[median]) < half) median++;
  return half ? median : NORM_BINS;
}

real norms_bound(const struct norms *n, real multiple)
{
  int bin = median_bin(n);
  real part = 1 + (real)(bin % NORM_PARTS) / NORM_PARTS;
  return bin < NORM_BINS ? multiple * multiple * ldexp(part, bin / NORM_PARTS - NORM_SPAN)
                         : (real)INFINITY;
}

real norms_fraction(const struct norms *n, real bound)
{
  uint64_t bits;
  memcpy(&bits, &bound, sizeof bits);
  real total = norms_total(n);
  return total > 0 && isfinite(bound) ? sum_from(n, bin_of(bits)) / total : 0;
}

struct massive_rows norms_massive(const struct norms *n)
{
  struct massive_rows m = {0};
  /* MASSIVE_NORM^2 = 2^6 is six octaves */
  int octaves = 2 * 3, first = median_bin(n) + octaves * NORM_PARTS;
  real bound = norms_bound(n, 1);
  for (int b = 0; b < NORM_BINS; b++) m.all += n->count[b];
  if (isfinite(bound)) m.median = sqrt(bound);
  if (first >= NORM_BINS) return m;
  for (int b = first; b < NORM_BINS; b++) m.rows += n->count[b];
  m.share = m.rows ? sum_from(n, first) / norms_total(n) : 0;
  return m;
}

void norms_warn(const struct massive_rows *m, const char *what)
{
  static const real LEAST_SHARE = 0.25;
  if (!(m->share >= LEAST_SHARE) || 10 * m->rows > m->all) return;
  log_warn_named(
      "massive-rows",
      "of %s, %lld of %lld are massive: %d times the norm of the median row or more, with %.4g "
      "of all squares; what is explained is mostly theirs: `--max-norm 8` of fit and train leaves "
      "them out",
      what, (long long)m->rows, (long long)m->all, MASSIVE_NORM, m->share);
}
