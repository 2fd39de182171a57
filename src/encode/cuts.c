/* SPDX-License-Identifier: BSD-3-Clause
 * A cut is the least score that is a code.  A key is the bits of a positive score, which ascend as
 * scores do.  A window is a range of keys with a count for each bin of keys (model/cuts.h).
 *
 * A sample of the rows, counted in a window over all keys, gives roughly the key of the cut.  Then
 * all rows are counted in a window around that key, with one key per bin.  If the cut is not in
 * that window, all rows are counted in the window over all keys, then in a window on the bin that
 * has the cut. */
#include "encode/cuts.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "encode/encode_impl.h"
#include "model/access.h"
#include "model/identity.h"
#include "model/shuffle.h"

enum {
  SAMPLE = 16384,         /* rows of all ranks that show roughly where the cut is */
  PIECE_SCORES = 1 << 22, /* of a piece of rows */
  PATIENCE = 20           /* seconds that a request to stop may wait for the end of a pass */
};

/* A pass over this rank's share of the rows, piece by piece.  It counts the keys of scores, or
 * looks for the last accepted tie: the last score that equals the cut and is a code. */
struct pass {
  struct encode *e;
  const struct row_source *rows; /* of all ranks */
  gidx first, n;                 /* this rank's share */
  int look;                      /* number, from 0, of the choice whose cut is looked for */
  struct key_window *window;     /* where keys are counted; NULL: ties are looked for */
  float value;
  gidx wanted;    /* ties still to be accepted */
  gidx row, ties; /* after the pass: row of the last accepted tie; accepted ties of this row */
  int hashes;     /* the hash terms of the rows are added to `terms` */
  uint64_t terms;
  struct encoder lister; /* finds the scores, unless the encoder is ENCODER_ACTIVE */
  const float *scores;   /* scores of the piece that are in the window or may be ties */
  gidx count;
};

int cuts_alloc(struct encode *e)
{
  struct imported *m = &e->imported;
  TRY(arena_alloc(&e->arena, &m->window.bins, WINDOW_BINS + 1, sizeof *m->window.bins));
  return arena_alloc(&e->arena, &m->own_bins, WINDOW_BINS + 1, sizeof *m->own_bins);
}

static int is_active(const struct pass *pass)
{
  return encode_is_active(pass->e->task);
}

/* Read a piece of the rows, and put it on the device. */
static int piece_read(struct pass *pass, gidx first, idx n)
{
  const struct encode *e = pass->e;
  const struct imported *m = &e->imported;
  TRY(rows_fetch(&pass->e->files, (struct rows_access){pass->rows, first, n, m->raw}));
  TRY(rows_source_check(pass->rows, m->raw, first, n));
  if (pass->hashes) pass->terms += items_terms(m->raw, n, e->p, first);
  memcpy(m->x, m->raw, (size_t)n * (size_t)e->p * sizeof *m->x);
  rows_center(m->x, n, e->p, e->task->mean);
  return device_put(&pass->e->device, &m->rows, 0, (gidx)n * e->p * (gidx)sizeof(float));
}

/* pass->scores <- the scores of a piece whose keys are at least `least`, for ENCODER_ACTIVE.  The
 * rows are first described by the earlier choices, and then scored for this one. */
static int active_scores(struct pass *pass, gidx first, idx n, int32_t least)
{
  struct encode *e = pass->e;
  struct active *a = &e->imported.active;
  struct found_encoder by = e->task->encoder->active;
  const struct batch_cut cut = {.key = least - 1, .digits = BATCH_DIGITS};
  by.looks = pass->look - 1;
  a->row = first;
  TRY(active_encode(a, &e->imported.rows, 0, n, &by));
  if (pass->look) TRY(active_again(a));
  TRY(active_list(a, &cut));
  pass->scores = a->value.host;
  pass->count = ((const gidx *)a->starts.host)[n];
  return OK;
}

static int encoder_scores(struct pass *pass, gidx first, idx n, gidx *key)
{
  struct encode *e = pass->e;
  struct imported *m = &e->imported;
  struct encoder_job job = {
      .encoder = &pass->lister, .rows = &m->rows, .n = n, .lengths = m->lengths, .found = &m->mine};
  TRY(device_encoder(&e->device, &job));
  gidx row = first + job.bad.row;
  if (job.bad.row >= 0) *key = (row << 31) + job.bad.atom;
  CHECK(job.bad.row < 0, ERR_INPUT,
        "the score of row %lld and atom %d is not a finite float32 number", (long long)row,
        job.bad.atom);
  pass->scores = m->mine.score;
  pass->count = m->mine.n;
  return OK;
}

/* The end of the row's entries, which start at `begin`. */
static gidx row_end(const struct pass *pass, idx row, gidx begin)
{
  const struct imported *m = &pass->e->imported;
  return is_active(pass) ? ((const gidx *)m->active.starts.host)[row + 1] : begin + m->lengths[row];
}

/* Subtract the ties of a piece from pass->wanted, until that is 0.  Then pass->row is the last row
 * with an accepted tie, and pass->ties is the number of its accepted ties. */
static void ties_count(struct pass *pass, gidx first, idx n)
{
  for (gidx i = 0, at = 0, end; i < n && pass->wanted > 0; i++, at = end) {
    gidx ties = 0;
    end = row_end(pass, (idx)i, at);
    for (gidx j = at; j < end; j++) ties += pass->scores[j] == pass->value;
    pass->ties = imin(ties, pass->wanted);
    pass->row = first + i;
    pass->wanted -= pass->ties;
  }
}

static int piece_pass(struct pass *pass, gidx first, idx n, gidx *key)
{
  if (!pass->window && pass->wanted <= 0) return OK;
  TRY(piece_read(pass, first, n));
  if (is_active(pass))
    TRY(active_scores(pass, first, n, pass->window ? pass->window->base : batch_key(pass->value)));
  else
    TRY(encoder_scores(pass, first, n, key));
  if (pass->window)
    window_add(pass->window, pass->scores, pass->count);
  else
    ties_count(pass, first, n);
  return OK;
}

/* The reasons to stop that this rank knows, as bits; 0 if the pass will end within PATIENCE
 * seconds. */
static uint64_t stop_asked(const struct pass *pass, double begun, gidx done, gidx all)
{
  double spent = log_seconds() - begun,
         left = done ? spent * (double)(all - done) / (double)done : 0;
  return left > PATIENCE ? stops_asked(&pass->e->task->wishes) : 0;
}

/* Go through the first `most` rows of this rank's share.  Collective: the shares of ranks differ by
 * at most one row. */
static int rows_pass(struct pass *pass, gidx most)
{
  const struct encode_task *t = pass->e->task;
  struct comm *c = pass->e->c;
  gidx n = imin(pass->n, most), longest = imin(ceil_div(pass->rows->n, c->size), most);
  idx each = (idx)imin(pass->e->block, imax(PIECE_SCORES / t->atoms->k, 1));
  double begun = log_seconds();
  struct progress progress;
  progress_start(&progress, "l0", "rows", longest * c->size);
  for (gidx at = 0; at < longest; at += each) {
    gidx key = COMM_NO_KEY, here = imin(each, n - at);
    uint64_t asked = stop_asked(pass, begun, at, longest);
    int status = here > 0 ? piece_pass(pass, pass->first + at, (idx)here, &key) : OK;
    TRY(comm_agree_flags(c, status, key, &asked));
    if (asked)
      return comm_agree(
          c, status_fail(ERR_STOPPED, __FILE__, __LINE__,
                         "stopped as asked, while the cut of '--l0' was looked for: "
                         "nothing of this run is saved, and --resume looks for the cut again"));
    progress_show(&progress, imin(at + each, longest) * c->size);
  }
  return OK;
}

/* Count the keys from `base` on, 2^shift keys per bin, over the first `most` rows of each rank's
 * share. */
static int keys_count(struct pass *pass, int32_t base, int shift, gidx most)
{
  struct imported *m = &pass->e->imported;
  float least;
  pass->window = &m->window;
  window_begin(&m->window, base, shift);
  memcpy(&least, &base, sizeof least);
  if (!is_active(pass))
    pass->lister = cuts_encoder(pass->e->task->encoder, base > 1 ? least : 0, m->threshold);
  TRY(rows_pass(pass, most));
  memcpy(m->own_bins, m->window.bins, (WINDOW_BINS + 1) * sizeof *m->own_bins);
  return comm_sum(pass->e->c, m->window.bins, WINDOW_BINS + 1);
}

static int all_keys_count(struct pass *pass, gidx most)
{
  return keys_count(pass, 1, 31 - WINDOW_BITS, most);
}

/* *key <- roughly the cut, from a sample of the rows. */
static int key_guess(struct pass *pass, int32_t *key)
{
  struct comm *c = pass->e->c;
  gidx each = imax(SAMPLE / c->size, 1), n = 0, bin, left, first, count;
  real l0 = pass->e->task->cuts->l0;
  for (int r = 0; r < c->size; r++) {
    comm_partition(pass->rows->n, c->size, r, &first, &count);
    n += imin(count, each);
  }
  TRY(all_keys_count(pass, each));
  int found = window_find(&pass->e->imported.window, imax(cuts_most(l0, n), 1), &bin, &left);
  *key = found ? window_key(&pass->e->imported.window, bin) : 1;
  return OK;
}

/* `left` of the scores that equal the cut are codes: *cut <- the row and number of the last of
 * them.  own: how many such scores this rank's rows have. */
static int ties_find(struct pass *pass, gidx own, gidx left, struct score_cut *cut)
{
  struct encode *e = pass->e;
  gidx *all = e->imported.counts, before = 0, at[2] = {0};
  TRY(comm_allgather_long(e->c, own, all));
  for (int r = 0; r < e->c->rank; r++) before += all[r];
  int is_here = before < left && left <= before + own;
  pass->window = NULL;
  pass->value = cut->least;
  pass->wanted = is_here ? left - before : 0;
  if (!is_active(pass))
    pass->lister = cuts_encoder(e->task->encoder, cut->least, e->imported.threshold);
  TRY(rows_pass(pass, pass->rows->n));
  if (is_here) {
    at[0] = pass->row;
    at[1] = pass->ties;
  }
  TRY(comm_sum(e->c, at, 2));
  cut->row = at[0];
  cut->ties = at[1];
  return OK;
}

/* Take the cut from a window with one key per bin: it is the score with the key of this bin. */
static int cut_take(struct pass *pass, gidx bin, gidx left, struct score_cut *cut)
{
  const struct imported *m = &pass->e->imported;
  int32_t key = window_key(&m->window, bin);
  memcpy(&cut->least, &key, sizeof cut->least);
  cut->row = pass->rows->n;
  cut->ties = 0;
  return left < m->window.bins[bin] ? ties_find(pass, m->own_bins[bin], left, cut) : OK;
}

/* Fewer scores are positive than codes are wanted, so all positive scores are codes. */
static int all_take(const struct pass *pass, struct score_cut *cut)
{
  *cut = (struct score_cut){.row = pass->rows->n};
  return OK;
}

static int cut_find(struct pass *pass, struct score_cut *cut)
{
  const struct key_window *w = &pass->e->imported.window;
  gidx n = pass->rows->n, most = cuts_most(pass->e->task->cuts->l0, n), bin, left;
  int32_t key = 1, base;
  TRY(key_guess(pass, &key));
  base = (int32_t)imax(key - WINDOW_BINS / 2, 1);
  pass->hashes = pass->look == 0;
  TRY(keys_count(pass, base, 0, n));
  pass->hashes = 0;
  if (window_find(w, most, &bin, &left)) return cut_take(pass, bin, left, cut);
  if (base == 1 && w->bins[WINDOW_BINS] < most) return all_take(pass, cut);
  TRY(all_keys_count(pass, n));
  if (!window_find(w, most, &bin, &left)) return all_take(pass, cut);
  TRY(keys_count(pass, window_key(w, bin), 0, n));
  CHECK(window_find(w, most, &bin, &left), ERR_INTERNAL, "no cut for %lld codes", (long long)most);
  return cut_take(pass, bin, left, cut);
}

/* For ENCODER_ACTIVE: cuts->floor <- the floor of (N.49), from the first rows, if the encoder has
 * no floor of its own. */
static int floor_find(struct pass *pass)
{
  struct encode *e = pass->e;
  const struct imported *m = &e->imported;
  idx n = (idx)imin(pass->rows->n, SHUFFLE_ROWS), count;
  real sum = 0, *standard = &e->task->cuts->floor;
  int status = OK;
  if (!is_active(pass) || e->task->encoder->active.floor > 0) return OK;
  for (idx first = 0; first < n && e->c->rank == 0 && !status; first += count) {
    count = (idx)imin(n - first, e->block);
    status = piece_read(pass, first, count);
    for (gidx i = 0; i < (gidx)count * e->p && !status; i++) sum = fma(m->x[i], m->x[i], sum);
  }
  *standard = find_standard(sum / n).floor;
  TRY(comm_agree(e->c, status));
  TRY(comm_broadcast(e->c, standard, 1, sizeof *standard));
  CHECK(*standard > 0, ERR_INPUT,
        "the first rows of '%s' are all equal, and 0 after their mean is subtracted: "
        "they have no codes",
        pass->rows->name);
  return OK;
}

int cuts_find(struct encode *e)
{
  struct score_cuts *cuts = e->task->cuts;
  struct active *a = &e->imported.active;
  struct pass pass = {.e = e, .rows = encode_whole(e->task)};
  int looks = encode_is_active(e->task) ? e->task->encoder->active.looks + 1 : 1;
  comm_partition(pass.rows->n, e->c->size, e->c->rank, &pass.first, &pass.n);
  TRY(floor_find(&pass));
  if (cuts->floor > 0) a->floor = cuts->floor;
  a->cuts = cuts;
  for (; pass.look < looks; pass.look++) TRY(cut_find(&pass, &cuts->at[pass.look]));
  gidx sum = (gidx)pass.terms;
  TRY(comm_sum(e->c, &sum, 1));
  cuts->rows = content_hash((uint64_t)sum, pass.rows->n, e->p, 1);
  cuts->n = looks;
  return OK;
}
