/* SPDX-License-Identifier: BSD-3-Clause
 * A block of rows at a time, round after round, as encode does it, but with the whole dictionary on
 * this rank's device. */
#include "refit/reroute.h"

#include "base/status.h"
#include "device/codes.h"
#include "device/route.h"

enum { BLOCK = 1024 };

struct reroute {
  struct refit_state *f;
  float *table;
  idx rounds;
  struct device device; /* holds all atoms */
  struct arena arena;
  struct entry *lists; /* [BLOCK][s] */
  float *residual;     /* [BLOCK][p] */
  void *state;         /* of the codes */
};

static int arrays_alloc(struct reroute *w)
{
  const struct refit_state *f = w->f;
  TRY(arena_alloc(&w->arena, &w->lists, (gidx)BLOCK * f->s, sizeof *w->lists));
  return arena_alloc(&w->arena, &w->residual, (gidx)BLOCK * f->p, sizeof *w->residual);
}

int refit_reroute_bytes(const struct refit_state *f, gidx *bytes)
{
  struct reroute w = {.f = (struct refit_state *)f, .arena.is_dry = 1};
  TRY(arrays_alloc(&w));
  *bytes = (gidx)w.arena.bytes;
  return OK;
}

static int reroute_open(struct reroute *w)
{
  const struct refit_state *f = w->f;
  struct device_options options = {.p = f->p,
                                   .d = f->d,
                                   .max_atoms = f->k,
                                   .nonnegative = f->task->nonnegative,
                                   .threads = f->task->threads,
                                   .variant = f->task->variant,
                                   .filter = f->task->filter};
  TRY(device_open(&w->device, &options));
  TRY(device_put_tile(&w->device, w->table, f->k, 0));
  TRY(arrays_alloc(w));
  gidx bytes = w->rounds > 1 ? BLOCK * device_codes_state_bytes(&w->device, f->s, f->rho) : 0;
  return arena_alloc(&w->arena, &w->state, bytes, 1);
}

/* Find entries have .. now - 1 of the supports of n rows from `first` on by routing x[n][p]. */
static int round_route(struct reroute *w, idx first, idx n, float *x, idx have, idx now)
{
  struct refit_state *f = w->f;
  idx s = f->s, top_k = now - have;
  idx *atoms = f->atoms + (gidx)first * s;
  struct buffer rows = host_buffer(x), lists = host_buffer(w->lists);
  struct route_job job = {
      .rows = &rows, .n = n, .top_k = top_k, .excluded = {atoms, have, s}, .lists = &lists};
  TRY(device_route(&w->device, &job));
  CHECK(job.bad.row < 0, ERR_INPUT, "the %s of row %lld and atom %d is not a finite float32 number",
        f->d == 1 ? "score" : "gate", (long long)(f->first + first + job.bad.row), job.bad.atom);
  for (gidx i = 0; i < n; i++)
    for (idx j = 0; j < top_k; j++) {
      struct entry e = w->lists[i * top_k + j];
      atoms[i * s + have + j] = e.atom;
      f->score[(first + i) * s + have + j] = entry_score(e, f->d);
    }
  return OK;
}

/* All rounds of n rows from `first` on. */
static int block_route(struct reroute *w, idx first, idx n)
{
  const struct refit_state *f = w->f;
  float *x = f->x + (gidx)first * f->p;
  struct buffer rows = host_buffer(x), table = host_buffer(w->table), state = host_buffer(w->state),
                slot = host_buffer(f->atoms + (gidx)first * f->s),
                residual = host_buffer(w->residual);
  idx solved = 0;
  for (idx round = 1; round <= w->rounds; round++) {
    idx have = round_end(f->s, w->rounds, round - 1), now = round_end(f->s, w->rounds, round);
    if (now == have) continue;
    TRY(round_route(w, first, n, x, have, now));
    if (now == f->s) break;
    struct codes_job job = {.n = n,
                            .m_old = solved,
                            .m_new = now,
                            .max_m = f->s,
                            .rho = f->rho,
                            .rows = &rows,
                            .atoms = &table,
                            .slot = &slot,
                            .state = &state,
                            .residual = &residual};
    TRY(device_codes(&w->device, &job));
    solved = now;
    x = w->residual;
  }
  return OK;
}

int refit_reroute(struct refit_state *f, float *table, idx rounds)
{
  struct reroute w = {.f = f, .table = table, .rounds = rounds};
  int status = reroute_open(&w);
  for (idx first = 0; first < f->n && !status; first += BLOCK)
    status = block_route(&w, first, f->n - first < BLOCK ? f->n - first : BLOCK);
  device_close(&w.device);
  arena_free(&w.arena);
  return status;
}
