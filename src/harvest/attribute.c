/* SPDX-License-Identifier: BSD-3-Clause
 * Lists are sent with all their `top` places, also empty ones, so that the size of a message
 * follows from the supports.  The sink leaves the empty places out. */
#include "harvest/attribute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "harvest/attribute_partition.h"

enum { LIST_BYTES = 32 << 20, PIECE = 256 };

struct attribute {
  const struct attribute_task *task;
  struct comm *c;
  struct attribute_result *result;
  struct attributed_partition partition;
  float *atoms;        /* [k][p] */
  idx block;           /* queries of all ranks at a time */
  gidx *first, *count; /* [size] queries of each rank */
  idx *pairs, *values; /* [size] numbers of pairs of each rank, and of places in their lists */
  gidx *sequence;      /* [block], on rank 0 */
  real *sum;           /* of all ranks, on rank 0 */
  gidx *row;
  float *code;
  gidx sum_room, row_room, code_room;
  struct arena arena;
};

static int shapes_check(const struct attribute_task *t)
{
  const struct attention *a = &t->capture->attention;
  const struct support_source *s = t->supports;
  const struct atom_source *d = t->atoms;
  CHECK(d->d == 1, ERR_INPUT,
        "'%s' has frames of %d vectors: attribute explains scores of atoms that are one vector "
        "each",
        d->name, d->d);
  CHECK(d->p == a->heads * a->dv, ERR_INPUT,
        "rows of '%s' have %d heads of %d columns, %d in all, the atoms of '%s' have %d: give the "
        "capture whose rows the dictionary was fitted to",
        t->capture->name, a->heads, a->dv, a->heads * a->dv, d->name, d->p);
  CHECK(s->k == d->k, ERR_INPUT,
        "'%s' has %d atoms, '%s' is of %d: give the dictionary that the rows were encoded with",
        d->name, d->k, s->name, s->k);
  CHECK(s->n == t->capture->n, ERR_INPUT,
        "'%s' has %lld queries, '%s' is of %lld rows: give the capture whose rows were encoded",
        t->capture->name, (long long)t->capture->n, s->name, (long long)s->n);
  return OK;
}

/* Bytes of the lists and chains of a query with the mean number of atoms. */
static gidx query_bytes(const struct attribute_task *t)
{
  gidx pairs = ceil_div(t->supports->entries, imax(t->supports->n, 1));
  return imax(pairs, 1) * (t->top * 12 + t->capture->attention.heads * 8 + 8);
}

/* The queries of a block.  If task->block is 0, the lists of each rank fit in LIST_BYTES. */
static idx block_find(const struct attribute_task *t, int ranks)
{
  const struct harvest_task rows = {.capture = t->capture};
  gidx block = t->block ? t->block : harvest_block(&rows, ranks);
  gidx most = imax(LIST_BYTES / query_bytes(t), 1) * ranks;
  return (idx)imin(t->block ? block : imin(block, most), t->capture->n);
}

static int arrays_alloc(struct attribute *w)
{
  const struct attribute_task *t = w->task;
  gidx size = w->c->size;
  TRY(arena_alloc(&w->arena, &w->atoms, (gidx)t->atoms->k * t->atoms->p, sizeof *w->atoms));
  TRY(arena_alloc(&w->arena, &w->first, size, sizeof *w->first));
  TRY(arena_alloc(&w->arena, &w->count, size, sizeof *w->count));
  TRY(arena_alloc(&w->arena, &w->pairs, size, sizeof *w->pairs));
  TRY(arena_alloc(&w->arena, &w->values, size, sizeof *w->values));
  TRY(arena_alloc(&w->arena, &w->sequence, w->c->rank ? 0 : w->block, sizeof *w->sequence));
  return arena_alloc(&w->result->arena, &w->result->mean, t->atoms->k, sizeof *w->result->mean);
}

static int memory_check(const struct attribute *w)
{
  const struct atom_source *d = w->task->atoms;
  double bytes = (double)d->k * d->p * sizeof *w->atoms;
  gidx present = memory_per_process(w->c->local_size);
  CHECK(bytes <= (double)present, ERR_MEMORY,
        "%.0f bytes are needed for the %d atoms of '%s' on each rank, %lld are present for each: "
        "start fewer ranks on a machine",
        bytes, d->k, d->name, (long long)present);
  return OK;
}

/* Read all atoms, and compute their inner products with the mean. */
static int atoms_read(struct attribute *w)
{
  const struct attribute_task *t = w->task;
  const struct atom_source *d = t->atoms;
  uint64_t terms = 0;
  for (idx first = 0, n; first < d->k; first += n) {
    float *piece = w->atoms + (gidx)first * d->p;
    n = (idx)imin(PIECE, d->k - first);
    TRY(d->read(d->self, first, n, piece));
    terms += items_terms(piece, n, d->p, first);
    if (t->normalize) atoms_normalize(piece, n, 1, d->p);
    TRY(atoms_check(piece, n, 1, d->p, first, d->name));
  }
  for (idx a = 0; a < d->k && t->mean; a++)
    for (idx c = 0; c < d->p; c++)
      w->result->mean[a] = fma(t->mean[c], w->atoms[(gidx)a * d->p + c], w->result->mean[a]);
  w->result->inputs.dictionary = content_hash(terms, d->k, 1, d->p);
  return identity_dictionary_check(t->supports->name, t->inputs.dictionary, d->name,
                                   w->result->inputs.dictionary);
}

static int job_begin(struct attribute *w)
{
  const struct attribute_task *t = w->task;
  TRY(shapes_check(t));
  w->block = block_find(t, w->c->size);
  TRY(memory_check(w));
  TRY(arrays_alloc(w));
  TRY(atoms_read(w));
  w->partition.task = t, w->partition.atoms = w->atoms, w->partition.mean = w->result->mean;
  return attributed_partition_alloc(&w->partition, w->c->size);
}

/* Divide the queries of a block among the ranks, and count their pairs. */
static int block_divide(struct attribute *w, gidx first, gidx n)
{
  const struct support_source *s = w->task->supports;
  for (int r = 0; r < w->c->size; r++) {
    gidx from = 0, end = 0;
    comm_partition(n, w->c->size, r, &w->first[r], &w->count[r]);
    w->first[r] += first;
    TRY(s->starts(s->self, w->first[r], 0, &from));
    TRY(s->starts(s->self, w->first[r] + w->count[r], 0, &end));
    CHECK(end >= from && end - from <= INT32_MAX / w->task->top, ERR_MEMORY,
          "rows %lld .. %lld of '%s' have %lld atoms, too many for one block: lower --block",
          (long long)w->first[r], (long long)(w->first[r] + w->count[r] - 1), s->name,
          (long long)(end - from));
    w->pairs[r] = (idx)(end - from);
    w->values[r] = w->pairs[r] * w->task->top;
  }
  return OK;
}

/* Make room for the pairs of all ranks, on rank 0. */
static int block_reserve(struct attribute *w, gidx *pairs)
{
  *pairs = 0;
  for (int r = 0; r < w->c->size; r++) *pairs += w->pairs[r];
  gidx values = *pairs * w->task->top;
  if (w->c->rank) return OK;
  CHECK(values <= INT32_MAX, ERR_MEMORY, "%lld contributions at a time are too many: lower --block",
        (long long)values);
  TRY(array_reserve(&w->sum, &w->sum_room, *pairs, sizeof *w->sum));
  TRY(array_reserve(&w->row, &w->row_room, values, sizeof *w->row));
  return array_reserve(&w->code, &w->code_room, values, sizeof *w->code);
}

static int block_write(struct attribute *w, gidx first, gidx n, gidx pairs)
{
  const struct capture_source *s = w->task->capture;
  const struct top_rows top = {.k = (idx)pairs, .r = w->task->top, .row = w->row, .code = w->code};
  const struct attributed_block block = {first, n, pairs, w->sequence, w->sum, &top};
  if (w->c->rank) return OK;
  for (gidx i = 0; i < n; i++) w->sequence[i] = harvest_sequence(s, first + i);
  for (gidx i = 0; i < pairs * top.r; i++) w->result->kept += top.row[i] >= 0;
  return w->task->sink->write(w->task->sink->self, &block);
}

/* Run one block of queries.  Collective. */
static int block_run(struct attribute *w, gidx first, gidx n)
{
  struct attributed_partition *s = &w->partition;
  struct comm *c = w->c;
  gidx pairs = 0, key;
  int status = block_divide(w, first, n);
  if (!status) status = block_reserve(w, &pairs);
  TRY(comm_agree(c, status));
  gidx begin, own = w->pairs[c->rank], top = w->task->top;
  status = attributed_partition_run(s, w->first[c->rank], (idx)w->count[c->rank], &key);
  TRY(comm_agree_at(c, status, key));
  TRY(comm_agree(c,
                 w->task->supports->starts(w->task->supports->self, w->first[c->rank], 0, &begin)));
  w->result->fingerprint +=
      fingerprint(s->top.row, own * top, sizeof *s->top.row, begin * top) +
      3 * fingerprint(s->top.code, own * top, sizeof *s->top.code, begin * top) +
      5 * fingerprint(s->sum, own, sizeof *s->sum, begin);
  TRY(comm_gather(c, s->sum, w->pairs, sizeof *s->sum, w->sum));
  TRY(comm_gather(c, s->top.row, w->values, sizeof *s->top.row, w->row));
  TRY(comm_gather(c, s->top.code, w->values, sizeof *s->top.code, w->code));
  return comm_agree(c, block_write(w, first, n, pairs));
}

/* Sum the counts of all ranks.  Collective. */
static int result_count(struct attribute *w)
{
  const struct attributed_partition *s = &w->partition;
  struct attribute_result *r = w->result;
  gidx sums[] = {s->compared,          s->beyond, (gidx)s->row_terms, (gidx)s->support_terms,
                 (gidx)r->fingerprint, r->kept};
  gidx *longest = w->first; /* reused: it has room for a number per rank */
  TRY(comm_sum(w->c, sums, LENGTH(sums)));
  TRY(comm_allgather_long(w->c, s->longest, longest));
  real *all;
  TRY(comm_agree(w->c, arena_alloc(&w->arena, &all, w->c->size, sizeof *all)));
  TRY(comm_allgather_real(w->c, s->error, all));
  gidx most = 0;
  for (int q = 0; q < w->c->size; q++)
    most = imax(most, longest[q]), r->error = fmax(r->error, all[q]);
  r->pairs = w->task->supports->entries;
  r->compared = sums[0], r->beyond = sums[1];
  r->inputs.rows = content_hash((uint64_t)sums[2], w->task->capture->n, w->task->atoms->p, 1);
  r->inputs.supports = content_hash((uint64_t)sums[3], w->task->supports->n, most, 1);
  r->fingerprint = (uint64_t)sums[4], r->kept = sums[5];
  return OK;
}

/* Check that the rows are those that the supports name. */
static int rows_check_all(const struct attribute *w)
{
  const struct attribute_task *t = w->task;
  CHECK(!t->inputs.rows || t->inputs.rows == w->result->inputs.rows, ERR_INPUT,
        "'%s' is of other rows than '%s' gives: rows_hash %016llx, not %016llx; give the capture "
        "whose rows were encoded",
        t->supports->name, t->capture->name, (unsigned long long)t->inputs.rows,
        (unsigned long long)w->result->inputs.rows);
  return OK;
}

static int blocks_run(struct attribute *w)
{
  gidx total = w->task->capture->n;
  struct progress progress;
  progress_start(&progress, "attribute", "rows", total);
  for (gidx first = 0, n; first < total; first += n) {
    n = imin(total - first, w->block);
    TRY(block_run(w, first, n));
    progress_show(&progress, first + n);
  }
  TRY(result_count(w));
  return rows_check_all(w);
}

/* Counts the work for the weights, and for each pair a product in f64 with every value. */
double attribute_work(const struct attribute_task *task)
{
  const struct attention *a = &task->capture->attention;
  double values = harvest_work(task->capture) / (a->d + a->dv);
  double pairs = (double)task->supports->entries / fmax((double)task->supports->n, 1);
  return values * (a->d + 2 * pairs * a->dv);
}

idx attribute_queries(const struct attribute_task *task, int ranks)
{
  return (idx)ceil_div(block_find(task, ranks), ranks);
}

gidx attribute_bytes(const struct attribute_task *task, int ranks)
{
  return (gidx)task->atoms->k * task->atoms->p * (gidx)sizeof(float) +
         attribute_queries(task, ranks) * query_bytes(task);
}

int attribute_run(struct comm *c, const struct attribute_task *task, struct attribute_result *r)
{
  struct attribute *w;
  *r = (struct attribute_result){0};
  TRY(comm_agree(c, struct_alloc(&w, sizeof *w)));
  w->task = task, w->c = c, w->result = r;
  TRY(comm_agree(c, job_begin(w)));
  TRY(blocks_run(w));
  attributed_partition_free(&w->partition);
  arena_free(&w->arena);
  free(w->sum), free(w->row), free(w->code);
  free(w);
  return OK;
}

void attribute_free(struct attribute_result *r)
{
  arena_free(&r->arena);
}
