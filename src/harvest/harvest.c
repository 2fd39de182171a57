/* SPDX-License-Identifier: BSD-3-Clause
 * On a CPU a rank reads the positions that its queries see in shards, one shard at a time.  So
 * memory does not grow with the length of a sequence. */
#include "harvest/harvest_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "device/attention.h"
#include "harvest/resident_capture.h"
#include "harvest/positions.h"

enum { SHARE_BYTES = 32 << 20, BLOCK_BYTES = 1 << 30, MIN_SHARE = 64 };

/* Number of floats of a query and of its result. */
static gidx query_floats(const struct attention *a)
{
  return (gidx)a->heads * (a->d + attention_stride(a->dv) + a->dv + 3);
}

/* The number of queries of a block: enough to keep each rank busy, if the capture has so many. */
idx harvest_block(const struct harvest_task *task, int ranks)
{
  const struct attention *a = &task->capture->attention;
  gidx bytes = query_floats(a) * (gidx)sizeof(float);
  gidx share = imax(SHARE_BYTES / bytes, MIN_SHARE);
  gidx most = imax(BLOCK_BYTES / bytes, MIN_SHARE);
  return (idx)imin(imin(share * ranks, most), task->capture->n);
}

/* A GPU holds all keys and values if it can.  If it cannot, or if ranks divide positions, keys and
 * values come in pieces. */
static int gpu_alloc(struct harvest *h)
{
  const struct harvest_task *t = h->task;
  const struct resident_capture_arrays arrays = {h->partition, h->q, h->rows, h->lse, h->atoms};
  if (t->cut == HARVEST_QUERIES) {
    int status = resident_capture_open(&h->resident, t->capture, t->device, &arrays);
    if (status != ERR_MEMORY) return status;
    log_rank("keys and values come in pieces: %s", status_message());
    status_clear();
    resident_capture_close(h->resident);
    h->resident = NULL;
  }
  return pieces_open(&h->pieces, t->capture, t->device, h->partition, &h->atoms);
}

/* Allocate the work space of a CPU, or of a GPU with the keys and values. */
static int work_alloc(struct harvest *h)
{
  const struct harvest_task *t = h->task;
  const struct attention *a = &t->capture->attention;
  gidx n = h->partition, heads = a->heads, shard = 0;
  if (!resident_capture_wanted(t->device))
    shard = (gidx)ATTENTION_SHARD * a->kv_heads;
  else
    TRY(gpu_alloc(h));
  if (h->resident) return OK;
  TRY(arena_alloc(&h->arena, &h->k, shard * a->d, sizeof *h->k));
  TRY(arena_alloc(&h->arena, &h->v, shard * a->dv, sizeof *h->v));
  TRY(arena_alloc(&h->arena, &h->m, n * heads, sizeof *h->m));
  TRY(arena_alloc(&h->arena, &h->l, n * heads, sizeof *h->l));
  return arena_alloc(&h->arena, &h->acc, n * heads * attention_stride(a->dv), sizeof *h->acc);
}

/* Allocate what a rank needs for its share. */
int harvest_partition_alloc(struct harvest *h)
{
  const struct attention *a = &h->task->capture->attention;
  gidx n = h->partition, heads = a->heads;
  TRY(arena_alloc(&h->arena, &h->q, n * heads * a->d, sizeof *h->q));
  TRY(arena_alloc(&h->arena, &h->from, n, sizeof *h->from));
  TRY(arena_alloc(&h->arena, &h->end, n, sizeof *h->end));
  TRY(arena_alloc(&h->arena, &h->rows, n * heads * a->dv, sizeof *h->rows));
  TRY(arena_alloc(&h->arena, &h->lse, n * heads, sizeof *h->lse));
  return work_alloc(h);
}

void harvest_partition_free(struct harvest *h)
{
  resident_capture_close(h->resident);
  pieces_close(h->pieces);
  arena_free(&h->arena);
}

/* Allocate what this rank's share and a block of all ranks need. */
static int block_alloc(struct harvest *h)
{
  const struct attention *a = &h->task->capture->attention;
  gidx all = h->c->rank ? 0 : h->block, heads = a->heads;
  TRY(harvest_partition_alloc(h));
  TRY(arena_alloc(&h->arena, &h->all, all * heads * a->dv, sizeof *h->all));
  TRY(arena_alloc(&h->arena, &h->all_lse, all * heads, sizeof *h->all_lse));
  return arena_alloc(&h->arena, &h->counts, h->c->size, sizeof *h->counts);
}

/* The sequence that has a query. */
gidx harvest_sequence(const struct capture_source *s, gidx query)
{
  gidx low = 0, high = s->sequences; /* low begins at or before the query */
  while (high - low > 1) {
    gidx middle = low + (high - low) / 2;
    if (s->start[middle] <= query)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static void seen(const struct capture_source *s, gidx sequence, gidx query, gidx *from, gidx *end)
{
  gidx n_kv = s->length[sequence], n_q = s->start[sequence + 1] - s->start[sequence];
  attention_seen(&s->attention, query - s->start[sequence] + n_kv - n_q, n_kv, from, end);
}

void harvest_seen(const struct capture_source *s, gidx sequence, gidx first, gidx n, gidx *least,
                  gidx *most)
{
  *least = s->length[sequence], *most = 0;
  for (gidx i = first; i < first + n; i++) {
    gidx from, end;
    seen(s, sequence, i, &from, &end);
    if (from == end) continue;
    *least = imin(*least, from);
    *most = imax(*most, end);
  }
}

void harvest_seen_all(struct harvest *h, gidx first, gidx n)
{
  const struct capture_source *s = h->task->capture;
  gidx sequence = harvest_sequence(s, first);
  for (gidx i = 0; i < n; i++) {
    while (s->start[sequence + 1] <= first + i) sequence++;
    seen(s, sequence, first + i, h->from + i, h->end + i);
    h->pairs += (double)(h->end[i] - h->from[i]) * s->attention.heads;
    h->blind += h->from[i] == h->end[i];
  }
}

/* The sums of queries at .. at + n - 1 of the share, which are of one sequence. */
static int sequence_sum(struct harvest *h, gidx sequence, gidx first, idx at, idx n)
{
  const struct capture_source *s = h->task->capture;
  const struct attention *a = &s->attention;
  gidx least, most, row = (gidx)at * a->heads;
  harvest_seen(s, sequence, first, n, &least, &most);
  for (gidx j = least / ATTENTION_SHARD * ATTENTION_SHARD; j < most; j += ATTENTION_SHARD) {
    struct attention_job job = {.attention = a,
                                .n = n,
                                .q = h->q + row * a->d,
                                .from = h->from + at,
                                .end = h->end + at,
                                .first = j,
                                .count = (idx)imin(ATTENTION_SHARD, most - j),
                                .k = h->k,
                                .v = h->v,
                                .m = h->m + row,
                                .l = h->l + row,
                                .acc = h->acc + row * attention_stride(a->dv)};
    TRY(s->positions(s->self, sequence, j, job.count, h->k, h->v));
    TRY(device_attention(h->task->device, &job));
  }
  return OK;
}

/* The same by a GPU that gets keys and values piece by piece. */
static int sequence_pieces(struct harvest *h, gidx sequence, gidx first, idx at, idx n)
{
  const struct attention *a = &h->task->capture->attention;
  gidx least, most, row = (gidx)at * a->heads;
  harvest_seen(h->task->capture, sequence, first, n, &least, &most);
  gidx begin = least / ATTENTION_SHARD * ATTENTION_SHARD;
  for (gidx j = begin; j < most;) {
    idx room;
    TRY(pieces_room(h->pieces, &room));
    const struct piece piece = {.sequence = sequence,
                                .first = j,
                                .count = (idx)imin(room, most - j),
                                .query = first,
                                .n = n,
                                .from = h->from + at,
                                .end = h->end + at,
                                .q = h->q + row * a->d,
                                .m = h->m + row,
                                .l = h->l + row,
                                .acc = h->acc + row * attention_stride(a->dv),
                                .goes_on = j > begin};
    TRY(pieces_add(h->pieces, &piece));
    j += piece.count;
  }
  return OK;
}

/* rows, lse <- the results of the share's queries. */
static void partition_finish(struct harvest *h, idx count)
{
  const struct attention *a = &h->task->capture->attention;
  for (gidx i = 0; i < (gidx)count * a->heads; i++) {
    gidx query = i / a->heads;
    int sees = h->from[query] < h->end[query];
    const struct attention_sum sum = {h->m[i], h->l[i], h->acc + i * attention_stride(a->dv)};
    attention_finish(a, &sum, sees, h->rows + i * a->dv, h->lse + i);
  }
}

/* The first row and head of the share that is not finite, or -1. */
static gidx partition_bad(const struct harvest *h, idx count)
{
  const struct attention *a = &h->task->capture->attention;
  for (gidx i = 0; i < (gidx)count * a->heads * a->dv; i++)
    if (!isfinite(h->rows[i])) return i / a->dv;
  return -1;
}

/* Fail with the name of a row that is not finite. */
static int partition_check(const struct harvest *h, gidx first, idx count, gidx *key)
{
  const struct capture_source *s = h->task->capture;
  gidx bad = partition_bad(h, count);
  if (bad < 0) return OK;
  *key = first + bad / s->attention.heads;
  gidx sequence = harvest_sequence(s, *key);
  FAIL(ERR_INPUT,
       "row %lld of '%s', query %lld of sequence %lld, is not finite in head %lld: its scores "
       "overflow, or what it sees of q, k or v is not finite",
       (long long)*key, s->name, (long long)(*key - s->start[sequence]), (long long)sequence,
       (long long)(bad % s->attention.heads));
}

int harvest_partition_finish(struct harvest *h, gidx first, idx count, gidx *key)
{
  partition_finish(h, count);
  return partition_check(h, first, count, key);
}

/* Compute queries first .. first + count - 1; *key <- the row of a failure. */
int harvest_partition_run(struct harvest *h, gidx first, idx count, gidx *key)
{
  const struct capture_source *s = h->task->capture;
  *key = first;
  if (!count) return OK;
  TRY(s->queries(s->self, first, count, h->q));
  harvest_seen_all(h, first, count);
  gidx sequence = harvest_sequence(s, first);
  if (h->resident) { /* handles all sequences of a share at once */
    TRY(resident_capture_run(h->resident, sequence, first, count));
    return partition_check(h, first, count, key);
  }
  for (idx at = 0; at < count; sequence++) {
    idx n = (idx)(imin(s->start[sequence + 1], first + count) - first) - at;
    TRY(h->pieces ? sequence_pieces(h, sequence, first + at, at, n)
                  : sequence_sum(h, sequence, first + at, at, n));
    at += n;
  }
  if (h->pieces) TRY(pieces_flush(h->pieces));
  return harvest_partition_finish(h, first, count, key);
}

static int block_write(struct harvest *h, gidx first, gidx n)
{
  const struct harvest_sink *sink = h->task->sink;
  return h->c->rank ? OK : sink->write(sink->self, first, n, h->all, h->all_lse);
}

/* Run a block of queries whose positions are divided among ranks.  Collective. */
static int cut_run(struct harvest *h, gidx first, gidx n)
{
  const struct attention *a = &h->task->capture->attention;
  gidx key, width = (gidx)a->heads * a->dv;
  int status = positions_run(h, first, n, &key);
  TRY(comm_agree_at(h->c, status, key));
  if (h->c->rank == 0) {
    h->fingerprint += fingerprint(h->rows, n * width, sizeof *h->rows, first * width);
    memcpy(h->all, h->rows, (size_t)(n * width) * sizeof *h->rows);
    memcpy(h->all_lse, h->lse, (size_t)(n * a->heads) * sizeof *h->lse);
  } else
    h->pairs = 0, h->blind = 0; /* rank 0 counts them */
  return comm_agree(h->c, block_write(h, first, n));
}

/* Run one block of queries.  Collective. */
static int block_run(struct harvest *h, gidx first, gidx n)
{
  const struct attention *a = &h->task->capture->attention;
  gidx at = 0, mine = 0, count, key, width = (gidx)a->heads * a->dv;
  for (int r = 0; r < h->c->size; r++) {
    comm_partition(n, h->c->size, r, &at, &count);
    h->counts[r] = (idx)count;
    if (r == h->c->rank) mine = first + at;
  }
  idx own = h->counts[h->c->rank];
  int status = harvest_partition_run(h, mine, own, &key);
  TRY(comm_agree_at(h->c, status, key));
  h->fingerprint += fingerprint(h->rows, own * width, sizeof *h->rows, mine * width);
  TRY(comm_gather(h->c, h->rows, h->counts, (size_t)width * sizeof *h->rows, h->all));
  TRY(comm_gather(h->c, h->lse, h->counts, (size_t)a->heads * sizeof *h->lse, h->all_lse));
  return comm_agree(h->c, block_write(h, first, n));
}

/* *result <- the sums over all ranks.  Collective. */
static int result_sum(struct harvest *h, struct harvest_result *result)
{
  gidx sums[3] = {(gidx)h->pairs, h->blind};
  memcpy(sums + 2, &h->fingerprint, sizeof h->fingerprint);
  TRY(comm_sum(h->c, sums, 3));
  result->pairs = (double)sums[0];
  result->blind = sums[1];
  memcpy(&result->fingerprint, sums + 2, sizeof result->fingerprint);
  return OK;
}

static int blocks_run(struct harvest *h)
{
  gidx total = h->task->capture->n;
  struct progress progress;
  progress_start(&progress, "harvest", "rows", total);
  for (gidx first = 0, n; first < total; first += n) {
    n = imin(total - first, h->block);
    if (h->positions) TRY(comm_agree(h->c, positions_count(h, first, &n)));
    TRY(h->positions ? cut_run(h, first, n) : block_run(h, first, n));
    progress_show(&progress, first + n);
  }
  return OK;
}

double harvest_work(const struct capture_source *s)
{
  const struct attention *a = &s->attention;
  double pairs = 0;
  for (gidx i = 0; i < s->sequences; i++) {
    double queries = (double)(s->start[i + 1] - s->start[i]), seen = (double)s->length[i];
    if (a->causal) seen = fmax(seen - queries / 2, seen / 2);
    if (a->window) seen = fmin(seen, (double)a->window * (a->causal ? 1 : 2));
    pairs += queries * seen;
  }
  return pairs * a->heads * (a->d + a->dv);
}

int harvest_device_check(const struct capture_source *capture, struct device *device, idx queries,
                         gidx beside)
{
  const struct harvest_task task = {.capture = capture};
  if (!resident_capture_wanted(device)) return OK;
  int status = resident_capture_check(capture, device, beside);
  if (status != ERR_MEMORY) return status;
  status_clear();
  return pieces_check(capture, device, queries ? queries : harvest_block(&task, 1), beside);
}

int harvest_run(struct comm *c, const struct harvest_task *task, struct harvest_result *result)
{
  struct harvest *h;
  TRY(comm_agree(c, struct_alloc(&h, sizeof *h)));
  h->task = task, h->c = c;
  int is_cut = task->cut == HARVEST_POSITIONS;
  gidx block = task->block ? task->block : harvest_block(task, is_cut ? 1 : c->size);
  h->block = (idx)imin(block, task->capture->n);
  h->partition = is_cut ? h->block : (idx)ceil_div(h->block, c->size);
  TRY(comm_agree(c, block_alloc(h)));
  if (is_cut) TRY(comm_agree(c, positions_alloc(h)));
  TRY(blocks_run(h));
  TRY(result_sum(h, result));
  positions_free(h);
  harvest_partition_free(h);
  free(h);
  return OK;
}

enum harvest_cut harvest_cut_choose(const struct capture_source *capture, int ranks)
{
  return positions_pay(capture, ranks) ? HARVEST_POSITIONS : HARVEST_QUERIES;
}

struct harvest_reader {
  struct harvest harvest;
  struct harvest_task task;
};

static int rows_read(void *self, gidx first, idx count, float *out)
{
  struct harvest *h = &((struct harvest_reader *)self)->harvest;
  const struct attention *a = &h->task->capture->attention;
  gidx width = (gidx)a->heads * a->dv, key;
  for (idx done = 0, n; done < count; done += n) {
    n = (idx)imin(count - done, h->partition);
    TRY(harvest_partition_run(h, first + done, n, &key));
    memcpy(out + done * width, h->rows, (size_t)(n * width) * sizeof *out);
  }
  return OK;
}

/* As rows_read(), but into GPU memory; the values are not checked. */
static int rows_make(void *self, gidx first, idx count, float *out)
{
  struct harvest *h = &((struct harvest_reader *)self)->harvest;
  const struct capture_source *s = h->task->capture;
  gidx width = (gidx)s->attention.heads * s->attention.dv;
  for (idx done = 0, n; done < count; done += n) {
    gidx at = first + done;
    n = (idx)imin(count - done, h->partition);
    TRY(s->queries(s->self, at, n, h->q));
    TRY(resident_capture_make(h->resident, harvest_sequence(s, at), at, n, out + done * width));
  }
  return OK;
}

int harvest_rows_open(struct row_source *rows, struct harvest_reader **reader,
                      const struct capture_source *capture, struct device *device)
{
  const struct attention *a = &capture->attention;
  TRY(struct_alloc(reader, sizeof **reader));
  struct harvest_reader *r = *reader;
  r->task = (struct harvest_task){.capture = capture, .device = device};
  r->harvest.task = &r->task;
  r->harvest.partition = harvest_block(&r->task, 1);
  TRY(harvest_partition_alloc(&r->harvest));
  *rows = (struct row_source){.n = capture->n,
                              .p = a->heads * a->dv,
                              .name = capture->name,
                              .row_bytes = 4.0 * a->heads * a->dv,
                              .self = r,
                              .read = rows_read,
                              .make = r->harvest.resident ? rows_make : NULL,
                              .gpu = device->gpu.number};
  return OK;
}

void harvest_rows_close(struct harvest_reader *reader)
{
  if (reader) harvest_partition_free(&reader->harvest);
  free(reader);
}
