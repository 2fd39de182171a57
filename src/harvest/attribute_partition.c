/* SPDX-License-Identifier: BSD-3-Clause
 * First the sums of the weights of all queries are computed, since a weight is divided by the sum
 * of its query's weights.  Then the shards of positions are read once more, for the
 * contributions. */
#include "harvest/attribute_partition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "device/attribution.h"
#include "harvest/resident_capture.h"

#define FAR 1e-3 /* a larger relative difference cannot be rounding: the row is another one */

int attributed_partition_alloc(struct attributed_partition *s, int ranks)
{
  const struct attribute_task *t = s->task;
  s->rows = (struct harvest_task){.capture = t->capture, .device = t->device};
  s->harvest.task = &s->rows;
  s->harvest.partition = attribute_queries(t, ranks);
  s->harvest.atoms =
      (struct resident_capture_atoms){t->atoms->k, s->atoms, attribute_bytes(t, ranks)};
  return harvest_partition_alloc(&s->harvest);
}

void attributed_partition_free(struct attributed_partition *s)
{
  supports_free(&s->supports);
  harvest_partition_free(&s->harvest);
  free(s->top.row);
  free(s->top.code);
  free(s->part);
  free(s->sum);
  free(s->wanted);
}

/* Make room for the pairs of a share. */
static int pairs_begin(struct attributed_partition *s, gidx pairs)
{
  idx top = s->task->top;
  gidx values = pairs * top,
       parts = s->harvest.resident ? 0 : pairs * s->task->capture->attention.heads;
  CHECK(pairs <= INT32_MAX / top, ERR_MEMORY,
        "%lld atoms of the rows at a time with %d contributions each are too many: lower --block",
        (long long)pairs, top);
  s->top.k = (idx)pairs, s->top.r = top;
  TRY(array_reserve(&s->top.row, &s->list_room, values, sizeof *s->top.row));
  TRY(array_reserve(&s->top.code, &s->code_room, values, sizeof *s->top.code));
  TRY(array_reserve(&s->part, &s->part_room, parts, sizeof *s->part));
  TRY(array_reserve(&s->wanted, &s->wanted_room, pairs, sizeof *s->wanted));
  return array_reserve(&s->sum, &s->sum_room, pairs, sizeof *s->sum);
}

/* Attribute queries at .. at + n - 1 of the share, which are of one sequence; `first` is the number
 * of the first of them among all queries. */
static int sequence_run(struct attributed_partition *s, gidx sequence, gidx first, idx at, idx n)
{
  const struct capture_source *c = s->task->capture;
  const struct attention *a = &c->attention;
  const struct harvest *h = &s->harvest;
  gidx least, most, row = (gidx)at * a->heads;
  harvest_seen(c, sequence, first, n, &least, &most);
  for (gidx j = least / ATTENTION_SHARD * ATTENTION_SHARD; j < most; j += ATTENTION_SHARD) {
    const struct attribution_job job = {.attention = a,
                                        .n = n,
                                        .q = h->q + row * a->d,
                                        .m = h->m + row,
                                        .l = h->l + row,
                                        .from = h->from + at,
                                        .end = h->end + at,
                                        .first = j,
                                        .count = (idx)imin(ATTENTION_SHARD, most - j),
                                        .k = h->k,
                                        .v = h->v,
                                        .n_atoms = s->task->atoms->k,
                                        .atoms = s->atoms,
                                        .start = s->supports.view.start + at,
                                        .atom_of = s->supports.view.atoms,
                                        .top = &s->top,
                                        .part = s->part};
    TRY(c->positions(c->self, sequence, j, job.count, h->k, h->v));
    TRY(device_attribution(s->task->device, &job));
  }
  return OK;
}

/* The same by a GPU that gets keys and values piece by piece. */
static int sequence_pieces(struct attributed_partition *s, gidx sequence, gidx first, idx at, idx n)
{
  const struct capture_source *c = s->task->capture;
  const struct attention *a = &c->attention;
  const struct harvest *h = &s->harvest;
  gidx least, most, row = (gidx)at * a->heads;
  harvest_seen(c, sequence, first, n, &least, &most);
  for (gidx j = least / ATTENTION_SHARD * ATTENTION_SHARD; j < most;) {
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
                                .goes_on = 1};
    TRY(pieces_add(h->pieces, &piece));
    j += piece.count;
  }
  return OK;
}

/* top, part <- the results of all queries of the share, sequence by sequence. */
static int sequences_run(struct attributed_partition *s, gidx first, idx count)
{
  const struct capture_source *c = s->task->capture;
  gidx sequence = harvest_sequence(c, first);
  for (idx at = 0; at < count; sequence++) {
    idx n = (idx)(imin(c->start[sequence + 1], first + count) - first) - at;
    TRY(s->harvest.pieces ? sequence_pieces(s, sequence, first + at, at, n)
                          : sequence_run(s, sequence, first + at, at, n));
    at += n;
  }
  return OK;
}

/* The same on a GPU, whose lists are copied back at the end. */
static int pieces_run(struct attributed_partition *s, gidx first, idx count)
{
  struct pieces *p = s->harvest.pieces;
  const struct piece_pairs pairs = {.count = s->supports.view.start[count],
                                    .first = first,
                                    .start = s->supports.view.start,
                                    .atom_of = s->supports.view.atoms,
                                    .top = &s->top,
                                    .part = s->part};
  TRY(pieces_pairs_begin(p, &pairs));
  TRY(sequences_run(s, first, count));
  return pieces_pairs_end(p);
}

/* top, sum <- the results of all queries of the share, some positions at a time. */
static int parts_run(struct attributed_partition *s, gidx first, idx count)
{
  idx heads = s->task->capture->attention.heads;
  gidx pairs = s->supports.view.start[count];
  for (gidx i = 0; i < pairs * s->top.r; i++) s->top.row[i] = -1, s->top.code[i] = 0;
  for (gidx i = 0; i < pairs * heads; i++) s->part[i] = 0;
  TRY(s->harvest.pieces ? pieces_run(s, first, count) : sequences_run(s, first, count));
  for (gidx e = 0; e < pairs; e++) {
    s->sum[e] = 0;
    for (idx h = 0; h < heads; h++) s->sum[e] += s->part[e * heads + h];
  }
  return OK;
}

/* The same on a GPU that has all positions. */
static int resident_shards_run(struct attributed_partition *s, idx count)
{
  const struct resident_capture_pairs pairs = {.count = s->supports.view.start[count],
                                               .start = s->supports.view.start,
                                               .atom_of = s->supports.view.atoms,
                                               .top = &s->top,
                                               .sum = s->sum};
  return resident_capture_attribute(s->harvest.resident, &pairs);
}

/* The value that a pair of a row must sum to. */
static struct wanted_sum wanted_find(const struct attributed_partition *s, gidx row, gidx pair,
                                     int is_compared)
{
  const struct attention *a = &s->task->capture->attention;
  gidx p = (gidx)a->heads * a->dv, atom = s->supports.view.atoms[pair];
  const float *x = s->harvest.rows + row * p, *d = s->atoms + atom * p;
  struct wanted_sum w = {0, 0, is_compared, 0};
  for (gidx c = 0; c < p; c++) {
    w.value += (real)x[c] * (real)d[c];
    w.size += fabs((real)x[c] * (real)d[c]);
  }
  if (!is_compared) return w;
  real score = s->supports.score[pair];
  w.value = score + s->mean[atom];
  w.size += fabs(score) + fabs(s->mean[atom]);
  w.is_zero = s->task->nonnegative && score == 0;
  return w;
}

static void wanted_task(void *self, gidx row)
{
  const struct attributed_partition *s = self;
  const gidx *start = s->supports.view.start;
  for (gidx e = start[row]; e < start[row + 1]; e++)
    s->wanted[e] = wanted_find(s, row, e, e - start[row] < s->task->compared);
}

/* Compare the sum of a pair with its expected value. */
static int pair_check(struct attributed_partition *s, gidx row, gidx pair, gidx first)
{
  const struct support_source *supports = s->task->supports;
  struct wanted_sum w = s->wanted[pair];
  real off = s->sum[pair] - w.value;
  off = w.is_zero ? fmax(off, 0) : fabs(off);
  s->compared += w.is_compared;
  s->beyond += off > ATTRIBUTION_CLOSE * fabs(w.value);
  s->error = fmax(s->error, w.size > 0 ? off / w.size : 0);
  idx atom = s->supports.view.atoms[pair];
  CHECK(!w.is_compared || off <= FAR * w.size, ERR_INPUT,
        "row %lld of '%s' has the score %.6g on atom %d, and by '%s' it is %.6g: give the capture "
        "whose rows were encoded, and the dictionary, with --normalize where encode had it",
        (long long)(first + row), supports->name, (real)s->supports.score[pair], atom,
        s->task->capture->name, s->sum[pair] - s->mean[atom]);
  return OK;
}

/* Compare all sums, and add the hash terms of the supports; *key <- the row that does not fit. */
static int sums_check(struct attributed_partition *s, gidx first, idx count, gidx *key)
{
  const struct support_view *view = &s->supports.view;
  team_run(s->task->threads, count, wanted_task, s);
  for (gidx i = 0; i < count; i++) {
    *key = first + i;
    for (gidx e = view->start[i]; e < view->start[i + 1]; e++) TRY(pair_check(s, i, e, first));
    gidx from = view->start[i], length = view->start[i + 1] - from;
    s->support_terms += support_terms(view->atoms + from, 1, (idx)length, first + i);
  }
  return OK;
}

int attributed_partition_run(struct attributed_partition *s, gidx first, idx count, gidx *key)
{
  const struct capture_source *c = s->task->capture;
  gidx p = (gidx)c->attention.heads * c->attention.dv;
  *key = first;
  supports_free(&s->supports);
  s->top.k = 0;
  if (!count) return OK;
  TRY(harvest_partition_run(&s->harvest, first, count, key));
  s->row_terms += items_terms(s->harvest.rows, count, p, first);
  TRY(supports_load(&s->supports, s->task->supports, first, count, 1));
  s->longest = imax(s->longest, s->supports.longest);
  TRY(pairs_begin(s, s->supports.view.start[count]));
  TRY(s->harvest.resident ? resident_shards_run(s, count) : parts_run(s, first, count));
  return sums_check(s, first, count, key);
}
