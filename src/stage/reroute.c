/* SPDX-License-Identifier: BSD-3-Clause
 * A block of rows at a time, round after round, as encode does it with its tiles. */
#include "stage/reroute.h"

#include "base/status.h"

enum { BLOCK = 1024 };

struct reroute {
  struct fit *f;
  float *table;
  idx rounds;
  struct device device; /* holds all atoms */
  struct arena arena;
  struct entry *lists; /* [BLOCK][s] */
  float *residual;     /* [BLOCK][p] */
  void *state;         /* of the codes */
};

static int reroute_open(struct reroute *w)
{
  const struct fit *f = w->f;
  struct device_options options = {.p = f->p,
                                   .d = f->d,
                                   .atoms_most = f->k,
                                   .threads = f->task->threads,
                                   .variant = f->task->variant,
                                   .filter = f->task->filter};
  TRY(device_open(&w->device, &options));
  TRY(device_put_tile(&w->device, w->table, f->k, 0));
  TRY(arena_take(&w->arena, &w->lists, (gidx)BLOCK * f->s, sizeof *w->lists));
  TRY(arena_take(&w->arena, &w->residual, (gidx)BLOCK * f->p, sizeof *w->residual));
  gidx bytes = w->rounds > 1 ? BLOCK * codes_state(&w->device, f->s, f->rho) : 0;
  return arena_take(&w->arena, &w->state, bytes, 1);
}

/* Entries have .. now - 1 of the supports of n rows from `first` on, by routing x[n][p]. */
static int round_route(struct reroute *w, idx first, idx n, float *x, idx have, idx now)
{
  struct fit *f = w->f;
  idx s = f->s, take = now - have;
  idx *atoms = f->atoms + (gidx)first * s;
  struct buffer rows = host_buffer(x), lists = host_buffer(w->lists);
  struct route_job job = {
      .rows = &rows, .n = n, .take = take, .excluded = {atoms, have, s}, .lists = &lists};
  TRY(device_route(&w->device, &job));
  CHECK(job.bad.row < 0, ERR_INPUT, "the %s of row %lld and atom %d is not a finite float32 number",
        f->d == 1 ? "score" : "gate", (long long)(f->first + first + job.bad.row), job.bad.atom);
  for (gidx i = 0; i < n; i++)
    for (idx j = 0; j < take; j++) {
      struct entry e = w->lists[i * take + j];
      atoms[i * s + have + j] = e.atom;
      f->score[(first + i) * s + have + j] = entry_score(e, f->d);
    }
  return OK;
}

static int block_route(struct reroute *w, idx first, idx n)
{
  const struct fit *f = w->f;
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
                            .m_most = f->s,
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

int fit_reroute(struct fit *f, float *table, idx rounds)
{
  struct reroute w = {.f = f, .table = table, .rounds = rounds};
  int status = reroute_open(&w);
  for (idx first = 0; first < f->n && !status; first += BLOCK)
    status = block_route(&w, first, f->n - first < BLOCK ? f->n - first : BLOCK);
  device_close(&w.device);
  arena_free(&w.arena);
  return status;
}
