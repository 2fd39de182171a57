/* SPDX-License-Identifier: BSD-3-Clause
 * For each superblock, ranks read and describe their rows, agree on a status, and send their
 * entries to rank 0.  Rank 0 receives and writes one rank's entries at a time, so that it holds the
 * entries of two ranks at most. */
#include "encode/imported.h"

#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "encode/cuts.h"
#include "encode/encode_impl.h"
#include "encode/layout.h"
#include "encode/steps.h"
#include "model/access.h"
#include "model/identity.h"

enum {
  READ_ATOMS = 1024,       /* rows of the matrix read at a time */
  ACTIVE_SCORES = 1 << 22, /* scores of a piece of rows, all of which may become entries */
  ACTIVE_FACTOR = 16       /* on a GPU a piece has 16 times as many rows, since few scores become
                            * entries */
};

static int results_alloc(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct imported *m = &e->imported;
  struct arena *a = &e->arena;
  int is_root = e->c->rank == 0;
  gidx turn = is_root ? (gidx)e->groups * e->block : 0, ended = 2 * (e->block / ROW_BLOCK + 1);
  TRY(arena_alloc(a, &m->lengths, e->block, sizeof *m->lengths));
  TRY(arena_alloc(a, &m->all_lengths, turn, sizeof *m->all_lengths));
  TRY(arena_alloc(a, &m->quality, e->block, sizeof *m->quality));
  TRY(arena_alloc(a, &e->qualities, turn, sizeof *e->qualities));
  TRY(arena_alloc(a, &m->ended, ended * e->p, sizeof *m->ended));
  TRY(arena_alloc(a, &e->out_ended, is_root ? e->groups * ended * e->p : 0, sizeof(real)));
  TRY(arena_alloc(a, &e->ended_blocks, e->groups, sizeof *e->ended_blocks));
  TRY(arena_alloc(a, &e->counts, 2 * (gidx)e->c->size, sizeof *e->counts));
  TRY(arena_alloc(a, &m->counts, e->c->size, sizeof *m->counts));
  TRY(arena_alloc(a, &m->start, (gidx)e->block + 1, sizeof *m->start));
  TRY(arena_alloc(a, &e->shift, e->p, sizeof *e->shift));
  e->recv_counts = e->counts ? e->counts + e->c->size : NULL;
  struct arena *kept = &e->result->arena;
  TRY(arena_alloc(kept, &e->result->density, t->atoms->k, sizeof *e->result->density));
  TRY(statistics_init(&e->statistics, kept, &e->group, is_root, e->p, e->shift,
                      t->first / ROW_BLOCK, t->rows->n));
  e->statistics.threads = t->threads; /* nothing else runs meanwhile */
  return OK;
}

/* Memory for the rows as read and for the rows less the mean.  The encoder takes one of the two,
 * which is also on the device. */
static int rows_alloc(struct encode *e)
{
  struct imported *m = &e->imported;
  gidx count = (gidx)e->block * e->p;
  int centered = e->task->encoder->centered;
  TRY(buffer_alloc(&e->device, &m->rows, count * (gidx)sizeof(float)));
  TRY(arena_alloc(&e->arena, centered ? &m->raw : &m->x, count, sizeof(float)));
  *(centered ? &m->x : &m->raw) = m->rows.host;
  return OK;
}

/* If codes are solved: memory for the atoms on the device, and for solving.  The host has the atoms
 * already (shard.h); here they are only counted. */
static int solving_alloc(struct encode *e)
{
  struct imported *m = &e->imported;
  gidx table = (gidx)e->task->atoms->k * e->p * (gidx)sizeof(float);
  if (!e->task->solves) return OK;
  if (e->device.is_dry) TRY(buffer_wrap(&e->device, &m->table, NULL, table));
  TRY(ragged_open(&m->ragged, &e->device, e->p, e->block));
  e->arena.bytes += m->ragged.arena.bytes;
  return OK;
}

/* Rows are described in pieces.  There is room for all scores of a piece as entries.  On a GPU
 * pieces are larger, since few scores become entries; a piece whose entries do not fit is
 * halved. */
static int active_alloc(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct active *a = &e->imported.active;
  idx k = t->atoms->k, least = (idx)imin(e->block, imax(ACTIVE_SCORES / k, 1));
  gidx many = (gidx)least * (device_is_gpu(&e->device) ? ACTIVE_FACTOR : 1);
  if (!encode_is_active(t)) return OK;
  *a = (struct active){.device = &e->device,
                       .most_k = k,
                       .p = e->p,
                       .most_n = (idx)imin(e->block, many),
                       .entries = (gidx)least * k,
                       .threads = t->threads,
                       .relative = t->encoder->active.relative,
                       .floor = t->encoder->active.floor,
                       .arena.is_dry = e->arena.is_dry};
  TRY(active_open(a));
  e->arena.bytes += a->arena.bytes;
  return OK;
}

int imported_alloc(struct encode *e, struct encode_memory *memory)
{
  const struct encode_task *t = e->task;
  struct imported *m = &e->imported;
  gidx start = encode_bytes(e);
  TRY(arena_alloc(&e->arena, &m->weights, (gidx)t->atoms->k * e->p, sizeof *m->weights));
  memory->matrix = encode_bytes(e) - start;
  start += memory->matrix;
  TRY(rows_alloc(e));
  memory->rows = encode_bytes(e) - start;
  start += memory->rows;
  TRY(results_alloc(e));
  TRY(solving_alloc(e));
  TRY(active_alloc(e));
  if (cuts_wanted(t)) TRY(cuts_alloc(e));
  if (t->cuts) TRY(arena_alloc(&e->arena, &m->threshold, t->atoms->k, sizeof *m->threshold));
  memory->codes = encode_bytes(e) - start;
  return OK;
}

/* The rows of the matrix that a rank reads. */
static void weights_partition(const struct encode *e, int rank, gidx *first, gidx *count)
{
  comm_partition(e->task->atoms->k, e->c->size, rank, first, count);
}

int imported_read(struct encode *e)
{
  const struct atom_source *weights = e->task->weights;
  struct imported *m = &e->imported;
  gidx first, end;
  weights_partition(e, e->c->rank, &first, &end);
  end += first;
  for (idx count; first < end; first += count) {
    float *rows = m->weights + first * e->p;
    count = (idx)imin(end - first, READ_ATOMS);
    TRY(weights->read(weights->self, (idx)first, count, rows));
    TRY(rows_check(rows, count, e->p, first, weights->name));
    m->terms += items_terms(rows, count, e->p, first);
  }
  return OK;
}

/* The sum of the ranks' terms becomes the hash of the encoder. */
static int encoder_name(struct encode *e)
{
  const struct encode_task *t = e->task;
  gidx sum = (gidx)e->imported.terms;
  TRY(comm_sum(e->c, &sum, 1));
  uint64_t hash = e->result->inputs.encoder = encoder_hash(t->encoder, (uint64_t)sum);
  int status = OK;
  if (t->encoder_hash && t->encoder_hash != hash)
    status =
        status_fail(ERR_INPUT, __FILE__, __LINE__,
                    "the encoder of '%s' is not the one that the run was begun with: its hash "
                    "is %016llx, not %016llx",
                    t->atoms->name, (unsigned long long)hash, (unsigned long long)t->encoder_hash);
  return comm_agree(e->c, status);
}

/* Open a CPU for the qualities, if the device is a GPU. */
static int host_open(struct encode *e)
{
  const struct encode_task *t = e->task;
  const struct device_options options = {
      .p = e->p, .d = 1, .threads = t->threads, .variant = t->variant, .kind = "cpu"};
  int is_cpu = strcmp(e->device.kind, "cpu") == 0;
  e->result->phases[PHASE_CODES].device = "cpu";
  return is_cpu ? OK : device_open(&e->imported.host, &options);
}

/* Put the atoms on the device, which solves codes with them. */
static int table_put(struct encode *e)
{
  struct imported *m = &e->imported;
  gidx bytes = (gidx)e->task->atoms->k * e->p * (gidx)sizeof(float);
  if (!e->task->solves) return OK;
  TRY(buffer_wrap(&e->device, &m->table, e->shard.atoms, bytes));
  return device_put(&e->device, &m->table, 0, bytes);
}

int imported_broadcast(struct encode *e, int status)
{
  struct imported *m = &e->imported;
  gidx first, count;
  TRY(comm_agree(e->c, status));
  for (int r = 0; r < e->c->size; r++) {
    weights_partition(e, r, &first, &count);
    e->counts[r] = (idx)count;
  }
  weights_partition(e, e->c->rank, &first, &count);
  TRY(comm_allgather(e->c, m->weights + first * e->p, e->counts, (size_t)e->p * sizeof *m->weights,
                     m->weights));
  if (encode_is_active(e->task))
    status = active_atoms(&m->active, e->shard.atoms, e->task->atoms->k, NULL);
  else
    status = device_put_tile(&e->device, m->weights, e->task->atoms->k, 0);
  if (!status) status = host_open(e);
  if (!status) status = table_put(e);
  TRY(comm_agree(e->c, status));
  return encoder_name(e);
}

void imported_free(struct encode *e)
{
  struct imported *m = &e->imported;
  entries_free(&m->mine);
  entries_free(&m->theirs);
  ragged_close(&m->ragged);
  active_close(&m->active);
  buffer_free(&e->device, &m->table);
  buffer_free(&e->device, &m->rows);
  device_close(&m->host);
}

/* Find the active atoms of this rank's rows, and their codes. */
static int active_find(struct encode *e)
{
  struct imported *m = &e->imported;
  struct active *a = &m->active;
  m->start[0] = 0;
  for (idx first = 0, n; first < m->n; first += n) {
    n = (idx)imin(a->most_n, m->n - first);
    a->row = e->task->first + m->first + first;
    TRY(active_encode_some(a, &m->rows, first, &n, &e->task->encoder->active));
    const struct entry_list piece = {a->index, a->score, a->code, a->start[n], 0};
    CHECK(entries_append(&m->mine, &piece), ERR_MEMORY,
          "cannot allocate the codes of %d rows: give a smaller --block", m->n);
    for (idx i = 0; i < n; i++) {
      m->lengths[first + i] = (idx)(a->start[i + 1] - a->start[i]);
      m->start[first + i + 1] = m->start[first + i] + m->lengths[first + i];
    }
  }
  return OK;
}

/* Find supports and codes of this rank's rows.  *key orders failures: the failure of the lowest row
 * is reported. */
static int supports_find(struct encode *e, gidx *key)
{
  struct imported *m = &e->imported;
  struct encoder_job job = {
      .encoder = &m->by, .rows = &m->rows, .n = m->n, .lengths = m->lengths, .found = &m->mine};
  TRY(device_put(&e->device, &m->rows, 0, (gidx)m->n * e->p * (gidx)sizeof(float)));
  if (encode_is_active(e->task)) return active_find(e);
  TRY(device_encoder(&e->device, &job));
  gidx row = e->task->first + m->first + job.bad.row;
  if (job.bad.row >= 0) *key = (row << 31) + job.bad.atom;
  CHECK(job.bad.row < 0, ERR_INPUT,
        "the score of row %lld and atom %d is not a finite float32 number", (long long)row,
        job.bad.atom);
  gidx first = e->task->first + m->first;
  if (e->task->cuts) cuts_entries(&e->task->cuts->at[0], first, m->n, m->lengths, &m->mine);
  m->start[0] = 0;
  for (idx i = 0; i < m->n; i++) m->start[i + 1] = m->start[i] + m->lengths[i];
  return OK;
}

/* Solve the codes of this rank's rows on these supports (N.24k). */
static int codes_solve(struct encode *e, gidx *key)
{
  struct imported *m = &e->imported;
  const struct ragged_job job = {.n = m->n,
                                 .x = m->x,
                                 .start = m->start,
                                 .atoms = m->mine.atoms,
                                 .codes = m->mine.codes,
                                 .table = &m->table,
                                 .rho = e->task->rho};
  idx longest = ragged_long(&job);
  gidx row = e->task->first + m->first + longest;
  if (longest >= 0) *key = row << 31;
  CHECK(longest < 0, ERR_INPUT,
        "row %lld has %lld atoms, but codes are solved on at most %d: give '--codes own', which "
        "solves none",
        (long long)row, (long long)(m->start[longest + 1] - m->start[longest]), RAGGED_MOST);
  return ragged_solve(&m->ragged, &job);
}

/* Read this rank's rows, with their hash terms and column sums. */
static int rows_take(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct phase *read = &e->result->phases[PHASE_READ], *sums = &e->result->phases[PHASE_SUMS];
  struct imported *m = &e->imported;
  gidx global = t->first + m->first;
  size_t bytes = (size_t)m->n * (size_t)e->p * sizeof *m->x;
  phase_begin(read);
  TRY(rows_fetch(&e->files, (struct rows_access){t->rows, m->first, m->n, m->raw}));
  TRY(rows_source_check(encode_whole(t), m->raw, global, m->n));
  e->result->inputs.rows += items_terms(m->raw, m->n, e->p, global);
  memcpy(m->x, m->raw, bytes);
  rows_center(m->x, m->n, e->p, t->mean);
  phase_end(read, m->n * t->rows->row_bytes);
  phase_begin(sums);
  statistics_rows(&e->statistics, m->x, m->first, m->n, m->ended);
  phase_end(sums, (double)bytes);
  return OK;
}

/* Add this rank's entries to density, fingerprint and counts of codes.  The fingerprint numbers an
 * entry by its row and its position in the row, so it does not depend on ranks and parts. */
static void entries_count(struct encode *e)
{
  const struct encode_task *t = e->task;
  const struct imported *m = &e->imported;
  const struct entry_list *l = &m->mine;
  uint64_t sum = 0;
  for (gidx i = 0; i < l->n; i++) e->result->density[l->atoms[i]]++;
  for (idx i = 0; i < m->n; i++) {
    gidx at = (t->first + m->first + i) * e->s, from = m->start[i], n = m->lengths[i];
    sum += fingerprint(l->atoms + from, n, 4, at) + 3 * fingerprint(l->score + from, n, 4, at) +
           5 * fingerprint(l->codes + from, n, 4, at);
  }
  e->result->fingerprint += sum;
  codes_count(&e->statistics.codes, l->codes, l->n);
}

/* Solve the codes of this rank's rows if the task wants it, and compute their quality. */
static int rows_evaluate(struct encode *e, gidx *key)
{
  struct imported *m = &e->imported;
  struct phase *phase = &e->result->phases[PHASE_CODES];
  phase_begin(phase);
  if (e->task->solves) TRY(codes_solve(e, key));
  struct device *host = m->host.backend ? &m->host : &e->device;
  TRY(device_quality(host, &(struct quality_job){.n = m->n,
                                                 .rows = m->x,
                                                 .atoms = e->shard.atoms,
                                                 .start = m->start,
                                                 .support = m->mine.atoms,
                                                 .codes = m->mine.codes,
                                                 .quality = m->quality}));
  phase_end(phase, (double)m->mine.n * 2 * e->p);
  return OK;
}

/* Read and describe this rank's rows of a superblock. */
static int rows_describe(struct encode *e, gidx *key)
{
  const struct encode_task *t = e->task;
  struct imported *m = &e->imported;
  struct phase *phase = &e->result->phases[PHASE_ROUTE];
  if (!m->n) return OK;
  TRY(rows_take(e));
  phase_begin(phase);
  int status = supports_find(e, key);
  phase_end(phase, (double)m->n * t->atoms->k * e->p);
  TRY(status);
  TRY(rows_evaluate(e, key));
  phase_begin(&e->result->phases[PHASE_METRICS]);
  entries_count(e);
  phase_end(&e->result->phases[PHASE_METRICS], 0);
  return OK;
}

/* Rank 0: write the rows of a rank; lengths[n]: the number of entries of each row. */
static int entries_write(struct encode *e, const struct entry_list *l, gidx first, idx n,
                         const idx *lengths)
{
  struct phase *phase = &e->result->phases[PHASE_WRITE];
  struct imported *m = &e->imported;
  phase_begin(phase);
  m->start[0] = 0;
  for (idx i = 0; i < n; i++) m->start[i + 1] = m->start[i] + lengths[i];
  const struct support_block block = {.first = e->task->sink_first + first,
                                      .n = n,
                                      .s = e->s,
                                      .d = 1,
                                      .atoms = l->atoms,
                                      .score = l->score,
                                      .codes = l->codes,
                                      .start = m->start};
  TRY(support_access(&e->files, e->task->sink, &block));
  phase_end(phase, (double)l->n * 12);
  return OK;
}

/* Send the entries of rank r to rank 0, into m->theirs. */
static int entries_gather(struct encode *e, int r)
{
  struct imported *m = &e->imported;
  struct entry_list *to = &m->theirs;
  const struct entry_list *from = &m->mine;
  gidx n = m->counts[r];
  for (int i = 0; i < e->c->size; i++) e->recv_counts[i] = 0;
  TRY(comm_count(n, &e->recv_counts[r]));
  to->n = 0;
  int fits = e->c->rank || entries_reserve(to, n);
  TRY(comm_agree(e->c, fits ? OK
                            : status_fail(ERR_MEMORY, __FILE__, __LINE__,
                                          "cannot allocate %lld codes: give a smaller --block",
                                          (long long)n)));
  to->n = n;
  const struct comm_part parts[] = {
      {from->atoms, to->atoms, e->recv_counts, sizeof *from->atoms},
      {from->score, to->score, e->recv_counts, sizeof *from->score},
      {from->codes, to->codes, e->recv_counts, sizeof *from->codes},
  };
  return comm_gather_parts(e->c, parts, LENGTH(parts));
}

/* Gather lengths, quality and chains of the superblock on rank 0; m->counts <- entries of each
 * rank. */
static int rows_gather(struct encode *e, gidx superblock_first, idx superblock_rows)
{
  struct imported *m = &e->imported;
  TRY(step_ended_count(e, superblock_first, superblock_rows));
  for (int r = 0; r < e->c->size; r++) {
    gidx first, count;
    encode_rank_partition(e, superblock_rows, r, &first, &count);
    e->recv_counts[r] = (idx)count;
  }
  const struct comm_part parts[] = {
      {m->lengths, m->all_lengths, e->recv_counts, sizeof *m->lengths},
      {m->quality, e->qualities, e->recv_counts, sizeof *m->quality},
      {m->ended, e->out_ended, e->counts, sizeof *m->ended},
  };
  TRY(comm_gather_parts(e->c, parts, LENGTH(parts)));
  return comm_allgather_long(e->c, m->mine.n, m->counts);
}

/* Gather the results of a superblock on rank 0, and write them to the sink. */
static int superblock_finish(struct encode *e, gidx superblock_first, idx superblock_rows)
{
  struct phase *phase = &e->result->phases[PHASE_GATHER];
  struct imported *m = &e->imported;
  const idx *lengths = m->all_lengths;
  int is_root = e->c->rank == 0, status = OK;
  double before = e->c->bytes;
  phase_begin(phase);
  TRY(rows_gather(e, superblock_first, superblock_rows));
  phase_end(phase, e->c->bytes - before);
  for (int r = 0; r < e->c->size; r++) {
    gidx first, n;
    encode_rank_partition(e, superblock_rows, r, &first, &n);
    if (!n) continue;
    if (r > 0) TRY(entries_gather(e, r));
    if (!is_root) continue;
    if (!status)
      status =
          entries_write(e, r ? &m->theirs : &m->mine, superblock_first + first, (idx)n, lengths);
    lengths += n;
  }
  if (!is_root) return OK;
  const struct chains chains = {e->out_ended, e->groups, 1, e->ended_blocks};
  statistics_join(&e->statistics, e->qualities, superblock_rows, &chains);
  return status;
}

/* Handle the superblock that begins at a row.  A failure to read or encode is returned on all
 * ranks, a failure to write on rank 0 alone. */
static int repeat_run(struct encode *e, gidx superblock_first, idx superblock_rows)
{
  struct imported *m = &e->imported;
  gidx partition_first, share, key = COMM_NO_KEY;
  encode_rank_partition(e, superblock_rows, e->c->rank, &partition_first, &share);
  m->first = superblock_first + partition_first;
  m->n = (idx)share;
  m->mine.n = 0;
  int status = rows_describe(e, &key);
  TRY(comm_agree_at(e->c, status, key));
  return superblock_finish(e, superblock_first, superblock_rows);
}

/* Set the encoder that finds the supports; find cuts first if they are wanted. */
static int cuts_begin(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct imported *m = &e->imported;
  m->by = *t->encoder;
  if (!t->cuts) return OK;
  if (cuts_wanted(t)) TRY(cuts_find(e));
  m->active.cuts = t->cuts;
  if (t->cuts->floor > 0) m->active.floor = t->cuts->floor;
  m->by = cuts_encoder(t->encoder, t->cuts->at[0].least, m->threshold);
  return OK;
}

int imported_run(struct encode *e)
{
  struct progress progress;
  int status = OK;
  gidx before = e->task->sink_first;
  TRY(cuts_begin(e));
  progress_start(&progress, "encode", "rows", before + e->end);
  progress.before = before;
  while (e->next < e->end) {
    uint64_t asked = encode_stop_asked(e);
    TRY(comm_agree_flags(e->c, status, COMM_NO_KEY, &asked));
    if (asked) {
      e->end = e->next;
      e->task->stops.stopped(e->task->stops.self, asked);
      break;
    }
    idx n = encode_superblock_at(e, e->next);
    status = repeat_run(e, e->next, n);
    if (!status) status = encode_confirm_poll(e);
    e->next += n;
    progress_show(&progress, before + e->next);
  }
  return comm_agree(e->c, status);
}
