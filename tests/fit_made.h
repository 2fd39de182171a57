/* SPDX-License-Identifier: BSD-3-Clause
 * A made-up fit in memory for tests: sources of rows, atoms, supports and codes. */
#ifndef TESTS_FIT_MADE_H
#define TESTS_FIT_MADE_H

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/sums.h"
#include "base/status.h"
#include "model/dictionary.h"
#include "model/rows.h"
#include "model/supports.h"

enum { N = 4 * ROW_BLOCK + 77, P = 11, S = 3 };

/* A made-up fit.  A row is the sum of its atoms times codes, plus noise.  With noise the stored
 * codes differ a little from these codes, and the stored codes of some atoms are nearly 0. */
struct made {
  idx k, d;
  real rho, noise; /* noise: of rows and of codes; 0: an exact fit */
  float *x, *frames, *codes, *score;
  idx *atoms;
};

static real uniform(uint64_t stream, uint64_t counter)
{
  return (real)random_bits(5, stream, counter) * 0x1p-63 - 1;
}

static void *zeros(gidx count, size_t size)
{
  void *array = calloc((size_t)count + 1, size);
  if (!array) exit(99);
  return array;
}

static void frames_make(struct made *m)
{
  real *frame = zeros((gidx)m->d * P, sizeof *frame);
  for (idx a = 0; a < m->k; a++) {
    for (idx i = 0; i < m->d * P; i++) frame[i] = uniform(1, (uint64_t)(a * 100 + i));
    frame_orthonormalize(frame, m->d, P);
    for (idx i = 0; i < m->d * P; i++) m->frames[(gidx)a * m->d * P + i] = (float)frame[i];
  }
  memcpy(m->frames + (gidx)4 * m->d * P, m->frames + (gidx)3 * m->d * P,
         (size_t)(m->d * P) * sizeof(float)); /* atoms 3 and 4 are alike */
  free(frame);
}

/* Draw the atom at a place of a row.  Rows fall into four kinds, each with its own atoms, so that
 * classes have several atoms.  Atom 0 is in no row of sum block 1, atom 1 is in one row, and the
 * last atom is in none. */
static idx atom_draw(const struct made *m, gidx row, idx place)
{
  uint64_t kinds = (uint64_t)(m->k - 3) / 4;
  idx a = (idx)(2 + row % 4 + 4 * (gidx)random_below(5, 2, (uint64_t)(row * S + place), kinds));
  if (place == 0 && row / ROW_BLOCK != 1 && row % 5 == 0) a = 0;
  if (place == 0 && row == 5000) a = 1;
  return a;
}

static void rows_make(struct made *m)
{
  for (gidx i = 0; i < N; i++) {
    idx *atoms = m->atoms + i * S;
    for (idx c = 0; c < P; c++)
      m->x[i * P + c] = (float)(m->noise * uniform(3, (uint64_t)(i * P + c)));
    for (idx j = 0; j < S; j++) {
      atoms[j] = atom_draw(m, i, j);
      for (idx l = 0; l < j; l++)
        if (atoms[l] == atoms[j]) {
          atoms[j] = 2 + (atoms[j] + 2) % ((m->k - 3) / 4 * 4);
          l = -1;
        }
      for (idx v = 0; v < m->d; v++) {
        gidx at = (i * S + j) * m->d + v;
        real code = 1 + 0.5 * uniform(4, (uint64_t)at);
        m->codes[at] = (float)(code + m->noise * uniform(6, (uint64_t)at));
        if (m->noise > 0 && atoms[j] % 3 == 2)
          m->codes[at] *= 0.02f * (float)uniform(7, (uint64_t)at);
        for (idx c = 0; c < P; c++)
          m->x[i * P + c] += (float)(code * m->frames[((gidx)atoms[j] * m->d + v) * P + c]);
      }
    }
  }
}

static struct made made_of(idx k, idx d, real rho, real noise)
{
  struct made m = {.k = k, .d = d, .rho = rho, .noise = noise};
  m.x = zeros((gidx)N * P, sizeof *m.x);
  m.frames = zeros((gidx)k * d * P, sizeof *m.frames);
  m.codes = zeros((gidx)N * S * d, sizeof *m.codes);
  m.score = zeros((gidx)N * S, sizeof *m.score);
  m.atoms = zeros((gidx)N * S, sizeof *m.atoms);
  frames_make(&m);
  rows_make(&m);
  return m;
}

static void made_free(struct made *m)
{
  free(m->x);
  free(m->frames);
  free(m->codes);
  free(m->score);
  free(m->atoms);
}

static int rows_read(void *self, gidx first, idx count, float *out)
{
  const struct made *m = self;
  memcpy(out, m->x + first * P, (size_t)count * P * sizeof *out);
  return OK;
}

static int atoms_read(void *self, idx first, idx count, float *out)
{
  const struct made *m = self;
  gidx frame = (gidx)m->d * P;
  memcpy(out, m->frames + first * frame, (size_t)(count * frame) * sizeof *out);
  return OK;
}

static int starts_read(void *self, gidx first, gidx count, gidx *out)
{
  (void)self;
  for (gidx i = 0; i <= count; i++) out[i] = (first + i) * S;
  return OK;
}

static int entries_read(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  const struct made *m = self;
  memcpy(atoms, m->atoms + first, (size_t)count * sizeof *atoms);
  if (score) memcpy(score, m->score + first, (size_t)count * sizeof *score);
  if (codes) memcpy(codes, m->codes + first * m->d, (size_t)(count * m->d) * sizeof *codes);
  return OK;
}

#endif
