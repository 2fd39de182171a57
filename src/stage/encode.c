/* SPDX-License-Identifier: BSD-3-Clause
 * The pipeline.  One background worker per rank does all file access: while a block is computed it
 * writes the block before and reads the block after. */
#include "stage/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/worker.h"
#include "stage/statistics.h"
#include "stage/tiles.h"

/* The larger one fills the multiprocessors of a GPU several times over. */
enum { BLOCK_MOST = 4096, BLOCK_MOST_LARGE = 16384, BLOCK_LEAST = 256 };
static const gidx MEMORY_AIM = (gidx)1 << 30; /* of what grows with the block */

/* What the worker does behind the computation of a block: column sums of the block before, whose
 * place the block after takes, writing and reading. */
struct file_job {
  struct statistics *statistics;
  const float *summed; /* [summed_count][p] */
  idx summed_count;
  const struct encode_task *task;
  gidx read_first;
  idx read_count;
  struct device *device;
  const struct buffer *read_into;
  gidx read_at;               /* bytes */
  struct support_block write; /* n = 0: nothing */
  struct phase *summing, *reading, *copying, *writing;
};

struct encode {
  const struct encode_task *task;
  struct comm *c;
  struct encode_result *result;
  struct device device;
  struct tiles tiles;
  struct statistics statistics;
  struct worker worker;
  struct file_job job;
  struct arena arena;
  idx p, d, s, block;
  real *shift;            /* [p] */
  struct buffer rows[2];  /* float [block][p] all rows of a block; one is computed, one is read */
  struct buffer residual; /* float [block][p], rounds > 1 */
  struct buffer lists;    /* struct entry [block][take] of own tiles */
  struct buffer received; /* struct entry [size][share][take] */
  struct buffer slot;     /* idx [share][s] */
  struct buffer codes;    /* float [share][s][d] */
  struct buffer state;    /* [share] blocks of codes_state(), rounds > 1 */
  struct buffer quality;  /* struct row_quality [share] */
  idx *chosen;            /* [block][s] supports so far of all rows, rounds > 1 */
  idx *atoms;             /* [share][s] supports of own rows; -1: not chosen yet */
  float *score;           /* [share][s] */
  struct row_quality *qualities; /* [block], rank 0 */
  idx *out_atoms[2];             /* [block][s], rank 0; and so on */
  float *out_score[2], *out_codes[2];
  idx *shares, *counts, *other; /* [size] */
  /* of the block in work */
  gidx first;
  idx n, mine, mine_first;
  int turn; /* which of the two buffers */
};

static int share_most(idx block, int size)
{
  return (block + size - 1) / size;
}

void encode_memory(const struct encode_task *t, int ranks, struct encode_memory *m)
{
  gidx p = t->atoms->p, s = t->top_s, d = t->atoms->d, block = t->block, vectors = s * d;
  gidx share = share_most(t->block, ranks);
  struct tiling tiling = {t->atoms->k, t->tile, ranks};
  int several = t->rounds > 1;
  m->dictionary = 2 * (gidx)tiling_held(&tiling, 0) * d * p * (gidx)sizeof(float);
  m->rows = (3 + several) * block * p * (gidx)sizeof(float);
  m->lists = block * s * (gidx)(sizeof(struct entry) + 4 * sizeof(idx)) +
             share * s * (gidx)sizeof(struct entry) * ranks;
  m->codes = (t->codes ? 3 * block * vectors * (gidx)sizeof(float) : 0) +
             (several ? share * (vectors * vectors + 4 * vectors) * (gidx)sizeof(real) : 0);
  gidx wanted = share * s < t->atoms->k ? share * s : t->atoms->k;
  m->table = ranks > 1 && (t->codes || several) ? 2 * wanted * d * p * (gidx)sizeof(float) : 0;
}

double encode_work(const struct encode_task *t)
{
  const struct atom_source *atoms = t->atoms;
  return (double)t->rows->n * atoms->k * atoms->d * atoms->p * t->rounds;
}

idx encode_block(const struct encode_task *task, int ranks)
{
  struct encode_task trial = *task;
  int maybe = task->device && strcmp(task->device, "cpu");
  int large = maybe && encode_work(task) >= DEVICE_BREAK_EVEN;
  for (trial.block = large ? BLOCK_MOST_LARGE : BLOCK_MOST; trial.block > BLOCK_LEAST;
       trial.block /= 2) {
    struct encode_memory m;
    encode_memory(&trial, ranks, &m);
    if (m.rows + m.lists + m.codes + m.table <= MEMORY_AIM) break;
  }
  gidx n = task->rows->n > 0 ? task->rows->n : 1;
  return n < trial.block ? (idx)n : trial.block;
}

static int device_buffers_take(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct device *dev = &e->device;
  gidx block = e->block, share = share_most(e->block, e->c->size), s = e->s;
  gidx rows = block * e->p * (gidx)sizeof(float), entry = sizeof(struct entry);
  int several = t->rounds > 1;
  for (int b = 0; b < 2; b++) TRY(device_take(dev, &e->rows[b], rows));
  TRY(device_take(dev, &e->lists, block * s * entry));
  if (e->c->size > 1) TRY(device_take(dev, &e->received, e->c->size * share * s * entry));
  if (several) {
    TRY(device_take(dev, &e->residual, rows));
    TRY(device_hold(dev, &e->state, share * codes_state(dev, (idx)s, t->rho)));
  }
  TRY(device_take(dev, &e->slot, share * s * (gidx)sizeof(idx)));
  if (t->codes) TRY(device_take(dev, &e->codes, share * s * e->d * (gidx)sizeof(float)));
  return device_take(dev, &e->quality, share * (gidx)sizeof(struct row_quality));
}

static void device_buffers_drop(struct encode *e)
{
  struct buffer *const all[] = {&e->rows[0], &e->rows[1], &e->lists, &e->received, &e->residual,
                                &e->state,   &e->slot,    &e->codes, &e->quality};
  for (int i = 0; i < LENGTH(all); i++) device_drop(&e->device, all[i]);
}

static int buffers_take(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct arena *a = &e->arena;
  gidx block = e->block, share = share_most(e->block, e->c->size), s = e->s, vectors = s * e->d;
  int root = e->c->rank == 0;
  TRY(device_buffers_take(e));
  TRY(arena_take(a, &e->chosen, t->rounds > 1 ? block * s : 0, sizeof *e->chosen));
  TRY(arena_take(a, &e->shift, e->p, sizeof *e->shift));
  TRY(arena_take(a, &e->atoms, share * s, sizeof *e->atoms));
  TRY(arena_take(a, &e->score, share * s, sizeof *e->score));
  TRY(arena_take(a, &e->qualities, root ? block : 0, sizeof *e->qualities));
  TRY(arena_take(a, &e->shares, 3 * (gidx)e->c->size, sizeof *e->shares));
  e->counts = e->shares + e->c->size;
  e->other = e->counts + e->c->size;
  for (int b = 0; b < 2; b++) {
    TRY(arena_take(a, &e->out_atoms[b], root ? block * s : 0, sizeof *e->out_atoms[b]));
    TRY(arena_take(a, &e->out_score[b], root ? block * s : 0, sizeof *e->out_score[b]));
    TRY(arena_take(a, &e->out_codes[b], root && t->codes ? block * vectors : 0,
                   sizeof *e->out_codes[b]));
  }
  return statistics_init(&e->statistics, a, e->c, e->p, e->shift);
}

/* Column shifts of the metrics, from the first rows, on rank 0 for all. */
static int shift_find(struct encode *e)
{
  const struct row_source *rows = e->task->rows;
  idx n = rows->n < SHIFT_ROWS ? (idx)rows->n : SHIFT_ROWS;
  int status = OK;
  if (e->c->rank == 0 && n > 0) {
    struct arena arena = {0};
    float *x = NULL;
    status = arena_take(&arena, &x, (gidx)n * e->p, sizeof *x);
    if (!status) status = rows->read(rows->self, 0, n, x);
    if (!status) rows_center(x, n, e->p, e->task->mean);
    if (!status) status = rows_check(x, n, e->p, 0, rows->name);
    if (!status) rows_shift(x, n, e->p, e->shift);
    arena_free(&arena);
  }
  TRY(comm_agree(e->c, status));
  return comm_broadcast(e->c, e->shift, e->p, sizeof *e->shift);
}

static int file_job_run(void *argument)
{
  struct file_job *j = argument;
  const struct encode_task *t = j->task;
  idx p = t->rows->p;
  if (j->summed_count > 0) {
    phase_begin(j->summing);
    statistics_rows(j->statistics, j->summed, j->summed_count, p);
    phase_end(j->summing, (double)j->summed_count * p * (double)sizeof *j->summed);
  }
  if (j->write.n > 0) {
    phase_begin(j->writing);
    TRY(t->sink->write(t->sink->self, &j->write));
    phase_end(j->writing, (double)j->write.n * j->write.s * 4 * (t->codes ? 3 : 2));
  }
  if (j->read_count > 0) {
    phase_begin(j->reading);
    float *x = (float *)((char *)j->read_into->host + j->read_at);
    TRY(t->rows->read(t->rows->self, j->read_first, j->read_count, x));
    rows_center(x, j->read_count, p, t->mean);
    TRY(rows_check(x, j->read_count, p, j->read_first, t->rows->name));
    phase_end(j->reading, (double)j->read_count * t->rows->row_bytes);
    gidx bytes = (gidx)j->read_count * p * (gidx)sizeof *x;
    phase_begin(j->copying);
    TRY(device_put(j->device, j->read_into, j->read_at, bytes));
    phase_end(j->copying, (double)bytes);
  }
  return OK;
}

/* Let the worker write `block` (NULL: nothing) and read this rank's share of the block at first. */
static int files_start(struct encode *e, const struct support_block *block, gidx first, int turn)
{
  gidx n = e->task->rows->n - first, share_first, share;
  n = n < 0 ? 0 : n < e->block ? n : e->block;
  comm_share(n, e->c->size, e->c->rank, &share_first, &share);
  e->job = (struct file_job){.task = e->task,
                             .statistics = &e->statistics,
                             .summed = e->rows[!e->turn].host,
                             .summed_count = e->task->codes ? e->n : 0,
                             .summing = &e->result->phases[PHASE_SUMS],
                             .read_first = first + share_first,
                             .read_count = (idx)share,
                             .device = &e->device,
                             .read_into = &e->rows[turn],
                             .read_at = share_first * e->p * (gidx)sizeof(float),
                             .reading = &e->result->phases[PHASE_READ],
                             .copying = &e->result->phases[PHASE_COPY],
                             .writing = &e->result->phases[PHASE_WRITE]};
  if (block) e->job.write = *block;
  return worker_start(&e->worker, file_job_run, &e->job);
}

static int files_wait(struct encode *e)
{
  phase_begin(&e->result->phases[PHASE_WAIT]);
  int status = worker_wait(&e->worker, e->c->deadline);
  TRY(comm_agree(e->c, status));
  phase_end(&e->result->phases[PHASE_WAIT], 0);
  return OK;
}

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

static int block_encode(struct encode *e, struct support_block *out)
{
  const struct encode_task *t = e->task;
  struct buffer *rows = &e->rows[e->turn];
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

static int blocks_run(struct encode *e)
{
  gidx n = e->task->rows->n;
  struct progress progress;
  struct support_block done = {0};
  progress_start(&progress, e->task->codes ? "encode" : "route", "rows", n);
  TRY(comm_agree(e->c, files_start(e, NULL, 0, 0)));
  for (gidx first = 0; first < n; first += e->block) {
    TRY(files_wait(e));
    TRY(comm_agree(e->c, files_start(e, &done, first + e->block, !e->turn)));
    block_begin(e, first);
    TRY(block_encode(e, &done));
    e->turn = !e->turn;
    progress_show(&progress, first + e->n);
  }
  TRY(files_wait(e));
  TRY(comm_agree(e->c, files_start(e, &done, n, 0)));
  return files_wait(e);
}

/* Largest decoder cosine, where K is small enough. */
static int cosine_find(struct encode *e)
{
  struct phase *phase = &e->result->phases[PHASE_COSINE];
  gidx k = e->tiles.tiling.k;
  e->result->metrics.max_decoder_cosine = canonical_nan();
  if (k > e->task->cosine_most) return OK;
  phase_begin(phase);
  TRY(tiles_cosine(&e->tiles, e->c, &e->device, e->block, &e->result->metrics.max_decoder_cosine));
  phase_end(phase, (double)k * e->d * e->tiles.held * e->d * e->p);
  return OK;
}

static int result_finish(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct metrics *m = &e->result->metrics;
  struct phase *phase = &e->result->phases[PHASE_METRICS];
  phase_begin(phase);
  gidx sum = (gidx)e->result->fingerprint;
  TRY(comm_sum(e->c, &sum, 1));
  e->result->fingerprint = (uint64_t)sum;
  TRY(comm_sum(e->c, e->result->density, e->tiles.tiling.k));
  if (t->codes) TRY(statistics_finish(&e->statistics, e->c, e->p, m));
  metrics_density(m, e->result->density, t->rows->n, e->tiles.tiling.k);
  phase_end(phase, 0);
  return cosine_find(e);
}

static const char *const phase_names[ENCODE_PHASES] = {"read",  "copy",   "gather", "route",
                                                       "merge", "fetch",  "codes",  "metrics",
                                                       "sums",  "cosine", "write",  "wait"};
static const char *const phase_units[ENCODE_PHASES] = {"GB",   "GB", "GB", "GMAC", "GB", "GB",
                                                       "GMAC", NULL, "GB", "GMAC", "GB", NULL};

static int encode_open(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct tiling tiling = {t->atoms->k, t->tile, e->c->size};
  struct device_options options = {.p = e->p,
                                   .d = e->d,
                                   .atoms_most = tiling_held(&tiling, e->c->rank),
                                   .threads = t->threads,
                                   .variant = t->variant,
                                   .kind = t->device,
                                   .work = encode_work(t),
                                   .local_rank = e->c->local_rank,
                                   .kernels = t->kernels};
  TRY(device_check_subnormals(t->threads));
  TRY(device_open(&e->device, &options));
  if (!strcmp(e->device.kind, "cpu") && (t->codes || t->rounds > 1)) TRY(device_check_fma());
  e->result->density = calloc((size_t)t->atoms->k, sizeof *e->result->density);
  CHECK(e->result->density, ERR_MEMORY, "cannot allocate %d counts", t->atoms->k);
  e->result->phases[PHASE_ROUTE].device = e->result->phases[PHASE_COSINE].device = e->device.kind;
  e->result->phases[PHASE_CODES].device = e->device.kind;
  TRY(buffers_take(e));
  return worker_open(&e->worker);
}

/* What ran where, for the report; the device is about to be closed. */
static void device_note(struct encode *e)
{
  struct encode_result *r = e->result;
  r->device = e->device.kind;
  snprintf(r->variant, sizeof r->variant, "%s", e->device.variant);
  r->counts = e->device.counts;
}

int encode_run(const struct encode_task *task, struct comm *c, struct encode_result *result)
{
  struct encode e = {.task = task, .c = c, .result = result};
  e.p = task->rows->p;
  e.d = task->atoms->d;
  e.s = task->top_s;
  e.block = task->block;
  *result = (struct encode_result){0};
  for (int i = 0; i < ENCODE_PHASES; i++)
    result->phases[i] = (struct phase){.name = phase_names[i], .unit = phase_units[i]};
  TRY(comm_agree(c, encode_open(&e)));
  TRY(comm_devices(c, &e.device));
  TRY(tiles_load(&e.tiles, c, task->atoms, task->tile, task->normalize, &e.device));
  TRY(shift_find(&e));
  TRY(blocks_run(&e));
  worker_close(&e.worker);
  TRY(result_finish(&e));
  device_note(&e);
  comm_devices_close(c);
  tiles_free(&e.tiles, &e.device);
  device_buffers_drop(&e);
  device_close(&e.device);
  arena_free(&e.arena);
  return OK;
}

void encode_free(struct encode_result *result)
{
  free(result->density);
  *result = (struct encode_result){0};
}
