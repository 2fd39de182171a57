/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are coded a piece at a time, round after round, as in encode, but with the whole dictionary
 * on this rank's device. */
#include "refit/sparse_coder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "comm/buffers.h"
#include "device/codes.h"
#include "device/route.h"
#include "refit/sums.h"

enum { CPU_PIECE = 1024 };                 /* rows whose lists and states stay in caches */
static const gidx PIECE_BYTES = 1ll << 30; /* of a piece's residuals and states on a GPU */

static struct device_options options_of(const struct sparse_coder_shape *c)
{
  return (struct device_options){.p = c->p,
                                 .d = c->d,
                                 .max_atoms = c->k,
                                 .nonnegative = c->nonnegative,
                                 .threads = c->threads,
                                 .variant = c->variant,
                                 .kind = c->kind,
                                 .work = c->work,
                                 .top_k = (idx)ceil_div(c->s, c->rounds),
                                 .route_rows = (idx)imin(c->rows, INT32_MAX),
                                 .support = c->s,
                                 .codes_rows = c->rounds > 1 ? 0 : (idx)imin(c->rows, INT32_MAX),
                                 .local_rank = c->local_rank,
                                 .filter = c->filter};
}

void sparse_coder_warm(const struct sparse_coder_shape *shape)
{
  struct device_options options = options_of(shape);
  device_warm(&options);
}

/* Allocate the work arrays of a piece. */
static int pieces_alloc(struct sparse_coder *w)
{
  const struct sparse_coder_shape *c = &w->shape;
  gidx row = (gidx)c->p * (gidx)sizeof(float), list = (gidx)sizeof(struct entry);
  gidx state = c->rounds > 1 ? device_codes_state_bytes(&w->device, c->s, 1) : 0;
  int gpu = strcmp(w->device.kind, "cpu") != 0;
  gidx piece = gpu ? imax(PIECE_BYTES / (row + state), 1) : CPU_PIECE;
  w->piece = (idx)imax(imin(piece, imin(c->rows, INT32_MAX)), 1);
  TRY(buffer_alloc_device(&w->device, &w->lists, w->piece * ceil_div(c->s, c->rounds) * list));
  if (c->d > 1) TRY(buffer_alloc(&w->device, &w->power, w->piece * (gidx)sizeof(idx)));
  TRY(buffer_alloc(&w->device, &w->near, imin(w->piece, c->k) * (gidx)sizeof(idx)));
  TRY(buffer_alloc(&w->device, &w->score, imin(w->piece, c->k) * (gidx)sizeof(float)));
  if (c->rounds == 1) return OK;
  TRY(buffer_alloc_device(&w->device, &w->residual, w->piece * row));
  return buffer_alloc_device(&w->device, &w->state, w->piece * state);
}

int sparse_coder_open(struct sparse_coder *w, const struct sparse_coder_shape *shape)
{
  struct device_options options = options_of(shape);
  *w = (struct sparse_coder){.shape = *shape};
  TRY(device_open(&w->device, &options));
  w->route = (struct phase){.name = "route", .unit = "GMAC", .device = w->device.kind};
  w->codes = (struct phase){.name = "codes", .unit = "GMAC", .device = w->device.kind};
  w->copy = (struct phase){.name = "copy", .unit = "GB"};
  return pieces_alloc(w);
}

/* Ranks with different devices would take batches of different sizes: all take the smallest. */
static int rows_at_once_agree(struct sparse_coder *w, struct comm *c)
{
  struct arena arena = {0};
  gidx *all;
  TRY(comm_agree(c, arena_alloc(&arena, &all, c->size, sizeof *all)));
  for (int routes = 0; routes < 2; routes++) {
    gidx least = sparse_coder_rows_at_once(w, routes);
    TRY(comm_allgather_long(c, least, all));
    for (int r = 0; r < c->size; r++) least = imin(least, all[r]);
    w->rows_at_once[routes] = (idx)least;
  }
  arena_free(&arena);
  return OK;
}

int sparse_coder_join(struct sparse_coder *w, struct comm *c)
{
  const struct sparse_coder_shape *shape = &w->shape;
  size_t entry = sizeof(idx) + sizeof(float) * (1 + (size_t)shape->d);
  w->counts = calloc((size_t)c->size, sizeof *w->counts);
  TRY(comm_agree(c, w->counts ? OK
                              : status_fail(ERR_MEMORY, __FILE__, __LINE__,
                                            "cannot allocate counts of %d ranks", c->size)));
  TRY(rows_at_once_agree(w, c));
  TRY(comm_devices_open(c, c, &w->device, shape->rows * shape->s * (gidx)entry));
  w->share = c;
  return OK;
}

void sparse_coder_leave(struct sparse_coder *w)
{
  if (w->share) comm_devices_close(w->share);
  w->share = NULL;
}

void sparse_coder_close(struct sparse_coder *w)
{
  struct buffer *const buffers[] = {&w->atoms, &w->lists, &w->power, &w->residual,
                                    &w->state, &w->near,  &w->score};
  for (int i = 0; i < LENGTH(buffers); i++) buffer_free(&w->device, buffers[i]);
  device_close(&w->device);
  free(w->counts);
  *w = (struct sparse_coder){0};
}

static gidx table_bytes(const struct sparse_coder_shape *c)
{
  return (gidx)c->k * c->d * c->p * (gidx)sizeof(float);
}

int sparse_coder_put(struct sparse_coder *w, float *table)
{
  w->table = table;
  phase_begin(&w->copy);
  buffer_free(&w->device, &w->atoms);
  TRY(device_dictionary_free(&w->device));
  TRY(device_put_tile(&w->device, table, w->shape.k, 0));
  phase_end(&w->copy, (double)table_bytes(&w->shape));
  return OK;
}

/* *view <- the dictionary in its original form, on the device side. */
static int table_view(struct sparse_coder *w, struct buffer *view)
{
  TRY(device_atoms(&w->device, view));
  if (view->device) return OK;
  if (!w->atoms.bytes) {
    TRY(buffer_wrap(&w->device, &w->atoms, w->table, table_bytes(&w->shape)));
    TRY(device_put(&w->device, &w->atoms, 0, w->atoms.bytes));
  }
  *view = w->atoms;
  return OK;
}

static int coded_alloc(struct sparse_coder *w, struct coded *rows)
{
  const struct sparse_coder_shape *c = &w->shape;
  gidx entries = (gidx)rows->n * c->s, quality = (gidx)sizeof(struct row_quality);
  TRY(buffer_alloc(&w->device, &rows->codes, entries * c->d * (gidx)sizeof(float)));
  return buffer_alloc(&w->device, &rows->quality, rows->n * quality);
}

int coded_open(struct sparse_coder *w, struct coded *rows, idx n, gidx first, float *x, idx *atoms,
               float *score)
{
  const struct sparse_coder_shape *c = &w->shape;
  gidx row = (gidx)c->p * (gidx)sizeof *x, entries = (gidx)n * c->s;
  *rows = (struct coded){.n = n, .first = first};
  TRY(buffer_wrap(&w->device, &rows->x, x, n * row));
  TRY(buffer_wrap(&w->device, &rows->atoms, atoms, entries * (gidx)sizeof *atoms));
  TRY(buffer_wrap(&w->device, &rows->score, score, entries * (gidx)sizeof *score));
  TRY(coded_alloc(w, rows));
  return device_put(&w->device, &rows->x, 0, n * row);
}

int coded_put(struct sparse_coder *w, struct coded *rows, const real *codes)
{
  gidx entries = (gidx)rows->n * w->shape.s, values = entries * w->shape.d;
  float *to = rows->codes.host;
  for (gidx i = 0; i < values; i++) to[i] = (float)codes[i];
  TRY(device_put(&w->device, &rows->atoms, 0, entries * (gidx)sizeof(idx)));
  return device_put(&w->device, &rows->codes, 0, values * (gidx)sizeof *to);
}

void coded_close(struct sparse_coder *w, struct coded *rows)
{
  struct buffer *const buffers[] = {&rows->x, &rows->atoms, &rows->score, &rows->codes,
                                    &rows->quality};
  for (int i = 0; i < LENGTH(buffers); i++) buffer_free(&w->device, buffers[i]);
  *rows = (struct coded){0};
}

int sparse_coder_bytes(const struct sparse_coder_shape *shape, gidx n, gidx *bytes)
{
  struct sparse_coder w = {.shape = *shape};
  struct coded rows = {.n = (idx)imin(n, INT32_MAX)};
  struct device_options options = options_of(shape);
  gidx forms;
  device_open_dry(&w.device, &options, &forms);
  TRY(pieces_alloc(&w));
  TRY(coded_alloc(&w, &rows));
  *bytes = strcmp(w.device.kind, "cpu")
               ? w.device.planned_host
               : imax(w.device.planned_host, w.device.planned_device) + forms;
  return OK;
}

/* Count the arrays of n rows. */
static int rows_count(struct sparse_coder *w, gidx n)
{
  struct coded rows = {.n = (idx)imin(n, INT32_MAX)};
  gidx list = (gidx)w->shape.s * (gidx)sizeof(idx);
  TRY(buffer_wrap(&w->device, &rows.x, NULL, n * w->shape.p * (gidx)sizeof(float)));
  TRY(buffer_wrap(&w->device, &rows.atoms, NULL, n * list));
  TRY(buffer_wrap(&w->device, &rows.score, NULL, n * list));
  return coded_alloc(w, &rows);
}

int sparse_coder_device_dry(const struct sparse_coder_shape *shape, gidx n, gidx held,
                            struct device *dev)
{
  struct sparse_coder w = {.shape = *shape};
  struct device_options options = options_of(shape);
  gidx forms;
  device_open_dry(&w.device, &options, &forms);
  TRY(pieces_alloc(&w));
  TRY(rows_count(&w, n));
  TRY(rows_count(&w, held));
  TRY(buffer_wrap(&w.device, &w.atoms, NULL, table_bytes(shape)));
  *dev = w.device;
  return OK;
}

int sparse_coder_device_memory(const struct sparse_coder_shape *shape, int local_size, gidx *bytes)
{
  struct device_options options = options_of(shape);
  return device_memory(&options, local_size, bytes);
}

/* The current rows. */
struct piece {
  idx first, n;
  struct buffer x, atoms, score, codes, quality;
};

/* The part of a buffer that begins at item `at`; item: bytes of an item. */
static struct buffer buffer_from(const struct buffer *b, gidx at, size_t item)
{
  size_t skip = (size_t)at * item;
  return (struct buffer){.host = b->host ? (char *)b->host + skip : NULL,
                         .device = (char *)b->device + skip,
                         .bytes = b->bytes - (gidx)skip};
}

static struct piece piece_of(const struct sparse_coder *w, const struct coded *rows, idx first,
                             idx end)
{
  const struct sparse_coder_shape *c = &w->shape;
  size_t s = (size_t)c->s;
  return (struct piece){
      .first = first,
      .n = (idx)imin(end - first, w->piece),
      .x = buffer_from(&rows->x, first, (size_t)c->p * sizeof(float)),
      .atoms = buffer_from(&rows->atoms, first, s * sizeof(idx)),
      .score = buffer_from(&rows->score, first, s * sizeof(float)),
      .codes = buffer_from(&rows->codes, first, s * (size_t)c->d * sizeof(float)),
      .quality = buffer_from(&rows->quality, first, sizeof(struct row_quality)),
  };
}

/* Find entries `have` to `now - 1` of the piece's supports by routing `in`. */
static int round_route(struct sparse_coder *w, const struct coded *rows, struct piece *t,
                       const struct buffer *in, idx have, idx now)
{
  const struct sparse_coder_shape *c = &w->shape;
  struct route_job job = {.rows = in,
                          .n = t->n,
                          .top_k = now - have,
                          .excluded = {t->atoms.host, have, c->s},
                          .chosen = &t->atoms,
                          .lists = &w->lists,
                          .power = c->d > 1 ? &w->power : NULL};
  struct scatter_job place = {&w->lists, t->n,      now - have, have,
                              c->s,      &t->atoms, &t->score,  job.power};
  phase_begin(&w->route);
  TRY(device_route(&w->device, &job));
  CHECK(job.bad.row < 0, ERR_INPUT, "the %s of row %lld and atom %d is not a finite float32 number",
        c->d == 1 ? "score" : "gate", (long long)(rows->first + t->first + job.bad.row),
        job.bad.atom);
  TRY(device_lists_scatter(&w->device, &place));
  phase_end(&w->route, (double)t->n * c->k * c->d * c->p);
  return OK;
}

/* sparse_coder_nearest() for at most as many atoms as a piece has rows. */
static int piece_nearest(struct sparse_coder *w, const struct buffer *table, idx first, idx count,
                         idx *own, float *score)
{
  struct buffer rows = buffer_from(table, first, (size_t)w->shape.p * sizeof(float));
  struct route_job job = {
      .rows = &rows, .n = count, .top_k = 1, .excluded = {own, 1, 1}, .lists = &w->lists};
  struct scatter_job place = {&w->lists, count, 1, 0, 1, &w->near, &w->score, NULL};
  for (idx i = 0; i < count; i++) own[i] = first + i;
  TRY(device_route(&w->device, &job));
  TRY(device_lists_scatter(&w->device, &place));
  TRY(device_get(&w->device, &w->near, 0, count * (gidx)sizeof *own));
  TRY(device_get(&w->device, &w->score, 0, count * (gidx)sizeof *score));
  memcpy(own, w->near.host, (size_t)count * sizeof *own);
  memcpy(score, w->score.host, (size_t)count * sizeof *score);
  return OK;
}

int sparse_coder_nearest(struct sparse_coder *w, idx first, idx count, idx *near, float *score)
{
  struct buffer table;
  if (w->shape.k < 2) {
    for (idx i = 0; i < count; i++) near[i] = -1;
    return OK;
  }
  TRY(table_view(w, &table));
  for (idx at = 0; at < count; at += w->piece)
    TRY(piece_nearest(w, &table, first + at, (idx)imin(w->piece, count - at), near + at,
                      score + at));
  return OK;
}

/* Solve the codes of the first `now` atoms of the piece's rows; `solved` of them have been
 * solved. */
static int round_codes(struct sparse_coder *w, struct piece *t, real rho, idx solved, idx now)
{
  const struct sparse_coder_shape *c = &w->shape;
  struct buffer table;
  double old = (double)solved * c->d, new = (double)now * c->d;
  TRY(table_view(w, &table));
  struct codes_job job = {.n = t->n,
                          .m_old = solved,
                          .m_new = now,
                          .max_m = c->s,
                          .rho = rho,
                          .rows = &t->x,
                          .atoms = &table,
                          .slot = &t->atoms,
                          .state = c->rounds > 1 ? &w->state : NULL};
  if (now == c->s) {
    job.codes = &t->codes;
    job.quality = &t->quality;
  } else {
    job.residual = &w->residual;
  }
  phase_begin(&w->codes);
  TRY(device_codes(&w->device, &job));
  phase_end(&w->codes, (double)t->n * c->p * ((new *new - old *old) / 2 + 3 * new));
  return OK;
}

static int rows_run(struct sparse_coder *w, struct coded *rows, idx first, idx n, real rho)
{
  const struct sparse_coder_shape *c = &w->shape;
  for (idx at = first; at < first + n && c->s; at += w->piece) {
    struct piece t = piece_of(w, rows, at, first + n);
    const struct buffer *in = &t.x;
    for (idx round = 1; round <= c->rounds; round++) {
      idx have = round_end(c->s, c->rounds, round - 1), now = round_end(c->s, c->rounds, round);
      if (now == have) continue;
      TRY(round_route(w, rows, &t, in, have, now));
      TRY(round_codes(w, &t, rho, have, now));
      in = &w->residual;
    }
  }
  return OK;
}

static int rows_solve(struct sparse_coder *w, struct coded *rows, idx first, idx n, real rho)
{
  for (idx at = first; at < first + n && w->shape.s; at += w->piece) {
    struct piece t = piece_of(w, rows, at, first + n);
    TRY(round_codes(w, &t, rho, 0, w->shape.s));
  }
  return OK;
}

/* Send the results of n rows to all ranks: supports and scores only if they are new. */
static int rows_exchange(struct sparse_coder *w, const struct coded *rows, idx first, idx n,
                         int routes)
{
  struct piece t = piece_of(w, rows, first, first + n);
  size_t s = (size_t)w->shape.s, codes = s * (size_t)w->shape.d;
  const struct comm_exchange parts[] = {
      {NULL, &t.codes, w->counts, codes * sizeof(float)},
      {NULL, &t.quality, w->counts, sizeof(struct row_quality)},
      {NULL, &t.atoms, w->counts, s * sizeof(idx)},
      {NULL, &t.score, w->counts, s * sizeof(float)},
  };
  gidx turn = 0;
  TRY(comm_allgather_begin(w->share, &w->device, parts, routes ? 4 : 2, &turn));
  return comm_allgather_end(w->share, &w->device, turn);
}

/* If ranks divide the rows: *first and *count <- this rank's share. */
static void own_rows_find(struct sparse_coder *w, idx *first, idx *count)
{
  const struct comm *c = w->share;
  gidx begin, own;
  if (!c) return;
  for (int r = 0; r < c->size; r++) {
    comm_partition(*count, c->size, r, &begin, &own);
    w->counts[r] = (idx)own;
  }
  comm_partition(*count, c->size, c->rank, &begin, &own);
  *first += (idx)begin;
  *count = (idx)own;
}

/* Agree on the status of all ranks, then send this rank's results to all. */
static int own_rows_join(struct sparse_coder *w, const struct coded *rows, idx first, idx n,
                         int routes, int status)
{
  if (!w->share) return status;
  TRY(comm_agree(w->share, status));
  return rows_exchange(w, rows, first, n, routes);
}

int sparse_coder_run(struct sparse_coder *w, struct coded *rows, idx first, idx n, real rho)
{
  idx begin = first, count = n;
  own_rows_find(w, &begin, &count);
  return own_rows_join(w, rows, first, n, 1, rows_run(w, rows, begin, count, rho));
}

int sparse_coder_solve(struct sparse_coder *w, struct coded *rows, idx first, idx n, real rho)
{
  idx begin = first, count = n;
  own_rows_find(w, &begin, &count);
  return own_rows_join(w, rows, first, n, 0, rows_solve(w, rows, begin, count, rho));
}

double sparse_coder_seconds(const struct sparse_coder *w, gidx rows, int routes)
{
  static const double CORE = 0x1p33, GPU = 0x1p44; /* multiply-adds per second, low estimates */
  const struct sparse_coder_shape *c = &w->shape;
  double entries = (double)c->s * c->d, row = c->p * (entries * entries / 2 + 3 * entries);
  if (routes) row += (double)c->k * c->d * c->p * c->rounds;
  return (double)rows * row / (device_is_gpu(&w->device) ? GPU : CORE * fmax(c->threads, 1));
}

idx sparse_coder_rows_at_once(const struct sparse_coder *w, int routes)
{
  if (w->share) return w->rows_at_once[routes != 0];
  double rows = fmin(1 / sparse_coder_seconds(w, 1, routes), INT32_MAX);
  return (idx)imax((gidx)rows, imax(w->piece, 1));
}

int coded_get(struct sparse_coder *w, struct coded *rows, int what)
{
  struct buffer *const buffers[] = {&rows->atoms, &rows->score, &rows->codes, &rows->quality};
  const gidx each = (gidx)rows->n * w->shape.s * 4, quality = (gidx)sizeof(struct row_quality);
  const gidx bytes[] = {each, each, each * w->shape.d, rows->n * quality};
  double work = 0;
  phase_begin(&w->copy);
  for (int i = 0; i < LENGTH(buffers); i++) {
    if (!(what >> i & 1)) continue;
    TRY(device_get(&w->device, buffers[i], 0, bytes[i]));
    work += (double)bytes[i];
  }
  phase_end(&w->copy, work);
  return OK;
}

int coded_metrics(const struct coded *rows, struct comm *c, real tss, struct metrics *m)
{
  const struct row_quality *quality = rows->quality.host;
  struct arena arena = {0};
  real *chains, sums[2] = {0};
  gidx nonzero = 0;
  TRY(comm_agree(c,
                 arena_alloc(&arena, &chains, 2 * ceil_div(rows->n, ROW_BLOCK), sizeof *chains)));
  for (idx i = 0; i < rows->n; i++) {
    real *chain = chains + (gidx)(i / ROW_BLOCK) * 2;
    chain[0] += quality[i].error;
    chain[1] += quality[i].cosine;
    nonzero += quality[i].nonzero;
  }
  TRY(refit_sum(c, m->n, chains, 2, sums));
  TRY(comm_sum(c, &nonzero, 1));
  metrics_fit(m, sums[0], tss, sums[1], nonzero);
  arena_free(&arena);
  return OK;
}
