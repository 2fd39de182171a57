/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: encode_run() gives the bits that the reference functions of src/model give row by row,
 * with rounds, frames, penalties, nonnegative codes, equal atoms, rows of zeros and means, also if
 * ranks have uneven or empty shares of the problem.
 * RUN: np=1 5, full=1 2 5 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "base/status.h"
#include "model/codes.h"
#include "model/route.h"
#include "encode/encode.h"
#include "tap.h"

struct setting {
  gidx n;
  idx k, d, p, s, rounds, tile, block;
  real rho;
  int with_mean, nonnegative;
};

struct problem {
  struct setting is;
  float *rows, *atoms; /* as stored: [n][p], [k][d][p] */
  real *mean;
  struct row_source row_source;
  struct atom_source atom_source;
  struct support_sink sink;
  idx *out_atoms; /* [n][s] what the sink got on rank 0 */
  float *out_score, *out_codes;
  struct arena arena;
};

static int read_rows(void *self, gidx first, idx count, float *out)
{
  struct problem *q = self;
  memcpy(out, q->rows + first * q->is.p, (size_t)count * (size_t)q->is.p * sizeof *out);
  return OK;
}

static int read_atoms(void *self, idx first, idx count, float *out)
{
  struct problem *q = self;
  size_t each = (size_t)q->is.d * (size_t)q->is.p;
  memcpy(out, q->atoms + (size_t)first * each, (size_t)count * each * sizeof *out);
  return OK;
}

static int write_block(void *self, const struct support_block *b)
{
  struct problem *q = self;
  gidx at = b->first * b->s, entries = (gidx)b->n * b->s;
  memcpy(q->out_atoms + at, b->atoms, (size_t)entries * 4);
  memcpy(q->out_score + at, b->score, (size_t)entries * 4);
  memcpy(q->out_codes + at * b->d, b->codes, (size_t)(entries * b->d) * 4);
  return OK;
}

/* Fill atoms, rows and mean.  Frames are orthonormal, and atom 5 equals atom 2.  Row 1 is zero, row
 * 3 is twice an atom, row 5 is small, and row 7 is large. */
static void values_fill(struct problem *q)
{
  const struct setting *is = &q->is;
  gidx each = (gidx)is->d * is->p;
  real *frame = malloc((size_t)each * sizeof *frame);
  for (gidx a = 0; a < is->k; a++) {
    for (gidx i = 0; i < each; i++) frame[i] = random_normal(1, 1, (uint64_t)(a * each + i));
    frame_orthonormalize(frame, is->d, is->p);
    for (gidx i = 0; i < each; i++) q->atoms[a * each + i] = (float)frame[i];
  }
  if (is->k > 5) memcpy(q->atoms + 5 * each, q->atoms + 2 * each, (size_t)each * 4);
  for (gidx i = 0; i < is->n * is->p; i++)
    q->rows[i] = (float)(0.1 * random_normal(1, 2, (uint64_t)i));
  for (idx c = 0; c < is->p; c++) {
    q->mean[c] = 0.01 * random_normal(1, 3, (uint64_t)c);
    if (is->n > 1) q->rows[is->p + c] = 0;
    if (is->n > 3) q->rows[3 * is->p + c] = 2 * q->atoms[2 * each + c];
    if (is->n > 7) q->rows[5 * is->p + c] *= 0x1p-90f;
    if (is->n > 7) q->rows[7 * is->p + c] *= 0x1p70f;
  }
  free(frame);
}

static int problem_init(struct problem *q, const struct setting *is)
{
  *q = (struct problem){.is = *is};
  gidx entries = is->n * is->s;
  TRY(arena_alloc(&q->arena, &q->rows, is->n * is->p, sizeof *q->rows));
  TRY(arena_alloc(&q->arena, &q->atoms, (gidx)is->k * is->d * is->p, sizeof *q->atoms));
  TRY(arena_alloc(&q->arena, &q->mean, is->p, sizeof *q->mean));
  TRY(arena_alloc(&q->arena, &q->out_atoms, entries, sizeof *q->out_atoms));
  TRY(arena_alloc(&q->arena, &q->out_score, entries, sizeof *q->out_score));
  TRY(arena_alloc(&q->arena, &q->out_codes, entries * is->d, sizeof *q->out_codes));
  values_fill(q);
  q->row_source = (struct row_source){.n = is->n,
                                      .p = is->p,
                                      .name = "rows",
                                      .row_bytes = 4.0 * is->p,
                                      .self = q,
                                      .read = read_rows};
  q->atom_source = (struct atom_source){
      .k = is->k, .d = is->d, .p = is->p, .name = "atoms", .self = q, .read = read_atoms};
  q->sink = (struct support_sink){q, write_block};
  return OK;
}

/* The expected result of a row: (N.3r) and (N.5) by the reference functions. */
struct expectation {
  idx atoms[MAX_TOP_S];
  float score[MAX_TOP_S];
  real codes[MAX_TOP_S * MAX_FRAME];
};

static void row_expect(const struct problem *q, const float *x, const idx *names, real *work,
                       struct expectation *want)
{
  const struct setting *is = &q->is;
  const float *vector[MAX_TOP_S * MAX_FRAME];
  float *residual = malloc((size_t)is->p * sizeof *residual);
  struct entry list[MAX_TOP_S];
  memcpy(residual, x, (size_t)is->p * sizeof *residual);
  for (idx r = 1; r <= is->rounds; r++) {
    idx have = round_end(is->s, is->rounds, r - 1), now = round_end(is->s, is->rounds, r);
    struct route_reference route = {.n = 1, .p = is->p, .d = is->d, .top_k = now - have};
    route.nonnegative = is->nonnegative;
    struct bad_score bad = {-1, -1};
    if (now == have) continue;
    route.count = is->k;
    route.rows = residual;
    route.atoms = q->atoms;
    route.atom_of = names;
    route.excluded = (struct exclusions){want->atoms, have, is->s};
    route_reference(&route, list, &bad);
    for (idx j = have; j < now; j++) {
      want->atoms[j] = list[j - have].atom;
      want->score[j] =
          entry_score(list[j - have], is->d, is->d > 1 ? route_power(residual, is->p) : 0);
      for (idx m = 0; m < is->d; m++)
        vector[j * is->d + m] = q->atoms + ((gidx)want->atoms[j] * is->d + m) * is->p;
    }
    (is->nonnegative ? codes_nonnegative_reference : codes_reference)(x, vector, now * is->d, is->p,
                                                                      is->rho, want->codes, work);
    residual_reference(x, vector, now * is->d, is->p, want->codes, residual);
  }
  free(residual);
}

static int results_match(const struct problem *q)
{
  const struct setting *is = &q->is;
  idx vectors = is->s * is->d, wrong = 0;
  idx *names = malloc((size_t)is->k * sizeof *names);
  float *x = malloc((size_t)is->p * sizeof *x);
  real *work = malloc((size_t)codes_work(vectors) * sizeof *work);
  static struct expectation want;
  for (idx a = 0; a < is->k; a++) names[a] = a;
  for (gidx i = 0; i < is->n; i++) {
    memcpy(x, q->rows + i * is->p, (size_t)is->p * sizeof *x);
    rows_center(x, 1, is->p, is->with_mean ? q->mean : NULL);
    row_expect(q, x, names, work, &want);
    wrong += memcmp(want.atoms, q->out_atoms + i * is->s, (size_t)is->s * 4) != 0;
    wrong += memcmp(want.score, q->out_score + i * is->s, (size_t)is->s * 4) != 0;
    for (idx j = 0; j < vectors; j++) {
      float code = (float)want.codes[j];
      wrong += memcmp(&code, q->out_codes + i * vectors + j, 4) != 0;
    }
  }
  free(names);
  free(x);
  free(work);
  return wrong == 0;
}

static void check(struct comm *c, const struct setting *is)
{
  struct problem q;
  struct encode_result result;
  if (!ok(problem_init(&q, is) == OK, "memory")) return;
  struct encode_task task = {.rows = &q.row_source,
                             .atoms = &q.atom_source,
                             .mean = is->with_mean ? q.mean : NULL,
                             .sink = &q.sink,
                             .top_s = is->s,
                             .rounds = is->rounds,
                             .tile = is->tile,
                             .block = is->block,
                             .threads = 1,
                             .variant = "auto",
                             .codes = 1,
                             .nonnegative = is->nonnegative,
                             .rho = is->rho,
                             .max_cosine = 100};
  int status = encode_run(&task, c, &result);
  ok(status == OK, "encode n=%lld k=%d d=%d p=%d s=%d rounds=%d %s", (long long)is->n, is->k, is->d,
     is->p, is->s, is->rounds, status ? status_message() : "");
  if (c->rank == 0) /* only rank 0 has the results of all rows */
    ok(results_match(&q), "every bit of n=%lld k=%d d=%d s=%d rounds=%d", (long long)is->n, is->k,
       is->d, is->s, is->rounds);
  encode_free(&result);
  arena_free(&q.arena);
}

int main(void)
{
  static const struct setting settings[] = {
      {37, 50, 1, 24, 8, 1, 16, 10, 0, 0, 0},   {37, 50, 1, 24, 8, 4, 16, 10, 0, 1, 0},
      {37, 50, 1, 24, 8, 8, 7, 64, 0, 0, 0},    {37, 50, 1, 24, 8, 3, 16, 1, 0.25, 1, 0},
      {20, 30, 3, 16, 4, 1, 8, 7, 0, 0, 0},     {20, 30, 3, 16, 4, 2, 8, 20, 0, 1, 0},
      {20, 30, 2, 16, 5, 5, 30, 20, 0.1, 0, 0}, {11, 12, 8, 9, 3, 3, 4, 4, 0, 0, 0},
      {3, 9, 1, 5, 9, 2, 2, 2, 0, 0, 0},        {1, 6, 1, 1, 4, 4, 1, 1, 0, 0, 0},
      {0, 6, 1, 4, 2, 1, 4, 4, 0, 0, 0},        {9, 40, 1, 8, 30, 2, 9, 5, 0, 0, 0},
      {37, 50, 1, 24, 8, 1, 16, 10, 0, 0, 1},   {37, 50, 1, 24, 8, 4, 16, 10, 0.1, 1, 1},
      {37, 50, 1, 24, 8, 8, 7, 64, 0, 0, 1},    {9, 40, 1, 8, 30, 2, 9, 5, 0, 0, 1},
      {3, 9, 1, 5, 9, 2, 2, 2, 0, 0, 1},        {1, 6, 1, 1, 4, 4, 1, 1, 0, 0, 1},
  };
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  claim_begin("encode gives the bits of the references");
  for (int i = 0; i < (int)(sizeof settings / sizeof settings[0]); i++) check(&c, &settings[i]);
  claim_end();
  comm_close(&c);
  return done_testing();
}
