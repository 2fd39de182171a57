/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of nonnegative codes (N.5n), for any vector width.  They are the active-set method of
 * codes_nonnegative_reference(), but pack the equations of each set without gaps.
 *
 * Floor: device.  A unit (isa.h) includes this after codes_body.h.
 *
 * Chains leave out the vectors that are not in the set, so packing does not change a bit. */
#include <math.h>
#include <string.h>

/* Pack the equations of members old .. old + count - 1 of the set for codes_factor(). */
static void nonnegative_pack(const struct nonnegative_job *n, idx old, idx count)
{
  const struct nonnegative_work *w = n->work;
  for (idx k = 0; k < old + count; k++) {
    const real *g = n->g + (gidx)w->member[k] * n->stride;
    real *a = w->a + (gidx)k * CODES_CHUNK;
    for (idx i = 0; i < CODES_CHUNK; i++) a[i] = i < count ? g[w->member[old + i]] : 0;
  }
  for (idx i = 0; i < CODES_CHUNK; i++) w->b[i] = i < count ? n->b[w->member[old + i]] : 0;
}

/* z <- the solution for the vectors in the set, and 0 for others.  A vector whose pivot is too
 * small is removed from the set. */
static void nonnegative_solve(const struct nonnegative_job *n, idx *in, real *z)
{
  const struct nonnegative_work *w = n->work;
  idx members = 0;
  for (idx j = 0; j < n->m; j++)
    if (in[j]) w->member[members++] = j;
  for (idx old = 0; old < members; old += CODES_CHUNK) {
    idx count = members - old < CODES_CHUNK ? members - old : CODES_CHUNK;
    nonnegative_pack(n, old, count);
    codes_factor(&(struct factor_job){.old = old,
                                      .count = count,
                                      .rho = n->rho,
                                      .a = w->a,
                                      .b = w->b,
                                      .l = w->l,
                                      .y = w->y,
                                      .kept = w->kept});
  }
  codes_back(w->l, w->y, w->kept, members, w->packed, w->back);
  memset(z, 0, (size_t)n->m * sizeof *z);
  for (idx k = 0; k < members; k++) {
    z[w->member[k]] = w->packed[k];
    in[w->member[k]] = w->kept[k];
  }
}

static real nonnegative_reach(const real *x, const real *z, idx j)
{
  return x[j] > 0 ? x[j] / (x[j] - z[j]) : 0;
}

static void nonnegative_settle(const struct nonnegative_job *n, idx *in, real *x)
{
  real *z = n->work->z;
  for (;;) {
    real step = 1;
    int blocked = 0;
    nonnegative_solve(n, in, z);
    for (idx j = 0; j < n->m; j++) {
      if (!in[j] || z[j] > 0) continue;
      blocked = 1;
      step = fmin(step, nonnegative_reach(x, z, j));
    }
    for (idx j = 0; j < n->m; j++) {
      if (in[j] && blocked && !(z[j] > 0) && !(nonnegative_reach(x, z, j) > step)) in[j] = 0;
      x[j] = !in[j] ? 0 : blocked ? fmax(fma(step, z[j] - x[j], x[j]), 0) : z[j];
    }
    if (!blocked) return;
  }
}

static real nonnegative_gain(const struct nonnegative_job *n, const real *x)
{
  real gain = 0;
  for (idx j = 0; j < n->m; j++)
    if (x[j] > 0) gain = fma(n->b[j], x[j], gain);
  return gain;
}

/* Returns the vector that joins the set next, or -1.  Lanes are vectors; chains run over the
 * set. */
static idx nonnegative_next(const struct nonnegative_job *n, const idx *in, const idx *refused,
                            const real *x)
{
  real *slope = n->work->slope, *size = n->work->size, most = 0;
  idx best = -1;
  for (idx j = 0; j < n->stride; j++) {
    slope[j] = j < n->m ? n->b[j] : 0;
    size[j] = fabs(slope[j]);
  }
  for (idx k = 0; k < n->m; k++) {
    if (!in[k]) continue;
    f64v code = f64_splat(x[k]), less = f64_splat(-x[k]);
    const real *g = n->g + (gidx)k * n->stride;
    for (idx j = 0; j < n->stride; j += F64_LANES) {
      f64v v = f64_load(g + j), positive = (f64v)((i64v)v & INT64_MAX);
      f64_store(slope + j, f64_fma(v, less, f64_load(slope + j)));
      f64_store(size + j, f64_fma(positive, code, f64_load(size + j)));
    }
  }
  for (idx j = 0; j < n->m; j++) {
    if (in[j] || refused[j] || !(slope[j] > SLOPE_TOLERANCE * size[j] && slope[j] > most)) continue;
    most = slope[j];
    best = j;
  }
  return best;
}

static void nonnegative_codes(const struct nonnegative_job *n)
{
  const struct nonnegative_work *w = n->work;
  real *x = n->codes, *try_x = w->try_x;
  size_t flags = (size_t)n->m * sizeof(idx), reals = (size_t)n->m * sizeof(real);
  memcpy(w->in, n->kept, flags);
  memset(x, 0, reals);
  memset(w->refused, 0, flags);
  nonnegative_settle(n, w->in, x);
  for (idx j; (j = nonnegative_next(n, w->in, w->refused, x)) >= 0;) {
    memcpy(w->try_in, w->in, flags);
    memcpy(try_x, x, reals);
    w->try_in[j] = 1;
    nonnegative_settle(n, w->try_in, try_x);
    w->refused[j] = 1;
    if (!(nonnegative_gain(n, try_x) > nonnegative_gain(n, x))) continue;
    memset(w->refused, 0, flags);
    memcpy(w->in, w->try_in, flags);
    memcpy(x, try_x, reals);
  }
}

static const struct codes_loops codes_table = {
    .gram = codes_gram,
    .factor = codes_factor,
    .back = codes_back,
    .nonnegative = nonnegative_codes,
    .residual = codes_residual,
    .quality = codes_quality,
};
