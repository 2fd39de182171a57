/* SPDX-License-Identifier: BSD-3-Clause
 * Small made-up result files for the tests of src/io.  They are correct in every respect. */
#ifndef TESTS_IO_FILES_H
#define TESTS_IO_FILES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/status.h"
#include "io/dictionary.h"
#include "io/diff.h"
#include "io/inspect.h"
#include "io/rows.h"
#include "io/supports.h"
#include "io/verify.h"

static const struct run_fact run_facts[] = {{"host", "a host", 0}, {"ranks", NULL, 3}};

static inline float noise(uint64_t stream, uint64_t i)
{
  return (float)random_normal(7, stream, i);
}

/* A folder of this test, which is the current folder until folder_leave(). */
static char own_folder[] = "/tmp/sagitta-test-XXXXXX";

static inline void folder_enter(void)
{
  if (!mkdtemp(own_folder) || chdir(own_folder)) exit(99);
}

static inline void folder_leave(void)
{
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", own_folder);
  if (chdir("/") || system(command)) exit(99);
}

/* Supports.  Scores descend inside each round; the atoms of a row are different. */
struct made_supports {
  struct supports_shape shape;
  idx rounds;
  idx *atoms;
  float *score, *codes;
  gidx *density;
  struct metrics metrics;
};

static inline void supports_make(struct made_supports *m, struct supports_shape shape, idx rounds)
{
  gidx nnz = shape.n * shape.s, nonzero = 0;
  *m = (struct made_supports){.shape = shape, .rounds = rounds};
  m->atoms = calloc((size_t)nnz + 1, sizeof *m->atoms);
  m->score = calloc((size_t)nnz + 1, sizeof *m->score);
  m->codes = calloc((size_t)(nnz * shape.d) + 1, sizeof *m->codes);
  m->density = calloc((size_t)shape.k, sizeof *m->density);
  for (gidx e = 0; e < nnz; e++) {
    gidx row = e / shape.s, j = e % shape.s;
    m->atoms[e] = (idx)((row * 5 + j) % (shape.k - shape.k / 4));
    m->score[e] = ((row + j) % 2 && shape.d == 1 ? -1.0f : 1.0f) * (float)(shape.s - j) / 8;
    m->density[m->atoms[e]]++;
    int any = 0;
    for (idx c = 0; c < shape.d; c++) {
      float code = (e + c) % 5 == 0 ? 0 : noise(1, (uint64_t)(e * shape.d + c));
      m->codes[e * shape.d + c] = code;
      any = any || code != 0;
    }
    nonzero += any;
  }
  m->metrics.p = shape.p;
  metrics_density(&m->metrics, m->density, shape.n, shape.k);
  metrics_fit(&m->metrics, 1.25, shape.n > 1 ? 3.5 : 0, 0.5 * (real)shape.n, nonzero);
  m->metrics.max_decoder_cosine = 0.75;
}

static inline void supports_unmake(struct made_supports *m)
{
  free(m->atoms);
  free(m->score);
  free(m->codes);
  free(m->density);
}

static inline int supports_write(const struct made_supports *m, const char *path, idx block,
                                 const real *mean)
{
  struct supports_output f;
  struct supports_ending ending = {.metrics = &m->metrics, .mean = mean, .rounds = m->rounds};
  const struct supports_shape *shape = &m->shape;
  int status = supports_output_create(&f, path, shape);
  for (gidx row = 0; row < shape->n && status == OK; row += block) {
    idx n = shape->n - row < block ? (idx)(shape->n - row) : block;
    gidx skip = row * shape->s;
    struct support_block b = {row,
                              n,
                              shape->s,
                              shape->d,
                              m->atoms + skip,
                              m->score + skip,
                              shape->has_codes ? m->codes + skip * shape->d : NULL,
                              NULL};
    status = f.sink.write(f.sink.self, &b);
  }
  if (status == OK) status = supports_output_finish(&f, &ending, run_facts, LENGTH(run_facts));
  if (status) supports_output_close(&f);
  return status;
}

static inline int rows_write(const char *path, gidx n, idx p, gidx block)
{
  struct matrix_output f;
  float *x = calloc((size_t)(n * p) + 1, sizeof *x);
  for (gidx i = 0; i < n * p; i++) x[i] = noise(2, (uint64_t)i);
  int status = rows_output_create(&f, path, n, p);
  for (gidx row = 0; row < n && status == OK; row += block)
    status = matrix_output_write(&f, row, n - row < block ? n - row : block, x + row * p);
  if (status == OK) status = matrix_output_finish(&f, run_facts, LENGTH(run_facts));
  if (status) matrix_output_close(&f);
  free(x);
  return status;
}

/* Write a dictionary.  The vectors of atom a are along axes a .. a + d - 1 (modulo p); d <= p. */
static inline int dictionary_write(const char *path, idx k, idx d, idx p)
{
  struct matrix_output f;
  gidx size = p;
  float *x = calloc((size_t)k * (size_t)d * (size_t)p, sizeof *x);
  real *mean = calloc((size_t)p, sizeof *mean);
  for (idx a = 0; a < k; a++)
    for (idx m = 0; m < d; m++) x[((gidx)a * d + m) * p + (a + m) % p] = a % 2 ? -1 : 1;
  for (idx c = 0; c < p; c++) mean[c] = (real)noise(3, (uint64_t)c);
  int status = dictionary_output_create(&f, path, k, d, p);
  if (status == OK) status = matrix_output_write(&f, 0, k, x);
  if (status == OK) status = object_write_vector(&f.result.h5, "/mean", size, mean);
  if (status == OK) status = matrix_output_finish(&f, run_facts, LENGTH(run_facts));
  if (status) matrix_output_close(&f);
  free(x);
  free(mean);
  return status;
}

#endif
