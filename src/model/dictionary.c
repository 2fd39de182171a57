/* SPDX-License-Identifier: BSD-3-Clause
 * Norms and inner products are summed in f64, column after column. */
#include "model/dictionary.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "base/sums.h"
#include "model/rows.h"

enum { ABREAST = 4 }; /* vectors that are scaled, or frames that are checked, together */

static int array_read(void *self, idx first, idx count, float *out)
{
  const struct atom_array *a = self;
  gidx frame = (gidx)a->d * a->p;
  memcpy(out, a->values + first * frame, (size_t)(count * frame) * sizeof *out);
  return OK;
}

struct atom_source atom_array_source(const struct atom_array *a, const char *name)
{
  return (struct atom_source){
      .k = a->k, .d = a->d, .p = a->p, .name = name, .self = (void *)a, .read = array_read};
}

idx tiling_owner(const struct tiling *t, idx atom)
{
  return atom / t->width % t->workers;
}

idx tiling_slot(const struct tiling *t, idx atom)
{
  return atom / t->width / t->workers * t->width + atom % t->width;
}

idx tiling_local(const struct tiling *t, idx worker)
{
  gidx tiles = ((gidx)t->k + t->width - 1) / t->width;
  gidx mine = tiles / t->workers + (worker < tiles % t->workers);
  gidx held = mine * t->width;
  int has_last = tiles > 0 && (tiles - 1) % t->workers == worker;
  return (idx)(has_last ? held - (tiles * t->width - t->k) : held);
}

idx tiling_atom(const struct tiling *t, idx worker, idx slot)
{
  gidx tile = (gidx)(slot / t->width) * t->workers + worker;
  return (idx)(tile * t->width + slot % t->width);
}

static real dot(const float *a, const float *b, idx p)
{
  real sum = 0;
  for (idx c = 0; c < p; c++) sum += (real)a[c] * b[c];
  return sum;
}

/* sums <- dot() of four pairs of vectors, `stride` apart.  With a single pair, every addition would
 * wait for the addition before it. */
static void dot_four(const float *a, const float *b, gidx stride, idx p, real sums[ABREAST])
{
  real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (idx c = 0; c < p; c++) {
    s0 += (real)a[c] * b[c];
    s1 += (real)a[stride + c] * b[stride + c];
    s2 += (real)a[2 * stride + c] * b[2 * stride + c];
    s3 += (real)a[3 * stride + c] * b[3 * stride + c];
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

/* Scale a vector; returns 0 if its norm is 0 or not finite. */
static int vector_scale(float *vector, idx p, real square)
{
  real norm = sqrt(square);
  if (!isfinite(norm) || norm == 0) return 0;
  for (idx c = 0; c < p; c++) vector[c] = (float)(vector[c] / norm);
  return 1;
}

int atoms_normalize(float *atoms, idx count, idx d, idx p)
{
  gidx v = 0, vectors = (gidx)count * d;
  int all = 1;
  for (; v + ABREAST <= vectors; v += ABREAST) {
    float *four = atoms + v * p;
    real squares[ABREAST];
    dot_four(four, four, p, p, squares);
    for (int i = 0; i < ABREAST; i++) all &= vector_scale(four + (gidx)i * p, p, squares[i]);
  }
  for (; v < vectors; v++)
    all &= vector_scale(atoms + v * p, p, dot(atoms + v * p, atoms + v * p, p));
  return all;
}

static int atom_check(const float *frame, idx d, idx p, long long atom, const char *name)
{
  for (idx m = 0; m < d; m++)
    for (idx c = 0; c < p; c++)
      CHECK(isfinite(frame[(gidx)m * p + c]), ERR_INPUT, "atom %lld, column %d of '%s' is %g", atom,
            c, name, (double)frame[(gidx)m * p + c]);
  for (idx m = 0; m < d; m++) {
    real norm = sqrt(dot(frame + (gidx)m * p, frame + (gidx)m * p, p));
    CHECK(
        fabs(norm - 1) <= UNIT_TOLERANCE, ERR_INPUT,
        "atom %lld of '%s' has norm %.6g, not 1: scale atoms, which have a row each, to norm 1, as "
        "--normalize of encode, route and compare does",
        atom, name, norm);
  }
  for (idx m = 0; m < d; m++)
    for (idx l = 0; l < m; l++) {
      real cosine = dot(frame + (gidx)m * p, frame + (gidx)l * p, p);
      CHECK(fabs(cosine) <= UNIT_TOLERANCE, ERR_INPUT,
            "vectors %d and %d of frame %lld of '%s' have cosine %.6g: a frame must be orthonormal",
            l, m, atom, name, cosine);
    }
  return OK;
}

int columns_check(const struct row_source *rows, const struct atom_source *atoms)
{
  const char *mend = atoms->d == 1 && atoms->k == rows->p
                         ? "is the dictionary transposed?  An atom is a row: save it as atoms.T"
                     : rows->n == atoms->p
                         ? "are the rows transposed?  A sample is a row: save them as rows.T"
                         : "give activations of the place that the dictionary was made for, or "
                           "their dictionary";
  CHECK(rows->p == atoms->p, ERR_INPUT, "'%s' has %d columns, the atoms of '%s' have %d: %s",
        rows->name, rows->p, atoms->name, atoms->p, mend);
  return OK;
}

/* Would atom_check() accept these four frames?  A value that is not finite gives no norm of 1. */
static int are_frames(const float *frames, idx d, idx p)
{
  for (idx m = 0; m < d; m++)
    for (idx l = 0; l <= m; l++) {
      real sums[ABREAST];
      dot_four(frames + (gidx)m * p, frames + (gidx)l * p, (gidx)d * p, p, sums);
      for (int i = 0; i < ABREAST; i++)
        if (!(fabs(l == m ? sqrt(sums[i]) - 1 : sums[i]) <= UNIT_TOLERANCE)) return 0;
    }
  return 1;
}

int atoms_check(const float *atoms, idx count, idx d, idx p, idx first, const char *name)
{
  for (idx a = 0, n; a < count; a += n) {
    const float *frames = atoms + (gidx)a * d * p;
    n = count - a < ABREAST ? count - a : ABREAST;
    if (n == ABREAST && are_frames(frames, d, p)) continue;
    for (idx i = 0; i < n; i++)
      TRY(atom_check(frames + (gidx)i * d * p, d, p, (long long)first + a + i, name));
  }
  return OK;
}

idx frame_orthonormalize(real *frame, idx d, idx p)
{
  for (idx m = 0; m < d; m++) {
    real *v = frame + (gidx)m * p;
    real before = sqrt(lane_product(v, v, p));
    for (int pass = 0; pass < 2; pass++)
      for (idx l = 0; l < m; l++) {
        const real *u = frame + (gidx)l * p;
        real s = lane_product(u, v, p);
        for (idx c = 0; c < p; c++) v[c] = fma(-s, u[c], v[c]);
      }
    real norm = sqrt(lane_product(v, v, p));
    if (!(norm > 0x1p-20 * before)) return m;
    for (idx c = 0; c < p; c++) v[c] /= norm;
  }
  return d;
}
