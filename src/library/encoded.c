/* SPDX-License-Identifier: BSD-3-Clause
 * The same steps as encode/imported.c for the rows of one rank, without files and metrics. */
#include "library/encoded.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/encoder.h"
#include "device/route.h"
#include "model/rows.h"

enum { ACTIVE_SCORES = 1 << 22 }; /* scores of active atoms computed at a time, about */

static int is_active(const struct sagitta *h)
{
  return h->encoder.kind == ENCODER_ACTIVE;
}

static int kind_find(const char *name)
{
  for (int i = 0; i < ENCODER_KINDS; i++)
    if (strcmp(encoder_names[i], name) == 0) return i;
  return -1;
}

/* Check and set the thresholds of active atoms; their bias is 0. */
static int active_take(struct sagitta *h)
{
  const struct sagitta_options *o = &h->options;
  struct found_encoder *a = &h->encoder.active;
  int fits = o->n_cuts >= 1 && o->n_cuts <= FIND_LOOKS + 1 && o->cuts && isfinite(o->floor) &&
             o->floor > 0;
  CHECK(fits, ERR_INPUT,
        "the encoder has %d thresholds and a floor of %g, which cannot be used" ANEW, o->n_cuts,
        o->floor);
  CHECK(!o->solves && o->rho == 0, ERR_USAGE,
        "the codes of features are solved, nonnegative and without a penalty: leave out codes and "
        "rho");
  *a = (struct found_encoder){
      .looks = o->n_cuts - 1, .relative = o->relative != 0, .floor = o->floor};
  for (int i = 0; i < o->n_cuts; i++) {
    CHECK(o->cuts[i] >= 0 && isfinite(o->cuts[i]), ERR_INPUT,
          "threshold %d of the encoder is %g, below 0 or not finite" ANEW, i, (double)o->cuts[i]);
    a->threshold[i] = o->cuts[i];
  }
  TRY(arena_alloc(&h->arena, &h->silent, o->k, sizeof *h->silent));
  h->encoder.bias = h->silent;
  return OK;
}

static int vectors_check(const struct encoder *e)
{
  TRY(rows_check(e->weights, e->k, e->p, 0, "/encoder/weights"));
  TRY(rows_check(e->bias, 1, e->k, 0, "/encoder/bias"));
  if (e->norm) TRY(rows_check(e->norm, 1, e->k, 0, "/encoder/norm"));
  for (idx a = 0; a < e->k; a++) {
    CHECK(!e->norm || e->norm[a] > 0, ERR_INPUT, "atom %d has the norm %g" ANEW, a,
          (double)e->norm[a]);
    CHECK(!e->threshold || !isnan(e->threshold[a]), ERR_INPUT,
          "the threshold of atom %d is not a number" ANEW, a);
  }
  return OK;
}

int encoded_check(struct sagitta *h)
{
  const struct sagitta_options *o = &h->options;
  int kind = kind_find(o->encoder);
  CHECK(kind >= 0, ERR_INPUT, "the encoder is '%s', which is not known", o->encoder);
  h->encoder = (struct encoder){.kind = (enum encoder_kind)kind,
                                .k = o->k,
                                .p = o->p,
                                .top = (idx)imin(o->top, o->k),
                                .centered = o->centered != 0,
                                .rescaled = o->rescaled != 0,
                                .weights = o->weights,
                                .bias = o->bias,
                                .threshold = o->threshold,
                                .norm = o->norm};
  if (is_active(h)) return active_take(h);
  int has_threshold = kind == ENCODER_JUMPRELU || kind == ENCODER_BATCHTOPK;
  CHECK(o->weights && o->bias && !has_threshold == !o->threshold, ERR_INPUT,
        "the encoder is of kind %s, and lacks arrays of this kind, or has others" ANEW, o->encoder);
  CHECK(kind != ENCODER_TOPK || o->top >= 1, ERR_INPUT,
        "the encoder has %d codes a row, and there are %d atoms" ANEW, o->top, o->k);
  CHECK(o->rho == 0 || o->solves, ERR_USAGE,
        "rho does not go with the codes of an encoder, of which nothing is solved: leave it out, "
        "or have codes solved, signed or nonnegative");
  return vectors_check(&h->encoder);
}

/* For the encoder `active`, active_room() puts the atoms on the device. */
int encoded_put(struct sagitta *h)
{
  return is_active(h) ? OK : device_put_tile(&h->device, h->encoder.weights, h->encoder.k, 0);
}

static int active_room(struct sagitta *h)
{
  idx k = h->options.k, rows = (idx)imin(h->rows, imax(ACTIVE_SCORES / k, 1));
  h->active = (struct active){.device = &h->device,
                              .most_k = k,
                              .p = h->options.p,
                              .most_n = rows,
                              .entries = (gidx)rows * k,
                              .threads = h->options.threads,
                              .relative = h->encoder.active.relative,
                              .floor = h->encoder.active.floor};
  TRY(active_open(&h->active));
  return active_atoms(&h->active, h->options.atoms, k, NULL);
}

int encoded_alloc(struct sagitta *h)
{
  TRY(buffer_alloc(&h->device, &h->raw, (gidx)h->rows * h->options.p * (gidx)sizeof(float)));
  TRY(arena_alloc(&h->room, &h->lengths, h->rows, sizeof *h->lengths));
  if (h->options.solves) TRY(ragged_open(&h->ragged, &h->device, h->options.p, h->rows));
  return is_active(h) ? active_room(h) : OK;
}

void encoded_free(struct sagitta *h)
{
  buffer_free(&h->device, &h->raw);
  ragged_close(&h->ragged);
  active_close(&h->active);
}

/* Find the active atoms of n rows, a->most_n rows at a time: h->active has room for one entry per
 * score of these a->most_n rows. */
static int active_find(struct sagitta *h, const struct buffer *rows, idx n)
{
  struct active *a = &h->active;
  h->start[0] = 0;
  for (idx first = 0, m; first < n; first += m) {
    m = (idx)imin(a->most_n, n - first);
    TRY(active_encode(a, rows, first, m, &h->encoder.active));
    const struct entry_list piece = {a->index, a->score, a->code, a->start[m], 0};
    CHECK(entries_append(&h->piece, &piece), ERR_MEMORY, "cannot allocate the codes of %d rows", n);
    for (idx i = 0; i < m; i++)
      h->start[first + i + 1] = h->start[first + i] + a->start[i + 1] - a->start[i];
  }
  return OK;
}

/* Solve the codes of h->x, the rows less the mean, on the supports in h->piece (N.24k). */
static int codes_solve(struct sagitta *h, gidx first, idx n)
{
  const struct ragged_job job = {.n = n,
                                 .x = h->x.host,
                                 .start = h->start,
                                 .atoms = h->piece.atoms,
                                 .codes = h->piece.codes,
                                 .table = &h->table,
                                 .rho = h->options.rho};
  idx row = ragged_long(&job);
  CHECK(row < 0, ERR_INPUT,
        "row %lld has %lld atoms, and codes are solved on %d at most: take the encoder's own "
        "codes",
        (long long)(first + row), (long long)(h->start[row + 1] - h->start[row]), RAGGED_MOST);
  return ragged_solve(&h->ragged, &job);
}

int encoded_encode(struct sagitta *h, gidx first, idx n)
{
  const struct buffer *rows = h->encoder.centered ? &h->x : &h->raw;
  struct encoder_job job = {
      .encoder = &h->encoder, .rows = rows, .n = n, .lengths = h->lengths, .found = &h->piece};
  h->piece.n = 0;
  TRY(device_put(&h->device, rows, 0, (gidx)n * h->options.p * (gidx)sizeof(float)));
  if (is_active(h)) return active_find(h, rows, n);
  TRY(device_encoder(&h->device, &job));
  CHECK(job.bad.row < 0, ERR_INPUT,
        "the score of row %lld and atom %d is not a finite float32 number",
        (long long)(first + job.bad.row), job.bad.atom);
  h->start[0] = 0;
  for (idx i = 0; i < n; i++) h->start[i + 1] = h->start[i] + h->lengths[i];
  return h->options.solves ? codes_solve(h, first, n) : OK;
}
