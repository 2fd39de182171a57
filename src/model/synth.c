/* SPDX-License-Identifier: BSD-3-Clause
 * Random numbers are counter-based, with global positions as counters.  Random directions that are
 * linearly dependent, as may happen with very small p, are drawn again from the next stream. */
#include "model/synth.h"

#include <math.h>

#include "base/rng.h"
#include "model/dictionary.h"

gidx planted_work(const struct planted *g)
{
  return 2 * (gidx)g->d * g->p;
}

/* out[d][p] <- normal numbers of an atom. */
static void normals(const struct planted *g, uint64_t stream, idx atom, real *out)
{
  gidx count = (gidx)g->d * g->p;
  for (gidx i = 0; i < count; i++)
    out[i] = random_normal(g->seed, stream, (uint64_t)(atom * count + i));
}

void planted_atom(const struct planted *g, idx atom, float *out, real *work)
{
  uint64_t stream = STREAM_ATOM;
  do {
    normals(g, stream, atom, work);
    stream += STREAM_COUNT;
  } while (frame_orthonormalize(work, g->d, g->p) < g->d);
  for (gidx i = 0; i < (gidx)g->d * g->p; i++) out[i] = (float)work[i];
}

/* work[2 d][p] <- the d vectors of the frame, then d random vectors; all are orthonormal. */
static void start_basis(const struct planted *g, idx atom, const float *frame, real *work)
{
  gidx count = (gidx)g->d * g->p;
  uint64_t stream = STREAM_START;
  do {
    for (gidx i = 0; i < count; i++) work[i] = frame[i];
    normals(g, stream, atom, work + count);
    stream += STREAM_COUNT;
  } while (frame_orthonormalize(work, 2 * g->d, g->p) < 2 * g->d);
}

void planted_start(const struct planted *g, idx atom, const float *frame, real cosine, float *out,
                   real *work)
{
  gidx count = (gidx)g->d * g->p;
  real sine = sqrt(1 - cosine * cosine);
  if (cosine < 1) start_basis(g, atom, frame, work);
  for (gidx i = 0; i < count; i++)
    out[i] = cosine < 1 ? (float)(cosine * work[i] + sine * work[count + i]) : frame[i];
}

static int has(const idx *atoms, idx count, idx atom)
{
  for (idx j = 0; j < count; j++)
    if (atoms[j] == atom) return 1;
  return 0;
}

/* Floyd's algorithm: s draws give s distinct numbers; every set has the same probability. */
static void support_even(const struct planted *g, gidx row, idx *atoms)
{
  for (idx j = 0; j < g->s; j++) {
    idx top = g->k - g->s + j;
    uint64_t counter = (uint64_t)(row * g->s + j);
    idx atom = (idx)random_below(g->seed, STREAM_SUPPORT, counter, (uint64_t)top + 1);
    atoms[j] = has(atoms, j, atom) ? top : atom;
  }
}

/* An octave of 1 .. 2^octaves - 1 is drawn uniformly, then a number in it, so that the density
 * falls as 1 / x.  The number is scaled to 0 .. k - 1.  If the row already has this atom, the next
 * atom that it does not have is taken. */
static void support_zipf(const struct planted *g, gidx row, idx *atoms)
{
  uint64_t octaves = 1;
  while ((1ull << octaves) - 1 < (uint64_t)g->k) octaves++;
  for (idx j = 0; j < g->s; j++) {
    uint64_t counter = 2 * (uint64_t)(row * g->s + j);
    uint64_t first = 1ull << random_below(g->seed, STREAM_SUPPORT, counter, octaves);
    uint64_t x = first + random_below(g->seed, STREAM_SUPPORT, counter + 1, first);
    idx atom = (idx)((x - 1) * (uint64_t)g->k / ((1ull << octaves) - 1));
    while (has(atoms, j, atom)) atom = (atom + 1) % g->k;
    atoms[j] = atom;
  }
}

void planted_support(const struct planted *g, gidx row, idx *atoms, float *codes)
{
  idx count = g->s * g->d;
  if (g->zipf)
    support_zipf(g, row, atoms);
  else
    support_even(g, row, atoms);
  for (idx j = 0; j < count; j++) {
    uint64_t bits = random_bits(g->seed, STREAM_CODE, (uint64_t)(row * count + j));
    float size = 0.5f + (float)(bits >> 41) * 0x1p-23f;
    codes[j] = bits & 1 ? -size : size;
  }
}

void planted_row(const struct planted *g, gidx row, const float *const *vector, const float *codes,
                 float *out, real *work)
{
  for (idx c = 0; c < g->p; c++) work[c] = 0;
  for (idx j = 0; j < g->s * g->d; j++)
    for (idx c = 0; c < g->p; c++) work[c] += (real)codes[j] * vector[j][c];
  for (idx c = 0; g->noise > 0 && c < g->p; c++)
    work[c] += g->noise * random_normal(g->seed, STREAM_NOISE, (uint64_t)(row * g->p + c));
  for (idx c = 0; c < g->p; c++) out[c] = (float)work[c];
}

void trig_row(gidx row, idx p, float *out)
{
  for (idx c = 0; c < p; c++) out[c] = (float)(0.9 * sin(0.013 * (real)(31 * row + 17 * (gidx)c)));
}

void trig_atom(idx atom, idx p, float *out)
{
  for (idx c = 0; c < p; c++) out[c] = (float)cos(0.011 * (real)(7 * (gidx)atom + 5 * (gidx)c));
  atoms_normalize(out, 1, 1, p);
}
