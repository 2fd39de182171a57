/* SPDX-License-Identifier: BSD-3-Clause
 * Each step measures its time.  All run on the main thread, in the same order on every rank.  A
 * failure of one rank alone is recorded in its group (comm/failure.h).  The ranks continue until
 * the agreement after the routing, or until the agreement of all ranks in block_cycle(). */
#include "encode/steps.h"

#include <string.h>

#include "base/status.h"
#include "comm/buffers.h"

/* counts[r] <- unit times the rows of the block that rank r of the group has. */
static const idx *partition_counts(struct encode *e, const struct block_in_flight *b, idx unit)
{
  const idx *shares = b->shares + e->number * e->group.size;
  for (int r = 0; r < e->group.size; r++) e->counts[r] = shares[r] * unit;
  return e->counts;
}

int step_allgather(struct encode *e, struct block_in_flight *b, struct buffer *rows,
                   int with_chosen)
{
  struct phase *phase = &e->result->phases[PHASE_ALLGATHER];
  phase_begin(phase);
  double before = e->group.bytes;
  size_t row = (size_t)e->p * sizeof(float), support = (size_t)e->s * sizeof(idx);
  const idx *counts = partition_counts(e, b, 1);
  TRY(comm_allgather_buffer(&e->group, &e->device, rows, counts, row));
  if (with_chosen) TRY(comm_allgather(&e->group, b->atoms, counts, support, b->chosen));
  phase_end(phase, e->group.bytes - before);
  return OK;
}

/* Record a score that is not finite.  Of several such scores, the one of the lowest row is
 * reported. */
static void bad_score_record(struct encode *e, const struct block_in_flight *b, gidx row, idx atom)
{
  gidx key = ((b->first - b->superblock_first + row) << 31) + atom;
  int status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                           "the %s of row %lld and atom %d is not a finite float32 number",
                           e->d == 1 ? "score" : "gate", (long long)(b->first + row), atom);
  comm_record_at(&e->group, status, key);
}

int step_route(struct encode *e, struct block_in_flight *b)
{
  struct phase *phase = &e->result->phases[PHASE_ROUTE];
  phase_begin(phase);
  struct route_job job = {.rows = b->entries_begin > 0 ? &b->residual : b->rows,
                          .n = b->n,
                          .top_k = b->entries_end - b->entries_begin,
                          .excluded = {b->chosen, b->entries_begin, e->s},
                          .lists = &b->lists,
                          .power = e->d > 1 ? &b->power : NULL};
  if (!comm_failure(&e->group)) comm_record(&e->group, device_route(&e->device, &job));
  gidx bytes = (gidx)b->n * job.top_k * (gidx)sizeof(struct entry);
  if (!comm_failure(&e->group))
    comm_record(&e->group, comm_buffer_ready(&e->group, &e->device, &b->lists, bytes));
  if (!comm_failure(&e->group) && job.bad.row >= 0)
    bad_score_record(e, b, job.bad.row, job.bad.atom);
  phase_end(phase, (double)b->n * e->shard.held * e->d * e->p);
  return comm_agree(&e->group, OK);
}

int step_alltoallv(struct encode *e, struct block_in_flight *b)
{
  struct phase *phase = &e->result->phases[PHASE_ALLTOALLV];
  phase_begin(phase);
  double before = e->group.bytes;
  idx top_k = b->entries_end - b->entries_begin;
  int size = e->group.size;
  for (int r = 0; r < size; r++) e->recv_counts[r] = b->mine * top_k;
  TRY(comm_alltoallv_buffer(&e->group, &e->device, &b->lists, partition_counts(e, b, top_k),
                            size > 1 ? &b->received : &b->lists, e->recv_counts,
                            sizeof(struct entry), 1));
  b->routed = 1;
  phase_end(phase, e->group.bytes - before);
  return OK;
}

int step_fetch(struct encode *e, struct block_in_flight *b)
{
  struct phase *phase = &e->result->phases[PHASE_FETCH];
  phase_begin(phase);
  double before = e->group.bytes;
  struct atom_request request = {b->atoms, b->slot.host,     b->mine,
                                 e->s,     b->entries_begin, b->entries_end};
  TRY(table_fetch(&e->shard, b->table, &e->group, &e->device, &request));
  phase_end(phase, e->group.bytes - before);
  return OK;
}

/* Copy codes and quality of this rank's rows to the host. */
static int codes_get(struct encode *e, const struct block_in_flight *b)
{
  gidx codes = (gidx)b->mine * e->s * e->d * (gidx)sizeof(float);
  TRY(device_get(&e->device, &e->codes, 0, codes));
  return device_get(&e->device, &e->quality, 0, b->mine * (gidx)sizeof(struct row_quality));
}

/* Solve codes and quality, or the residuals, of this rank's rows. */
static int codes_solve(struct encode *e, struct block_in_flight *b, int last)
{
  struct buffer atoms;
  TRY(device_put(&e->device, &b->slot, 0, b->mine * (gidx)e->s * (gidx)sizeof(idx)));
  TRY(table_atoms(&e->shard, b->table, &e->device, &atoms));
  struct codes_job job = {.n = b->mine,
                          .m_old = b->solved,
                          .m_new = b->entries_end,
                          .max_m = e->s,
                          .rho = e->task->rho,
                          .first = b->mine_first,
                          .rows = b->rows,
                          .atoms = &atoms,
                          .slot = &b->slot,
                          .state = e->task->rounds > 1 ? &b->state : NULL};
  if (last) {
    job.codes = &e->codes;
    job.quality = &e->quality;
  } else {
    job.residual = &b->residual;
  }
  TRY(device_codes(&e->device, &job));
  return last ? codes_get(e, b) : OK;
}

void step_codes(struct encode *e, struct block_in_flight *b, int last)
{
  struct phase *phase = &e->result->phases[PHASE_CODES];
  phase_begin(phase);
  if (!comm_failure(&e->group)) comm_record(&e->group, codes_solve(e, b, last));
  double old = (double)b->solved * e->d, new = (double)b->entries_end * e->d;
  b->solved = b->entries_end;
  phase_end(phase, (double)b->mine * e->p * ((new *new - old *old) / 2 + 3 * new));
}

int step_ended_count(struct encode *e, gidx superblock_first, idx superblock_rows)
{
  gidx n = e->task->rows->n, first, count;
  for (int r = 0; r < e->c->size; r++) {
    int g = r / e->group.size;
    encode_group_partition(e, superblock_rows, g, &first, &count);
    e->ended_blocks[g] = statistics_blocks(superblock_first + first, count, n);
    comm_partition(e->p, e->group.size, r % e->group.size, &first, &count);
    TRY(comm_count(2 * e->ended_blocks[g] * count, &e->counts[r]));
  }
  return OK;
}

/* by_ranks: copy this rank's results, since the next block overwrites them before they are
 * written. */
static void results_keep(const struct encode *e, const struct block_in_flight *b)
{
  size_t bytes = (size_t)b->mine * (size_t)e->s * 4;
  if (!bytes) return;
  memcpy(b->out_atoms, b->atoms, bytes);
  memcpy(b->out_score, b->score, bytes);
  if (e->task->codes) memcpy(b->out_codes, e->codes.host, bytes * (size_t)e->d);
}

int step_gather(struct encode *e, struct block_in_flight *b)
{
  enum {
    WRITTEN = 3,
    ALL = 5
  }; /* numbers of parts; the first WRITTEN parts are written to the file */
  int first = e->task->by_ranks ? WRITTEN : 0, end = e->task->codes ? ALL : WRITTEN - 1;
  struct phase *phase = &e->result->phases[PHASE_GATHER];
  phase_begin(phase);
  double before = e->c->bytes;
  const idx *rows = b->shares;
  size_t bytes = (size_t)e->s * 4;
  const struct comm_part parts[ALL] = {
      {b->atoms, b->out_atoms, rows, bytes},
      {b->score, b->out_score, rows, bytes},
      {e->codes.host, b->out_codes, rows, bytes * (size_t)e->d},
      {e->quality.host, e->qualities, rows, sizeof *e->qualities},
      {b->ended, e->out_ended, e->counts, sizeof *b->ended},
  };
  TRY(step_ended_count(e, b->superblock_first, b->superblock_rows));
  if (e->task->by_ranks) results_keep(e, b);
  if (first < end) TRY(comm_gather_parts(e->c, parts + first, end - first));
  phase_end(phase, e->c->bytes - before);
  return OK;
}
