/* SPDX-License-Identifier: BSD-3-Clause
 * Counts are integers, and lists are sorted.  So the thresholds do not depend on which rank has a
 * row. */
#include "look/detect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "base/team.h"
#include "model/detector.h"
#include "model/firing.h"

/* STRIPE: columns of the covariance that a thread adds at a time.  COLUMNS_MOST: the most columns
 * that rows may have; the square of this number must be an idx. */
enum { STRIPE = 16, COLUMNS_MOST = 1 << 15 };

/* An atom in a row in which its code is above 0: the score of its detector, and its code. */
struct fired {
  idx atom;
  float score, code;
};

struct detect {
  const struct detect_task *task;
  struct comm *c;
  struct detect_result *result;
  idx k, p;
  gidx blocks;             /* sum blocks of all rows */
  float *x;                /* [ROW_BLOCK][p] */
  idx n;                   /* rows in x */
  real *chain, *chains;    /* [p][p] sums of a block; rank 0: [size][p][p] those of all ranks */
  real *tree;              /* [levels][p][p] on rank 0, as in base/sums.h */
  gidx pushed;             /* blocks in the tree */
  real *root;              /* [p][p] inverse square root of the covariance */
  float *atoms;            /* [most][p] atoms of this rank */
  float *tiles;            /* [tiles][p][DETECTOR_TILE] all detectors */
  idx *counts;             /* [size] arguments of collective calls */
  struct fired *own, *all; /* of this rank; of all ranks, by atom, largest score first */
  gidx n_own, own_capacity, n_all;
  gidx *start;  /* [k + 1] where the list of each atom begins */
  float *fires; /* [n_all] the scores of `all` */
  gidx *begins; /* [n_all] as in struct detector_threshold */
  struct arena arena;
};

int detect_check(const struct detect_task *t)
{
  CHECK(t->atoms->d == 1, ERR_INPUT,
        "'%s' has frames of %d vectors: detectors are of atoms that are one vector each",
        t->atoms->name, t->atoms->d);
  TRY(columns_check(t->rows, t->atoms));
  CHECK(t->codes->n == t->rows->n, ERR_INPUT,
        "'%s' has the codes of %lld rows, '%s' has %lld: give the rows that were encoded",
        t->codes->name, (long long)t->codes->n, t->rows->name, (long long)t->rows->n);
  CHECK(t->codes->k == t->atoms->k && t->codes->d == 1, ERR_INPUT,
        "'%s' has codes of %d atoms, '%s' has %d: give the dictionary of these codes",
        t->codes->name, t->codes->k, t->atoms->name, t->atoms->k);
  CHECK(t->rows->p <= COLUMNS_MOST, ERR_INPUT,
        "'%s' has %d columns: detectors take rows of at most %d", t->rows->name, t->rows->p,
        COLUMNS_MOST);
  CHECK(t->rows->n > 1, ERR_INPUT,
        "'%s' has %lld rows: give at least 2, which a detector tells apart", t->rows->name,
        (long long)t->rows->n);
  return OK;
}

static int detect_alloc(struct detect *d)
{
  gidx square = (gidx)d->p * d->p, levels = 1;
  int is_first = d->c->rank == 0;
  while (((gidx)1 << levels) <= d->blocks) levels++;
  struct arena *a = &d->arena;
  TRY(arena_alloc(a, &d->x, (gidx)ROW_BLOCK * d->p, sizeof *d->x));
  TRY(arena_alloc(a, &d->chain, square, sizeof *d->chain));
  TRY(arena_alloc(a, &d->chains, is_first ? square * d->c->size : 0, sizeof *d->chains));
  TRY(arena_alloc(a, &d->tree, is_first ? square * levels : 0, sizeof *d->tree));
  TRY(arena_alloc(a, &d->root, square, sizeof *d->root));
  TRY(arena_alloc(a, &d->counts, d->c->size, sizeof *d->counts));
  gidx tiles = ceil_div(d->k, DETECTOR_TILE) * DETECTOR_TILE * d->p;
  TRY(arena_alloc(a, &d->tiles, tiles, sizeof *d->tiles));
  TRY(arena_alloc(a, &d->start, (gidx)d->k + 1, sizeof *d->start));
  TRY(arena_alloc(a, &d->atoms, ceil_div(d->k, d->c->size) * d->p, sizeof *d->atoms));
  a = &d->result->arena;
  TRY(arena_alloc(a, &d->result->weights, (gidx)d->k * d->p, sizeof *d->result->weights));
  TRY(arena_alloc(a, &d->result->threshold, d->k, sizeof *d->result->threshold));
  TRY(arena_alloc(a, &d->result->firing, d->k, sizeof *d->result->firing));
  return arena_alloc(a, &d->result->f1, d->k, sizeof *d->result->f1);
}

/* Read a sum block, and subtract the mean. */
static int block_read(struct detect *d, gidx block)
{
  const struct row_source *rows = d->task->rows;
  gidx first = block * ROW_BLOCK;
  d->n = (idx)imin(ROW_BLOCK, rows->n - first);
  TRY(rows->read(rows->self, first, d->n, d->x));
  TRY(rows_source_check(rows, d->x, first, d->n));
  rows_center(d->x, d->n, d->p, d->task->mean);
  return OK;
}

static void stripe_add(void *self, gidx stripe)
{
  struct detect *d = self;
  idx first = (idx)stripe * STRIPE, count = (idx)imin(STRIPE, d->p - first);
  covariance_add(d->x, d->n, d->p, first, count, d->chain + (gidx)first * d->p);
}

/* d->chain <- the sums of products x_b x_c over the rows of a sum block. */
static int block_add(struct detect *d, gidx block)
{
  TRY(block_read(d, block));
  memset(d->chain, 0, (size_t)d->p * (size_t)d->p * sizeof *d->chain);
  team_run(d->task->threads, ceil_div(d->p, STRIPE), stripe_add, d);
  return OK;
}

/* d->chain on rank 0 <- the sums of products over all rows, in the order of (N.0).  Collective. */
static int products_sum(struct detect *d)
{
  struct comm *c = d->c;
  gidx square = (gidx)d->p * d->p;
  struct progress progress;
  progress_start(&progress, "covariance", "rows", d->task->rows->n);
  for (gidx first = 0; first < d->blocks; first += c->size) {
    gidx mine = first + c->rank;
    TRY(comm_agree(c, mine < d->blocks ? block_add(d, mine) : OK));
    for (int r = 0; r < c->size; r++) d->counts[r] = first + r < d->blocks ? d->p : 0;
    TRY(comm_gather(c, d->chain, d->counts, (size_t)d->p * sizeof(real), d->chains));
    for (int r = 0; c->rank == 0 && r < c->size && d->counts[r]; r++)
      block_sum_push(d->tree, &d->pushed, (idx)square, d->chains + r * square);
    progress_show(&progress, imin((first + c->size) * ROW_BLOCK, d->task->rows->n));
  }
  if (c->rank == 0) block_sum_total(d->tree, d->pushed, (idx)square, d->chain);
  return OK;
}

/* Rank 0: set d->root from the sums in d->chain. */
static int root_find(struct detect *d)
{
  gidx square = (gidx)d->p * d->p;
  if (d->c->rank) return OK;
  for (gidx i = 0; i < square; i++) d->chain[i] /= (real)d->task->rows->n;
  return whitening_find(d->p, d->chain, d->task->threads, &d->arena, d->root);
}

/* For atom_make(): the detectors of this rank's atoms are written to `out`. */
struct makers {
  const struct detect *d;
  float *out;
};

static void atom_make(void *self, gidx i)
{
  const struct makers *m = self;
  detector_make(m->d->root, m->d->p, m->d->atoms + i * m->d->p, m->out + i * m->d->p);
}

/* If rows have tiny numbers, detectors can be too large for float32. */
static int weights_check(const float *weights, gidx first, gidx count, idx p)
{
  for (gidx i = 0; i < count * p; i++)
    CHECK(isfinite(weights[i]), ERR_INPUT,
          "the detector of atom %lld is not finite in float32: multiply the rows by a power of two",
          (long long)(first + i / p));
  return OK;
}

static int weights_make(struct detect *d)
{
  struct comm *c = d->c;
  const struct atom_source *atoms = d->task->atoms;
  gidx first, count, other;
  for (int r = 0; r < c->size; r++) {
    comm_partition(d->k, c->size, r, &other, &count);
    d->counts[r] = (idx)count;
  }
  comm_partition(d->k, c->size, c->rank, &first, &count);
  int status = atoms->read(atoms->self, (idx)first, (idx)count, d->atoms);
  if (!status) status = atoms_check(d->atoms, (idx)count, 1, d->p, (idx)first, atoms->name);
  TRY(comm_agree(c, status));
  struct makers makers = {d, d->result->weights + first * d->p};
  team_run(d->task->threads, count, atom_make, &makers);
  TRY(comm_agree(c, weights_check(makers.out, first, count, d->p)));
  return comm_allgather(c, makers.out, d->counts, (size_t)d->p * sizeof(float), d->result->weights);
}

/* The number of the i-th sum block of the sample. */
static gidx sample_block(const struct detect *d, gidx i)
{
  return i * d->blocks / imin(d->blocks, DETECT_BLOCKS);
}

static float score_of(const struct detect *d, idx row, idx atom)
{
  const float *x = d->x + (gidx)row * d->p, *e = d->result->weights + (gidx)atom * d->p;
  float sum = 0;
  for (idx c = 0; c < d->p; c++) sum += x[c] * e[c];
  return sum;
}

static int fired_add(struct detect *d, gidx first, idx row, idx atom, float code)
{
  float score = score_of(d, row, atom);
  CHECK(isfinite(score), ERR_INPUT, "the score of row %lld and atom %d is not finite in float32",
        (long long)(first + row), atom);
  d->own[d->n_own++] = (struct fired){atom, score, code};
  return OK;
}

/* Append to d->own the scores and codes of atoms with a code above 0, for the rows in d->x. */
static int block_fired(struct detect *d, gidx block)
{
  struct supports s = {0};
  int status = supports_load(&s, d->task->codes, block * ROW_BLOCK, d->n, 1);
  gidx entries = status ? 0 : s.view.start[d->n];
  if (d->n_own + entries > d->own_capacity) {
    d->own_capacity = 2 * d->own_capacity + entries;
    struct fired *more = realloc(d->own, (size_t)d->own_capacity * sizeof *more);
    if (more) d->own = more;
    if (!more)
      status = status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate %lld bytes",
                           (long long)d->own_capacity * (long long)sizeof *more);
  }
  for (idx i = 0; i < d->n && !status; i++)
    for (gidx e = s.view.start[i]; e < s.view.start[i + 1] && !status; e++)
      if (s.codes[e] > 0) status = fired_add(d, block * ROW_BLOCK, i, s.view.atoms[e], s.codes[e]);
  supports_free(&s);
  return status;
}

static int by_atom(const void *a, const void *b)
{
  const struct fired *x = a, *y = b;
  if (x->atom != y->atom) return x->atom < y->atom ? -1 : 1;
  return x->score != y->score ? (x->score < y->score ? 1 : -1) : 0;
}

static int lists_alloc(struct detect *d)
{
  TRY(arena_alloc(&d->arena, &d->all, d->n_all, sizeof *d->all));
  TRY(arena_alloc(&d->arena, &d->fires, d->n_all, sizeof *d->fires));
  return arena_alloc(&d->arena, &d->begins, d->n_all, sizeof *d->begins);
}

/* Set d->start: where the list of each atom begins in d->all. */
static void starts_find(struct detect *d)
{
  memset(d->start, 0, ((size_t)d->k + 1) * sizeof *d->start);
  for (gidx i = 0; i < d->n_all; i++) d->start[d->all[i].atom + 1]++;
  for (idx a = 0; a < d->k; a++) d->start[a + 1] += d->start[a];
}

/* Set the code above which each atom fires; it stays 0 if task->chosen is set.  Keep only the
 * entries of d->all whose code is above it. */
static void firing_find(struct detect *d)
{
  gidx n = 0;
  float *firing = d->result->firing;
  for (gidx i = 0; i < d->n_all; i++) d->fires[i] = d->all[i].code;
  for (idx a = 0; a < d->k && !d->task->chosen; a++)
    firing[a] = firing_threshold(d->fires + d->start[a], d->start[a + 1] - d->start[a]);
  for (gidx i = 0; i < d->n_all; i++)
    if (d->all[i].code > firing[d->all[i].atom]) d->all[n++] = d->all[i];
  d->n_all = n;
  for (gidx i = 0; i < n; i++) d->fires[i] = d->all[i].score;
  starts_find(d);
}

/* d->all <- the entries of all ranks, sorted by atom, without those that firing_find() removes.
 * Collective. */
static int lists_join(struct detect *d)
{
  struct comm *c = d->c;
  gidx *each;
  int status = arena_alloc(&d->arena, &each, c->size, sizeof *each);
  TRY(comm_agree(c, status));
  TRY(comm_allgather_long(c, d->n_own, each));
  for (int r = 0; r < c->size && !status; d->n_all += each[r++])
    status = comm_count(each[r], &d->counts[r]);
  if (!status) status = lists_alloc(d);
  TRY(comm_agree(c, status));
  TRY(comm_allgather(c, d->own, d->counts, sizeof *d->own, d->all));
  qsort(d->all, (size_t)d->n_all, sizeof *d->all, by_atom);
  starts_find(d);
  firing_find(d);
  return OK;
}

/* d->tiles <- a copy of the detectors.  A tile has the weights of DETECTOR_TILE atoms for each
 * column; the last tile is padded with zeros. */
static void tiles_fill(struct detect *d)
{
  for (idx a = 0; a < d->k; a++) {
    float *tile = d->tiles + (gidx)(a / DETECTOR_TILE) * DETECTOR_TILE * d->p;
    for (idx c = 0; c < d->p; c++)
      tile[(gidx)c * DETECTOR_TILE + a % DETECTOR_TILE] = d->result->weights[(gidx)a * d->p + c];
  }
}

/* For each row in d->x and each atom of tile `task`: find detector_position() of the atom's score
 * among the atom's part of d->fires.  If the position is inside that part, count it in
 * d->begins. */
static void tile_count(void *self, gidx task)
{
  enum { ROWS = 64 };
  struct detect *d = self;
  idx first = (idx)task * DETECTOR_TILE, count = (idx)imin(DETECTOR_TILE, d->k - first);
  float scores[ROWS * DETECTOR_TILE];
  if (d->start[first] == d->start[first + count]) return;
  for (idx row = 0; row < d->n; row += ROWS) {
    idx rows = (idx)imin(ROWS, d->n - row);
    detector_scores(d->x + (gidx)row * d->p, rows, d->p,
                    d->tiles + (gidx)task * DETECTOR_TILE * d->p, scores);
    for (idx i = 0; i < rows; i++)
      for (idx j = 0; j < count; j++) {
        gidx begin = d->start[first + j], n = d->start[first + j + 1] - begin;
        gidx at = detector_position(d->fires + begin, n, scores[i * DETECTOR_TILE + j]);
        if (at < n) d->begins[begin + at]++;
      }
  }
}

/* Read this rank's blocks of the sample.  counts = 0: make the list d->own; counts = 1: count the
 * scores of all rows. */
static int sample_scan(struct detect *d, int counts)
{
  gidx most = imin(d->blocks, DETECT_BLOCKS);
  for (gidx i = d->c->rank; i < most; i += d->c->size) {
    TRY(block_read(d, sample_block(d, i)));
    if (!counts) TRY(block_fired(d, sample_block(d, i)));
    if (!counts) d->result->rows += d->n;
    if (counts) team_run(d->task->threads, ceil_div(d->k, DETECTOR_TILE), tile_count, d);
  }
  return OK;
}

static void thresholds_find(struct detect *d)
{
  struct detect_result *r = d->result;
  idx told = 0;
  for (idx a = 0; a < d->k; a++) {
    gidx begin = d->start[a], n = d->start[a + 1] - begin;
    struct detector_threshold t = detector_threshold_find(d->fires + begin, n, d->begins + begin);
    r->threshold[a] = t.least;
    r->f1[a] = t.hits ? 2 * (real)t.hits / (real)(t.said + n) : 0;
    r->silent += n == 0;
    told += n > 0;
    r->mean_f1 += r->f1[a];
  }
  r->mean_f1 = told ? r->mean_f1 / told : nan_canonical();
}

/* Every rank has the lists of all rows of the sample.  Returns an estimate of their bytes. */
static gidx lists_bytes(const struct detect_task *t)
{
  gidx rows = imin(t->rows->n, (gidx)DETECT_BLOCKS * ROW_BLOCK);
  gidx entries = (gidx)((real)t->codes->entries * (real)rows / (real)t->rows->n);
  return entries * (gidx)(3 * sizeof(struct fired) + sizeof(float) + sizeof(gidx));
}

/* Runs the allocations of the job with dry arenas, which only count bytes. */
int detect_memory(const struct detect_task *t, struct comm *c, gidx *bytes)
{
  struct detect_result result = {.arena.is_dry = 1};
  struct detect d = {.task = t,
                     .c = c,
                     .result = &result,
                     .k = t->atoms->k,
                     .p = t->atoms->p,
                     .blocks = ceil_div(t->rows->n, ROW_BLOCK),
                     .arena.is_dry = 1};
  TRY(detect_alloc(&d));
  if (c->rank == 0) TRY(whitening_find(d.p, NULL, t->threads, &d.arena, NULL));
  *bytes = (gidx)d.arena.bytes + (gidx)result.arena.bytes + lists_bytes(t);
  return OK;
}

/* Check that this rank has enough memory. */
static int room_check(const struct detect_task *t, struct comm *c)
{
  gidx needed, present = memory_per_process(c->local_size);
  TRY(detect_memory(t, c, &needed));
  CHECK(needed <= present, ERR_MEMORY,
        "detectors of %d atoms and %d columns take %lld bytes on rank %d, %lld are present: start "
        "fewer ranks on a machine",
        t->atoms->k, t->atoms->p, (long long)needed, c->rank, (long long)present);
  return OK;
}

int detect_memory_check(const struct detect_task *task, struct comm *c)
{
  return comm_agree(c, room_check(task, c));
}

static int detect_all(struct detect *d)
{
  struct comm *c = d->c;
  TRY(comm_agree(c, detect_alloc(d)));
  TRY(products_sum(d));
  TRY(comm_agree(c, root_find(d)));
  TRY(comm_broadcast(c, d->root, (gidx)d->p * d->p, sizeof *d->root));
  TRY(weights_make(d));
  tiles_fill(d);
  TRY(comm_agree(c, sample_scan(d, 0)));
  TRY(comm_sum(c, &d->result->rows, 1));
  TRY(lists_join(d));
  TRY(comm_agree(c, sample_scan(d, 1)));
  TRY(comm_sum(c, d->begins, d->n_all));
  thresholds_find(d);
  return OK;
}

int detect_run(const struct detect_task *task, struct comm *c, struct detect_result *result)
{
  struct detect *d = NULL;
  memset(result, 0, sizeof *result);
  TRY(comm_agree(c, struct_alloc(&d, sizeof *d)));
  *d = (struct detect){.task = task,
                       .c = c,
                       .result = result,
                       .k = task->atoms->k,
                       .p = task->atoms->p,
                       .blocks = ceil_div(task->rows->n, ROW_BLOCK)};
  int status = detect_all(d);
  free(d->own);
  arena_free(&d->arena);
  free(d);
  return status;
}

void detect_free(struct detect_result *result)
{
  arena_free(&result->arena);
}
