/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of a block: gather its rows; a round at a time route, merge, fetch atoms, solve codes;
 * collect the result on rank 0. */
#include <string.h>

#include "base/fingerprint.h"
#include "base/status.h"
#include "stage/encode_inside.h"

/* counts[r] <- unit * rows that rank r has of this block. */
static const idx *share_counts(struct encode *e, idx unit)
{
  for (int r = 0; r < e->c->size; r++) e->counts[r] = e->shares[r] * unit;
  return e->counts;
}

static void block_begin(struct encode *e, gidx first)
{
  gidx left = e->task->rows->n - first, share_first, share;
  e->first = first;
  e->n = left < e->block ? (idx)left : e->block;
  for (int r = 0; r < e->c->size; r++) {
    comm_share(e->n, e->c->size, r, &share_first, &share);
    e->shares[r] = (idx)share;
    if (r != e->c->rank) continue;
    e->mine_first = (idx)share_first;
    e->mine = (idx)share;
  }
}

/* Gather rows (or residuals) and, after the first round, the supports that exclude atoms.  The rows
 * themselves are wanted on the host too, for the statistics. */
static int block_gather(struct encode *e, struct buffer *rows, int with_chosen)
{
  struct phase *phase = &e->result->phases[PHASE_GATHER];
  phase_begin(phase);
  double before = e->c->bytes;
  size_t row = (size_t)e->p * sizeof(float), support = (size_t)e->s * sizeof(idx);
  TRY(comm_gather_buffer(e->c, &e->device, rows, share_counts(e, 1), row, !with_chosen));
  if (with_chosen) TRY(comm_gather_all(e->c, e->atoms, share_counts(e, 1), support, e->chosen));
  phase_end(phase, e->c->bytes - before);
  return OK;
}

/* Score all rows of the block over own tiles; lists[n][take]. */
static int block_route(struct encode *e, const struct buffer *rows, idx have, idx take)
{
  struct phase *phase = &e->result->phases[PHASE_ROUTE];
  phase_begin(phase);
  struct route_job job = {.rows = rows,
                          .n = e->n,
                          .take = take,
                          .excluded = {e->chosen, have, e->s},
                          .lists = &e->lists};
  int status = device_route(&e->device, &job);
  gidx key = -1;
  if (!status && job.bad.row >= 0) {
    key = ((gidx)job.bad.row << 31) + job.bad.atom;
    status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                         "the %s of row %lld and atom %d is not a finite float32 number",
                         e->d == 1 ? "score" : "gate", (long long)(e->first + job.bad.row),
                         job.bad.atom);
  }
  phase_end(phase, (double)e->n * e->tiles.held * e->d * e->p);
  return comm_agree_at(e->c, status, key);
}

/* Bring each row's lists to its rank, merge them, append to the supports of own rows. */
static int block_merge(struct encode *e, idx have, idx take)
{
  struct phase *phase = &e->result->phases[PHASE_MERGE];
  phase_begin(phase);
  double before = e->c->bytes;
  int size = e->c->size;
  share_counts(e, take);
  for (int r = 0; r < size; r++) e->other[r] = e->mine * take;
  TRY(comm_exchange_buffer(e->c, &e->device, &e->lists, e->counts,
                           size > 1 ? &e->received : &e->lists, e->other, sizeof(struct entry)));
  const struct entry *lists = size > 1 ? e->received.host : e->lists.host;
  struct entry merged[TOP_S_MOST];
  for (gidx i = 0; i < e->mine; i++) {
    lists_merge(lists + i * take, size, (gidx)e->mine * take, take, merged);
    for (idx j = 0; j < take; j++) {
      e->atoms[i * e->s + have + j] = merged[j].atom;
      e->score[i * e->s + have + j] = entry_score(merged[j], e->d);
    }
  }
  phase_end(phase, e->c->bytes - before);
  return OK;
}

/* Bring the atoms that entries have .. now - 1 of own supports name. */
static int block_fetch(struct encode *e, idx have, idx now)
{
  struct phase *phase = &e->result->phases[PHASE_FETCH];
  phase_begin(phase);
  double before = e->c->bytes;
  gidx fresh = now - have, count = e->mine * fresh;
  struct arena arena = {0};
  idx *names = NULL, *slots = NULL;
  int status = arena_take(&arena, &names, count, sizeof *names);
  if (!status) status = arena_take(&arena, &slots, count, sizeof *slots);
  TRY(comm_agree(e->c, status));
  for (gidx i = 0; i < e->mine; i++)
    memcpy(names + i * fresh, e->atoms + i * e->s + have, (size_t)fresh * sizeof *names);
  TRY(tiles_fetch(&e->tiles, e->c, &e->device, names, count, slots));
  for (gidx i = 0; i < e->mine; i++)
    memcpy((idx *)e->slot.host + i * e->s + have, slots + i * fresh, (size_t)fresh * sizeof *slots);
  arena_free(&arena);
  gidx bytes = e->mine * (gidx)e->s * (gidx)sizeof(idx);
  TRY(comm_agree(e->c, device_put(&e->device, &e->slot, 0, bytes)));
  phase_end(phase, e->c->bytes - before);
  return OK;
}

static int codes_get(struct encode *e)
{
  gidx codes = (gidx)e->mine * e->s * e->d * (gidx)sizeof(float);
  TRY(device_get(&e->device, &e->codes, 0, codes));
  return device_get(&e->device, &e->quality, 0, e->mine * (gidx)sizeof(struct row_quality));
}

/* Solve own rows' codes on now atoms; the last round wants the codes, the others the residual. */
static int block_codes(struct encode *e, idx have, idx now, int last)
{
  struct phase *phase = &e->result->phases[PHASE_CODES];
  phase_begin(phase);
  struct codes_job job = {.n = e->mine,
                          .m_old = have,
                          .m_new = now,
                          .m_most = e->s,
                          .rho = e->task->rho,
                          .first = e->mine_first,
                          .rows = &e->rows[e->turn],
                          .atoms = &e->tiles.table,
                          .slot = &e->slot,
                          .state = e->task->rounds > 1 ? &e->state : NULL};
  if (last) {
    job.codes = &e->codes;
    job.quality = &e->quality;
  } else {
    job.residual = &e->residual;
  }
  int status = device_codes(&e->device, &job);
  if (!status && last) status = codes_get(e);
  double old = (double)have * e->d, new = (double)now * e->d;
  phase_end(phase, (double)e->mine * e->p * ((new *new - old *old) / 2 + 3 * new));
  return comm_agree(e->c, status);
}

/* Counts, fingerprint and the block on rank 0. */
static int block_collect(struct encode *e, struct support_block *out)
{
  struct phase *phase = &e->result->phases[PHASE_METRICS];
  phase_begin(phase);
  int b = e->turn, root = e->c->rank == 0;
  gidx entries = (gidx)e->mine * e->s, at = (e->first + e->mine_first) * e->s;
  for (gidx i = 0; i < entries; i++) e->result->density[e->atoms[i]]++;
  e->result->fingerprint +=
      fingerprint(e->atoms, entries, 4, at) + 3 * fingerprint(e->score, entries, 4, at);
  *out = (struct support_block){.first = e->first, .s = e->s, .d = e->d};
  out->n = root ? e->n : 0;
  out->atoms = e->out_atoms[b];
  out->score = e->out_score[b];
  const idx *counts = share_counts(e, 1);
  size_t bytes = (size_t)e->s * 4;
  TRY(comm_gather(e->c, e->atoms, counts, bytes, e->out_atoms[b]));
  TRY(comm_gather(e->c, e->score, counts, bytes, e->out_score[b]));
  if (e->task->codes) {
    out->codes = e->out_codes[b];
    e->result->fingerprint += 5 * fingerprint(e->codes.host, entries * e->d, 4, at * e->d);
    TRY(comm_gather(e->c, e->codes.host, counts, bytes * (size_t)e->d, e->out_codes[b]));
    TRY(comm_gather(e->c, e->quality.host, counts, sizeof *e->qualities, e->qualities));
    if (root) statistics_quality(&e->statistics, e->qualities, e->n);
  }
  phase_end(phase, 0);
  return OK;
}

int block_encode(struct encode *e, gidx first, struct support_block *out)
{
  const struct encode_task *t = e->task;
  struct buffer *rows = &e->rows[e->turn];
  block_begin(e, first);
  TRY(block_gather(e, rows, 0));
  idx solved = 0;
  for (idx round = 1; round <= t->rounds; round++) {
    idx have = round_end(e->s, t->rounds, round - 1), now = round_end(e->s, t->rounds, round);
    if (now == have) continue;
    TRY(block_route(e, rows, have, now - have));
    TRY(block_merge(e, have, now - have));
    int last = now == e->s;
    if (last && !t->codes) break;
    TRY(block_fetch(e, have, now));
    TRY(block_codes(e, solved, now, last));
    solved = now;
    if (last) break;
    rows = &e->residual;
    TRY(block_gather(e, rows, 1));
  }
  tiles_forget(&e->tiles);
  return block_collect(e, out);
}
