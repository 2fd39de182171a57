/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of a block that talk to the device and to other ranks: all on the main thread, in the
 * same order on every rank. */
#include "stage/encode_steps.h"

#include "base/status.h"

/* counts[r] <- unit * rows that rank r has of this block. */
static const idx *share_counts(struct encode *e, const struct flight *f, idx unit)
{
  for (int r = 0; r < e->c->size; r++) e->counts[r] = f->shares[r] * unit;
  return e->counts;
}

/* The rows themselves are wanted on the host too, for the statistics. */
int step_gather(struct encode *e, struct flight *f, struct buffer *rows, int with_chosen)
{
  struct phase *phase = &e->result->phases[PHASE_GATHER];
  phase_begin(phase);
  double before = e->c->bytes;
  size_t row = (size_t)e->p * sizeof(float), support = (size_t)e->s * sizeof(idx);
  const idx *counts = share_counts(e, f, 1);
  TRY(comm_gather_buffer(e->c, &e->device, rows, counts, row, !with_chosen));
  if (with_chosen) TRY(comm_gather_all(e->c, f->atoms, counts, support, f->chosen));
  phase_end(phase, e->c->bytes - before);
  return OK;
}

int step_route(struct encode *e, struct flight *f)
{
  struct phase *phase = &e->result->phases[PHASE_ROUTE];
  phase_begin(phase);
  struct route_job job = {.rows = f->have > 0 ? &f->residual : f->rows,
                          .n = f->n,
                          .take = f->now - f->have,
                          .excluded = {f->chosen, f->have, e->s},
                          .lists = &f->lists};
  int status = device_route(&e->device, &job);
  gidx key = -1;
  if (!status && job.bad.row >= 0) {
    key = ((gidx)job.bad.row << 31) + job.bad.atom;
    status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                         "the %s of row %lld and atom %d is not a finite float32 number",
                         e->d == 1 ? "score" : "gate", (long long)(f->first + job.bad.row),
                         job.bad.atom);
  }
  phase_end(phase, (double)f->n * e->tiles.held * e->d * e->p);
  return comm_agree_at(e->c, status, key);
}

int step_exchange(struct encode *e, struct flight *f)
{
  struct phase *phase = &e->result->phases[PHASE_EXCHANGE];
  phase_begin(phase);
  double before = e->c->bytes;
  idx take = f->now - f->have;
  int size = e->c->size;
  for (int r = 0; r < size; r++) e->other[r] = f->mine * take;
  TRY(comm_exchange_buffer(e->c, &e->device, &f->lists, share_counts(e, f, take),
                           size > 1 ? &f->received : &f->lists, e->other, sizeof(struct entry), 1));
  f->routed = 1;
  phase_end(phase, e->c->bytes - before);
  return OK;
}

int step_fetch(struct encode *e, struct flight *f)
{
  struct phase *phase = &e->result->phases[PHASE_FETCH];
  phase_begin(phase);
  double before = e->c->bytes;
  struct wanted wanted = {f->atoms, f->slot.host, f->mine, e->s, f->have, f->now};
  TRY(tiles_fetch(&e->tiles, f->table, e->c, &e->device, &wanted));
  gidx bytes = f->mine * (gidx)e->s * (gidx)sizeof(idx);
  TRY(comm_agree(e->c, device_put(&e->device, &f->slot, 0, bytes)));
  phase_end(phase, e->c->bytes - before);
  return OK;
}

static int codes_get(struct encode *e, const struct flight *f)
{
  gidx codes = (gidx)f->mine * e->s * e->d * (gidx)sizeof(float);
  TRY(device_get(&e->device, &e->codes, 0, codes));
  return device_get(&e->device, &e->quality, 0, f->mine * (gidx)sizeof(struct row_quality));
}

/* The last round wants the codes, the others the residual. */
int step_codes(struct encode *e, struct flight *f, int last)
{
  struct phase *phase = &e->result->phases[PHASE_CODES];
  phase_begin(phase);
  struct buffer atoms;
  int status = tiles_fetched(&e->tiles, f->table, &e->device, &atoms);
  struct codes_job job = {.n = f->mine,
                          .m_old = f->solved,
                          .m_new = f->now,
                          .m_most = e->s,
                          .rho = e->task->rho,
                          .first = f->mine_first,
                          .rows = f->rows,
                          .atoms = &atoms,
                          .slot = &f->slot,
                          .state = e->task->rounds > 1 ? &f->state : NULL};
  if (last) {
    job.codes = &e->codes;
    job.quality = &e->quality;
  } else {
    job.residual = &f->residual;
  }
  if (!status) status = device_codes(&e->device, &job);
  if (!status && last) status = codes_get(e, f);
  double old = (double)f->solved * e->d, new = (double)f->now * e->d;
  f->solved = f->now;
  phase_end(phase, (double)f->mine * e->p * ((new *new - old *old) / 2 + 3 * new));
  return comm_agree(e->c, status);
}

int step_collect(struct encode *e, struct flight *f)
{
  struct phase *phase = &e->result->phases[PHASE_COLLECT];
  phase_begin(phase);
  double before = e->c->bytes;
  const idx *counts = share_counts(e, f, 1);
  size_t bytes = (size_t)e->s * 4;
  TRY(comm_gather(e->c, f->atoms, counts, bytes, f->out_atoms));
  TRY(comm_gather(e->c, f->score, counts, bytes, f->out_score));
  if (e->task->codes) {
    TRY(comm_gather(e->c, e->codes.host, counts, bytes * (size_t)e->d, f->out_codes));
    TRY(comm_gather(e->c, e->quality.host, counts, sizeof *e->qualities, e->qualities));
  }
  phase_end(phase, e->c->bytes - before);
  return OK;
}
