/* SPDX-License-Identifier: BSD-3-Clause
 * All memory of an encode job.  A forecast makes the same allocations on a device and arenas that
 * only count bytes.  It may count more than the job takes (rows_alloc). */
#include "encode/layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"

/* MAX_BLOCK_LARGE fills the multiprocessors of a GPU several times over. */
enum { MAX_BLOCK = 4096, MAX_BLOCK_LARGE = 16384, MIN_BLOCK = 256 };
static const gidx MEMORY_AIM = (gidx)1 << 30; /* aim for the bytes that grow with the block */

static gidx max_partition(const struct encode *e)
{
  return ceil_div(e->block, e->group.size);
}

/* The largest number of rows of a superblock. */
static gidx max_superblock(const struct encode *e)
{
  return (gidx)e->groups * e->block;
}

/* The largest number of rows of a superblock whose results this rank writes. */
static gidx max_written(const struct encode *e)
{
  if (e->task->by_ranks) return max_partition(e);
  return e->c->rank == 0 ? max_superblock(e) : 0;
}

/* Sum blocks that may end in a group's block. */
static gidx max_ended(const struct encode *e)
{
  return e->block / ROW_BLOCK + 1;
}

gidx encode_bytes(const struct encode *e)
{
  return (gidx)(e->arena.bytes + e->result->arena.bytes) +
         imax(e->device.planned_host, e->device.planned_device);
}

/* The part of encode_bytes() that is in host memory. */
static gidx encode_host_bytes(const struct encode *e)
{
  int gpu = strcmp(e->device.kind, "cpu") != 0;
  return gpu ? (gidx)(e->arena.bytes + e->result->arena.bytes) + e->device.planned_host
             : encode_bytes(e);
}

int encode_rows_made(const struct row_source *rows, const struct device *dev)
{
  return rows->make && device_is_gpu(dev) && rows->gpu == dev->gpu.number;
}

/* Rows that are computed on the GPU, and are not exchanged, have no host side.  Forecasts must be
 * the same on all ranks, but the GPUs of ranks may have different free memory.  So they count the
 * host side. */
static int rows_alloc(struct encode *e)
{
  gidx bytes = (gidx)e->block * e->p * (gidx)sizeof(float);
  int stay = !e->device.is_dry && e->group.size == 1 && encode_rows_made(e->task->rows, &e->device);
  for (int i = 0; i < ROW_BUFFERS; i++)
    TRY((stay ? buffer_alloc_device : buffer_alloc)(&e->device, &e->rows[i], bytes));
  for (int i = 0; i < BLOCKS_IN_FLIGHT && e->task->rounds > 1; i++) {
    struct buffer *residual = &e->in_flight[i].residual; /* a single rank sends none */
    TRY(e->group.size > 1 ? buffer_alloc(&e->device, residual, bytes)
                          : buffer_alloc_device(&e->device, residual, bytes));
  }
  return OK;
}

/* Lists and supports of one block in flight. */
static int supports_alloc(struct encode *e, struct block_in_flight *b)
{
  struct device *dev = &e->device;
  struct arena *a = &e->arena;
  int size = e->group.size;
  gidx share = max_partition(e), s = e->s, entries = e->block * s, entry = sizeof(struct entry);
  gidx out = max_written(e) * s;
  TRY(buffer_alloc(dev, &b->lists, entries * entry));
  if (e->d > 1) TRY(buffer_alloc(dev, &b->power, e->block * (gidx)sizeof(idx)));
  if (size > 1) TRY(buffer_alloc(dev, &b->received, size * share * s * entry));
  TRY(buffer_alloc(dev, &b->slot, share * s * (gidx)sizeof(idx)));
  TRY(arena_alloc(a, &b->shares, e->c->size, sizeof *b->shares));
  TRY(arena_alloc(a, &b->chosen, e->task->rounds > 1 ? entries : 0, sizeof *b->chosen));
  TRY(arena_alloc(a, &b->atoms, share * s, sizeof *b->atoms));
  TRY(arena_alloc(a, &b->score, share * s, sizeof *b->score));
  TRY(arena_alloc(a, &b->out_atoms, out, sizeof *b->out_atoms));
  return arena_alloc(a, &b->out_score, out, sizeof *b->out_score);
}

static int lists_alloc(struct encode *e)
{
  for (int i = 0; i < BLOCKS_IN_FLIGHT; i++) TRY(supports_alloc(e, &e->in_flight[i]));
  TRY(arena_alloc(&e->result->arena, &e->result->density, e->task->atoms->k,
                  sizeof *e->result->density));
  TRY(arena_alloc(&e->arena, &e->counts, 2 * (gidx)e->c->size, sizeof *e->counts));
  e->recv_counts = e->counts ? e->counts + e->c->size : NULL;
  return OK;
}

/* What a GPU needs to preprocess rows, and to sum this rank's columns. */
static int preprocess_alloc(struct encode *e)
{
  const struct statistics *s = &e->statistics;
  return preprocess_open(&e->preprocess, &e->device,
                         &(struct preprocess_shape){.p = e->p,
                                                    .block = e->block,
                                                    .first = s->first,
                                                    .count = e->task->codes ? s->count : 0,
                                                    .n = s->n,
                                                    .mean = e->task->mean});
}

static int codes_alloc(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct device *dev = &e->device;
  gidx share = max_partition(e), codes = (gidx)e->s * e->d;
  gidx out = e->c->rank == 0 ? max_superblock(e) : 0, columns = ceil_div(e->p, e->group.size);
  for (int i = 0; i < BLOCKS_IN_FLIGHT; i++) {
    struct block_in_flight *b = &e->in_flight[i];
    TRY(arena_alloc(&e->arena, &b->out_codes, t->codes ? max_written(e) * codes : 0,
                    sizeof(float)));
    TRY(arena_alloc(&e->arena, &b->ended, 2 * max_ended(e) * columns, sizeof *b->ended));
    if (t->rounds > 1)
      TRY(buffer_alloc_device(dev, &b->state, share * device_codes_state_bytes(dev, e->s, t->rho)));
  }
  if (t->codes) TRY(buffer_alloc(dev, &e->codes, share * codes * (gidx)sizeof(float)));
  TRY(buffer_alloc(dev, &e->quality, share * (gidx)sizeof(struct row_quality)));
  TRY(arena_alloc(&e->arena, &e->qualities, out, sizeof *e->qualities));
  TRY(arena_alloc(&e->arena, &e->shift, e->p, sizeof *e->shift));
  gidx ended = e->c->rank == 0 ? 2 * max_ended(e) * e->groups * e->p : 0;
  TRY(arena_alloc(&e->arena, &e->out_ended, ended, sizeof *e->out_ended));
  TRY(arena_alloc(&e->arena, &e->ended_blocks, e->groups, sizeof *e->ended_blocks));
  TRY(statistics_init(&e->statistics, &e->result->arena, &e->group, e->c->rank == 0, e->p, e->shift,
                      t->first / ROW_BLOCK, t->rows->n));
  return device_is_gpu(&e->device) ? preprocess_alloc(e) : OK;
}

/* The atoms that a table keeps: one request, and its share of the rest of MEMORY_AIM.  The rest is
 * what is left after `held` bytes, one outgoing request and one request per table. */
static gidx max_kept(const struct encode *e, int tables, gidx held)
{
  gidx atom = (gidx)e->d * e->p * (gidx)sizeof(float), request = e->max_request;
  gidx left = MEMORY_AIM - held - (1 + tables) * request * atom;
  return imin(request + imax(left / (tables * atom), 0), e->task->atoms->k);
}

/* How many different atoms `rows` rows of s atoms ask for if all atoms are equally likely, and 2 %
 * more for chance.  If some atoms are used more than others, the number is smaller. */
static gidx atoms_expected(const struct encode *e, gidx rows, idx s)
{
  gidx k = e->task->atoms->k;
  double named = -expm1((double)rows * log1p(-imin(s, k - 1) / (double)k));
  return imin(k, (gidx)ceil(1.02 * (double)k * named) + s);
}

/* On CPUs a table takes its memory at the first fetch, so that it is never copied into a longer one
 * and a plan knows its size.  On a GPU, whose free memory is not known here, a table grows as atoms
 * come. */
static void fetched_expect(struct encode *e, int tables)
{
  const struct encode_task *t = e->task;
  gidx share = max_partition(e), n = imin(t->rows->n, (gidx)1 << 40);
  gidx group = imin(n, ceil_div(ceil_div(n, ROW_BLOCK), e->groups) * ROW_BLOCK);
  gidx rows = ceil_div(ceil_div(group, e->group.size), tables);
  idx each = (idx)ceil_div(e->s, t->rounds);
  if (device_is_gpu(&e->device) || t->is_endless) return;
  for (int i = 0; i < tables; i++)
    e->tables[i].expected = imin(atoms_expected(e, rows, e->s), e->tables[i].max);
  double own = (double)e->shard.held / t->atoms->k;
  e->shard.expected =
      (gidx)ceil(own * e->group.size * (double)atoms_expected(e, imin(share, rows), each));
}

/* Blocks share a table, unless they have several rounds: slots must stay valid between rounds. */
static int tables_alloc(struct encode *e, gidx held)
{
  int several = e->task->rounds > 1, tables = several ? BLOCKS_IN_FLIGHT : 1;
  e->max_request = (idx)imin(max_partition(e) * e->s, e->task->atoms->k);
  gidx kept = e->task->codes || several ? max_kept(e, tables, held) : e->max_request;
  for (int i = 0; i < tables; i++)
    TRY(table_init(&e->tables[i], &e->shard, &e->arena, kept, e->max_request));
  fetched_expect(e, tables);
  for (int i = 0; i < BLOCKS_IN_FLIGHT; i++) e->in_flight[i].table = &e->tables[i % tables];
  return OK;
}

int encode_alloc(struct encode *e, struct encode_memory *m)
{
  if (e->task->encoder) return imported_alloc(e, m);
  gidx start = encode_bytes(e);
  TRY(rows_alloc(e));
  m->rows = encode_bytes(e) - start;
  TRY(lists_alloc(e));
  m->lists = encode_bytes(e) - start - m->rows;
  TRY(codes_alloc(e));
  gidx held = encode_bytes(e) - start;
  m->codes = held - m->rows - m->lists;
  TRY(tables_alloc(e, held));
  m->places = encode_bytes(e) - start - held;
  return OK;
}

void buffers_free(struct encode *e)
{
  for (int i = 0; i < ROW_BUFFERS; i++) buffer_free(&e->device, &e->rows[i]);
  for (int i = 0; i < BLOCKS_IN_FLIGHT; i++) {
    struct block_in_flight *b = &e->in_flight[i];
    struct buffer *const own[] = {&b->lists, &b->power,    &b->received,
                                  &b->slot,  &b->residual, &b->state};
    for (int j = 0; j < LENGTH(own); j++) buffer_free(&e->device, own[j]);
    table_free(&e->tables[i], &e->device);
  }
  buffer_free(&e->device, &e->codes);
  buffer_free(&e->device, &e->quality);
  preprocess_close(&e->preprocess);
}

/* On a dry device: grow the tables and the outgoing buffer.  A group of one rank is skipped: it
 * fetches only if its GPU is short of memory. */
static int fetched_alloc(struct encode *e)
{
  int tables = e->task->rounds > 1 ? BLOCKS_IN_FLIGHT : 1;
  if (e->group.size == 1 || !(e->task->codes || e->task->rounds > 1)) return OK;
  return fetch_dry(&e->shard, e->tables, tables, &e->group, &e->device, e->max_request);
}

int encode_memory(const struct encode_task *task, int ranks, int rank, struct encode_memory *m)
{
  struct comm c = {.size = ranks, .rank = rank};
  struct encode_result result = {.arena = {.is_dry = 1}};
  struct encode e;
  encode_init(&e, task, &c, &result);
  e.arena.is_dry = e.shard.arena.is_dry = 1;
  *m = (struct encode_memory){0};
  struct device_options options = encode_device_options(&e);
  device_open_dry(&e.device, &options, &m->forms);
  TRY(shard_alloc(&e.shard));
  m->atoms = (gidx)e.shard.arena.bytes;
  TRY(encode_alloc(&e, m));
  gidx held = encode_bytes(&e);
  TRY(fetched_alloc(&e));
  m->fetched = encode_bytes(&e) - held;
  int gpu = strcmp(e.device.kind, "cpu") != 0;
  m->host = m->atoms + encode_host_bytes(&e) + (gpu ? 0 : m->forms);
  m->device = gpu ? m->forms + e.device.planned_device : 0;
  return OK;
}

static int memory_check(const struct encode_task *task, const struct comm *c)
{
  struct encode_memory m;
  gidx present = memory_per_process(c->local_size);
  TRY(encode_memory(task, c->size, c->rank, &m));
  CHECK(m.host <= present, ERR_MEMORY,
        "%lld bytes are needed (dictionary %lld, encoder %lld, rows %lld, lists %lld, codes %lld, "
        "fetched atoms %lld), %lld are present for each rank: %s, or give a smaller --block, which "
        "has fewer rows and codes",
        (long long)m.host, (long long)m.atoms, (long long)m.matrix, (long long)m.rows,
        (long long)m.lists, (long long)m.codes, (long long)(m.places + m.fetched),
        (long long)present,
        task->encoder ? "each rank has the whole encoder, so take fewer ranks, with more threads"
                      : "take more machines, so that each holds fewer atoms");
  return OK;
}

int encode_memory_check(const struct encode_task *task, struct comm *c)
{
  return comm_agree(c, memory_check(task, c)); /* no rank allocates before all have checked */
}

double encode_work(const struct encode_task *t)
{
  const struct atom_source *atoms = t->atoms;
  if (t->is_endless) return INFINITY;
  return (double)t->rows->n * atoms->k * atoms->d * atoms->p * t->rounds;
}

/* Is the memory that grows with the block within MEMORY_AIM? */
static int block_fits(const struct encode_task *task, int ranks)
{
  struct encode_memory m;
  if (encode_memory(task, ranks, 0, &m)) {
    status_clear(); /* more bytes than can be counted */
    return 0;
  }
  return m.rows + m.lists + m.codes + m.fetched <= MEMORY_AIM;
}

idx encode_block_rows(const struct encode_task *task, int ranks)
{
  struct encode_task trial = *task;
  int may_have_gpu = task->device && strcmp(task->device, "cpu");
  int large = may_have_gpu && encode_work(task) >= DEVICE_BREAK_EVEN;
  idx least = task->groups > 1 ? ROW_BLOCK : MIN_BLOCK;
  trial.block = large ? MAX_BLOCK_LARGE : MAX_BLOCK;
  while (trial.block > least && !block_fits(&trial, ranks)) trial.block /= 2;
  return (idx)imin(imax(task->rows->n, 1), trial.block);
}

void encode_cut_choose(struct encode_task *task, int ranks)
{
  idx k = task->atoms->k;
  if (!task->tile) task->tile = tile_width_default(k, ranks / imax(task->groups, 1));
  task->tile = (idx)imin(task->tile, k);
  if (!task->block) task->block = encode_block_rows(task, ranks);
  task->block = encode_block_whole(task->groups, task->block);
}

/* The smallest memory limits of all ranks. */
struct limits {
  gidx host, device;
};

static int limits_find(const struct encode_task *task, struct comm *c, struct limits *most)
{
  struct device_options options = {
      .kind = task->device, .work = encode_work(task), .local_rank = c->local_rank};
  gidx *all = malloc((size_t)c->size * sizeof *all), mine[2] = {memory_per_process(c->local_size)};
  int status =
      all ? device_memory(&options, c->local_size, &mine[1])
          : status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate %d limits", c->size);
  TRY(comm_agree(c, status));
  for (int i = 0; i < LENGTH(mine); i++) {
    TRY(comm_allgather_long(c, mine[i], all));
    for (int r = 0; r < c->size; r++) mine[i] = imin(mine[i], all[r]);
  }
  free(all);
  *most = (struct limits){mine[0], mine[1]};
  return OK;
}

/* Does the job fit in the memory of every rank and GPU if the ranks form this many groups? */
static int groups_fit(const struct encode_task *task, int ranks, int groups,
                      const struct limits *most, struct encode_memory *m)
{
  struct encode_task trial = *task;
  trial.groups = groups;
  encode_cut_choose(&trial, ranks);
  if (encode_memory(&trial, ranks, 0, m)) {
    status_clear(); /* more bytes than can be counted */
    return 0;
  }
  return m->host <= most->host && m->device <= most->device;
}

int encode_grid_choose(struct encode_task *task, struct comm *c, char *reason, size_t capacity)
{
  struct limits most = {0};
  struct encode_memory m, refused = {0};
  gidx blocks = imax(ceil_div(task->rows->n, ROW_BLOCK), 1);
  int atoms = 1, fits = 0, short_of_rows = 0;
  TRY(limits_find(task, c, &most));
  for (int a = 1; a <= c->size && !fits; a++) {
    if (c->size % a) continue;
    atoms = a;
    if (c->size / a > blocks) {
      short_of_rows = 1;
      continue;
    }
    fits = groups_fit(task, c->size, c->size / a, &most, &m);
    if (!fits && !refused.host) refused = m;
  }
  task->groups = c->size / atoms;
  encode_cut_choose(task, c->size);
  if (!fits)
    snprintf(reason, capacity, "memory is short even with one group");
  else if (refused.device > most.device)
    snprintf(reason, capacity, "in more groups a GPU would need %lld of %lld bytes",
             (long long)refused.device, (long long)most.device);
  else if (refused.host)
    snprintf(reason, capacity, "in more groups a rank would need %lld of %lld bytes",
             (long long)refused.host, (long long)most.host);
  else if (short_of_rows)
    snprintf(reason, capacity,
             "%lld rows are only %lld sum blocks of %d rows: too few for more groups",
             (long long)task->rows->n, (long long)blocks, ROW_BLOCK);
  else
    snprintf(reason, capacity, "a rank holds the dictionary");
  return OK;
}
