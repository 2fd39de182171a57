/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank makes its share of a block; rank 0 gathers the block and writes it. */
#include "synth/synth.h"

#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "model/access.h"

/* Number of floats of an atom. */
static gidx frame_size(const struct synth_task *t)
{
  return (gidx)t->planted.d * t->planted.p;
}

gidx synth_kept(const struct synth_task *task)
{
  gidx bytes = task->planted.k * frame_size(task) * (gidx)sizeof(float);
  return task->kind == SYNTH_PLANTED && bytes <= task->max_keep ? bytes : 0;
}

/* Allocate the arrays for planted data besides the rows: the truth, and atoms. */
static int truth_alloc(struct synth *s)
{
  const struct planted *g = &s->task->planted;
  gidx codes = (gidx)g->s * g->d, block = s->c->rank ? 0 : s->task->block;
  TRY(arena_alloc(&s->arena, &s->vector, codes, sizeof *s->vector));
  TRY(arena_alloc(&s->arena, &s->work, planted_work(g), sizeof *s->work));
  TRY(arena_alloc(&s->arena, &s->atoms, (gidx)s->share * g->s, sizeof *s->atoms));
  TRY(arena_alloc(&s->arena, &s->codes, s->share * codes, sizeof *s->codes));
  TRY(arena_alloc(&s->arena, &s->all_atoms, block * g->s, sizeof *s->all_atoms));
  TRY(arena_alloc(&s->arena, &s->all_codes, block * codes, sizeof *s->all_codes));
  gidx kept = synth_kept(s->task) / (gidx)sizeof *s->kept, again = g->s * frame_size(s->task);
  return kept ? arena_alloc(&s->arena, &s->kept, kept, sizeof *s->kept)
              : arena_alloc(&s->arena, &s->again, again, sizeof *s->again);
}

/* Allocate all arrays in s->arena.  A dry arena only counts their bytes. */
static int synth_alloc(struct synth *s)
{
  gidx frame = frame_size(s->task), block = s->c->rank ? 0 : s->task->block;
  s->share = (idx)ceil_div(s->task->block, s->c->size);
  TRY(arena_alloc(&s->arena, &s->mine, s->share * frame, sizeof *s->mine));
  TRY(arena_alloc(&s->arena, &s->all, block * frame, sizeof *s->all));
  TRY(arena_alloc(&s->arena, &s->counts, s->c->size, sizeof *s->counts));
  return s->task->kind == SYNTH_PLANTED ? truth_alloc(s) : OK;
}

int synth_memory(const struct synth_task *task, int ranks, gidx *bytes)
{
  struct comm first = {.size = ranks};
  struct synth s = {.task = task, .c = &first, .arena = {.is_dry = 1}};
  TRY(synth_alloc(&s));
  *bytes = (gidx)s.arena.bytes;
  return OK;
}

/* Deal items first .. min(first + block, total) - 1 to the ranks: s->counts <- how many each rank
 * has, *mine <- this rank's first item.  Returns the number of items in the block. */
static gidx block_deal(struct synth *s, gidx total, gidx first, gidx *mine)
{
  gidx n = imin(total - first, s->task->block), start, count;
  for (int r = 0; r < s->c->size; r++) {
    comm_partition(n, s->c->size, r, &start, &count);
    s->counts[r] = (idx)count;
    if (r == s->c->rank) *mine = first + start;
  }
  return n;
}

/* Make all atoms, divided among the ranks, and gather them on every rank.  Collective. */
static int atoms_keep(struct synth *s)
{
  const struct planted *g = &s->task->planted;
  gidx frame = frame_size(s->task), mine = 0;
  struct progress progress;
  progress_start(&progress, "planted", "atoms", g->k);
  for (gidx first = 0, n; first < g->k; first += n) {
    n = block_deal(s, g->k, first, &mine);
    for (gidx a = mine; a < mine + s->counts[s->c->rank]; a++)
      planted_atom(g, (idx)a, s->kept + a * frame, s->work);
    TRY(comm_allgather(s->c, s->kept + mine * frame, s->counts, (size_t)frame * sizeof *s->kept,
                       s->kept + first * frame));
    progress_show(&progress, first + n);
  }
  return OK;
}

int synth_open(struct synth *s, struct comm *c, const struct synth_task *task)
{
  *s = (struct synth){.task = task, .c = c};
  int status = synth_alloc(s);
  if (!status) status = worker_open(&s->worker);
  TRY(comm_agree(c, status));
  return s->kept ? atoms_keep(s) : OK;
}

void synth_close(struct synth *s)
{
  worker_close(&s->worker);
  arena_free(&s->arena);
  *s = (struct synth){0};
}

/* The planted atom: a kept one, or one that is made in `scratch`. */
static const float *atom_find(struct synth *s, idx atom, float *scratch)
{
  if (s->kept) return s->kept + atom * frame_size(s->task);
  planted_atom(&s->task->planted, atom, scratch, s->work);
  return scratch;
}

/* out[d][p] <- an atom of the planted dictionary, or if start is 1, of the start dictionary. */
static void atom_make(struct synth *s, idx atom, int start, float *out)
{
  const struct synth_task *t = s->task;
  if (t->kind == SYNTH_TRIG) {
    trig_atom(atom, t->planted.p, out);
    return;
  }
  const float *frame = atom_find(s, atom, out);
  if (start)
    planted_start(&t->planted, atom, frame, t->cosine, out, s->work);
  else if (frame != out)
    memcpy(out, frame, (size_t)frame_size(t) * sizeof *out);
}

static int block_write(struct synth *s, const struct matrix_sink *sink, gidx first, gidx n)
{
  if (s->c->rank) return OK;
  return matrix_access(&s->worker, (struct matrix_access){sink, first, n, s->all});
}

/* s->fingerprint <- the sum over all ranks.  Collective. */
static int fingerprint_sum(struct synth *s, uint64_t mine)
{
  gidx sum;
  memcpy(&sum, &mine, sizeof sum);
  TRY(comm_sum(s->c, &sum, 1));
  memcpy(&s->fingerprint, &sum, sizeof sum);
  return OK;
}

int synth_atoms(struct synth *s, int start, const struct matrix_sink *sink)
{
  gidx k = s->task->planted.k, frame = frame_size(s->task), mine = 0;
  uint64_t sum = 0;
  struct progress progress;
  progress_start(&progress, start ? "start" : "dictionary", "atoms", k);
  for (gidx first = 0, n; first < k; first += n) {
    n = block_deal(s, k, first, &mine);
    idx count = s->counts[s->c->rank];
    for (idx a = 0; a < count; a++) atom_make(s, (idx)(mine + a), start, s->mine + a * frame);
    sum += fingerprint(s->mine, count * frame, sizeof *s->mine, mine * frame);
    TRY(comm_gather(s->c, s->mine, s->counts, (size_t)frame * sizeof *s->mine, s->all));
    TRY(comm_agree(s->c, block_write(s, sink, first, n)));
    progress_show(&progress, first + n);
  }
  return fingerprint_sum(s, sum);
}

/* Make a row and its truth, at position `at` of this rank's share. */
static void row_make(struct synth *s, gidx row, idx at)
{
  const struct planted *g = &s->task->planted;
  float *out = s->mine + (gidx)at * g->p;
  if (s->task->kind == SYNTH_TRIG) {
    trig_row(row, g->p, out);
    return;
  }
  idx *atoms = s->atoms + (gidx)at * g->s;
  float *codes = s->codes + (gidx)at * g->s * g->d;
  planted_support(g, row, atoms, codes);
  for (idx j = 0; j < g->s; j++) {
    float *scratch = s->kept ? NULL : s->again + j * frame_size(s->task);
    const float *frame = atom_find(s, atoms[j], scratch);
    for (idx m = 0; m < g->d; m++) s->vector[j * g->d + m] = frame + (gidx)m * g->p;
  }
  planted_row(g, row, s->vector, codes, out, s->work);
}

static int truth_write(struct synth *s, const struct support_sink *truth, gidx first, gidx n)
{
  const struct planted *g = &s->task->planted;
  if (s->c->rank) return OK;
  struct support_block block = {.first = first,
                                .n = (idx)n,
                                .s = g->s,
                                .d = g->d,
                                .atoms = s->all_atoms,
                                .codes = s->all_codes};
  return support_access(&s->worker, truth, &block);
}

static int truth_gather(struct synth *s, const struct support_sink *truth, gidx first, gidx n)
{
  const struct planted *g = &s->task->planted;
  size_t atoms = (size_t)g->s * sizeof *s->atoms, codes = (size_t)(g->s * g->d) * sizeof *s->codes;
  TRY(comm_gather(s->c, s->atoms, s->counts, atoms, s->all_atoms));
  TRY(comm_gather(s->c, s->codes, s->counts, codes, s->all_codes));
  return comm_agree(s->c, truth_write(s, truth, first, n));
}

int synth_rows(struct synth *s, const struct matrix_sink *sink, const struct support_sink *truth)
{
  gidx total = s->task->n, p = s->task->planted.p, mine = 0;
  uint64_t sum = 0;
  struct progress progress;
  progress_start(&progress, "rows", "rows", total);
  for (gidx first = 0, n; first < total; first += n) {
    n = block_deal(s, total, first, &mine);
    idx count = s->counts[s->c->rank];
    for (idx i = 0; i < count; i++) row_make(s, mine + i, i);
    sum += fingerprint(s->mine, count * p, sizeof *s->mine, mine * p);
    TRY(comm_gather(s->c, s->mine, s->counts, (size_t)p * sizeof *s->mine, s->all));
    TRY(comm_agree(s->c, block_write(s, sink, first, n)));
    if (truth) TRY(truth_gather(s, truth, first, n));
    progress_show(&progress, first + n);
  }
  return fingerprint_sum(s, sum);
}
