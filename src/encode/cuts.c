/* SPDX-License-Identifier: BSD-3-Clause
 * A window of keys is counted, all of them where nothing is known, else those near the cut of some
 * rows; where the cut is not in the window, all keys are counted again. */
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
  SAMPLE = 16384,   /* rows that tell about where a cut is */
  SCORES = 1 << 22, /* at a time */
  PATIENCE = 20     /* seconds that a stop waits for the end of a pass */
};

/* A pass over this rank's share of the rows. */
struct pass {
  struct encode *e;
  const struct row_source *rows; /* all */
  gidx first, n;                 /* this rank's */
  int choice;
  struct key_window *window; /* NULL: ties are looked for, of this value, */
  float value;
  gidx wanted, row, ties; /* the last so many of them: wanted falls to 0, and then these are set */
  int hashes;             /* the rows' terms are added up */
  uint64_t terms;
  struct encoder lister; /* of an encoder whose codes are not solved */
  const float *scores;   /* those of a piece that may be codes */
  gidx count;
};

int cuts_alloc(struct encode *e)
{
  struct imported *m = &e->imported;
  TRY(arena_alloc(&e->arena, &m->window.bins, WINDOW_BINS + 1, sizeof *m->window.bins));
  return arena_alloc(&e->arena, &m->own_bins, WINDOW_BINS + 1, sizeof *m->own_bins);
}

static int is_active(const struct pass *s)
{
  return encode_is_active(s->e->task);
}

/* Rows of a piece to the device. */
static int piece_read(struct pass *s, gidx first, idx n)
{
  const struct encode *e = s->e;
  const struct imported *m = &e->imported;
  TRY(rows_fetch(&s->e->files, (struct rows_access){s->rows, first, n, m->raw}));
  TRY(rows_source_check(s->rows, m->raw, first, n));
  if (s->hashes) s->terms += items_terms(m->raw, n, e->p, first);
  memcpy(m->x, m->raw, (size_t)n * (size_t)e->p * sizeof *m->x);
  rows_center(m->x, n, e->p, e->task->mean);
  return device_put(&s->e->device, &m->rows, 0, (gidx)n * e->p * (gidx)sizeof(float));
}

/* Scores from `least` on of a piece of active atoms: by the choices before, and for this one. */
static int active_scores(struct pass *s, gidx first, idx n, int32_t least)
{
  struct encode *e = s->e;
  struct active *a = &e->imported.active;
  struct found_encoder by = e->task->encoder->active;
  const struct batch_cut cut = {.key = least - 1, .digits = BATCH_DIGITS};
  by.looks = s->choice - 1;
  a->row = first;
  TRY(active_encode(a, &e->imported.rows, 0, n, &by));
  if (s->choice) TRY(active_again(a));
  TRY(active_list(a, &cut));
  s->scores = a->value.host;
  s->count = ((const gidx *)a->starts.host)[n];
  return OK;
}

static int encoder_scores(struct pass *s, gidx first, idx n, gidx *key)
{
  struct encode *e = s->e;
  struct imported *m = &e->imported;
  struct encoder_job job = {
      .encoder = &s->lister, .rows = &m->rows, .n = n, .lengths = m->lengths, .found = &m->mine};
  TRY(device_encoder(&e->device, &job));
  gidx row = first + job.bad.row;
  if (job.bad.row >= 0) *key = (row << 31) + job.bad.atom;
  CHECK(job.bad.row < 0, ERR_INPUT,
        "the score of row %lld and atom %d is not a finite float32 number", (long long)row,
        job.bad.atom);
  s->scores = m->mine.score;
  s->count = m->mine.n;
  return OK;
}

/* Where the entries of a row of the piece end. */
static gidx row_end(const struct pass *s, idx row, gidx begin)
{
  const struct imported *m = &s->e->imported;
  return is_active(s) ? ((const gidx *)m->active.starts.host)[row + 1] : begin + m->lengths[row];
}

/* Count down to the last tie that is a code. */
static void ties_count(struct pass *s, gidx first, idx n)
{
  for (gidx i = 0, at = 0, end; i < n && s->wanted > 0; i++, at = end) {
    gidx ties = 0;
    end = row_end(s, (idx)i, at);
    for (gidx j = at; j < end; j++) ties += s->scores[j] == s->value;
    s->ties = imin(ties, s->wanted);
    s->row = first + i;
    s->wanted -= s->ties;
  }
}

static int piece_pass(struct pass *s, gidx first, idx n, gidx *key)
{
  if (!s->window && s->wanted <= 0) return OK;
  TRY(piece_read(s, first, n));
  if (is_active(s))
    TRY(active_scores(s, first, n, s->window ? s->window->base : batch_key(s->value)));
  else
    TRY(encoder_scores(s, first, n, key));
  if (s->window)
    window_add(s->window, s->scores, s->count);
  else
    ties_count(s, first, n);
  return OK;
}

/* What asks this rank to stop, where what is left takes longer than who asks may wait. */
static uint64_t stop_asked(const struct pass *s, double begun, gidx done, gidx all)
{
  double spent = log_seconds() - begun,
         left = done ? spent * (double)(all - done) / (double)done : 0;
  return left > PATIENCE ? stops_asked(&s->e->task->wishes) : 0;
}

/* Go through the first `most` of this rank's rows.  Collective: ranks have shares of one length but
 * for a row. */
static int rows_pass(struct pass *s, gidx most)
{
  const struct encode_task *t = s->e->task;
  struct comm *c = s->e->c;
  gidx n = imin(s->n, most), longest = imin(ceil_div(s->rows->n, c->size), most);
  idx each = (idx)imin(s->e->block, imax(SCORES / t->atoms->k, 1));
  double begun = log_seconds();
  struct progress progress;
  progress_start(&progress, "l0", "rows", longest * c->size);
  for (gidx at = 0; at < longest; at += each) {
    gidx key = COMM_NO_KEY, here = imin(each, n - at);
    uint64_t asked = stop_asked(s, begun, at, longest);
    int status = here > 0 ? piece_pass(s, s->first + at, (idx)here, &key) : OK;
    TRY(comm_agree_flags(c, status, key, &asked));
    if (asked)
      return comm_agree(c, status_fail(ERR_STOPPED, __FILE__, __LINE__,
                                       "stopped as asked, while the cut of '--l0' was looked for: "
                                       "nothing of this run is saved, and --resume begins there"));
    progress_show(&progress, imin(at + each, longest) * c->size);
  }
  return OK;
}

/* Count keys from `base` on in steps of 2^shift over the first `most` rows of each rank's share. */
static int keys_count(struct pass *s, int32_t base, int shift, gidx most)
{
  struct imported *m = &s->e->imported;
  float least;
  s->window = &m->window;
  window_begin(&m->window, base, shift);
  memcpy(&least, &base, sizeof least);
  if (!is_active(s))
    s->lister = cuts_encoder(s->e->task->encoder, base > 1 ? least : 0, m->threshold);
  TRY(rows_pass(s, most));
  memcpy(m->own_bins, m->window.bins, (WINDOW_BINS + 1) * sizeof *m->own_bins);
  return comm_sum(s->e->c, m->window.bins, WINDOW_BINS + 1);
}

static int all_keys_count(struct pass *s, gidx most)
{
  return keys_count(s, 1, 31 - WINDOW_BITS, most);
}

/* *key <- about where the cut is, by some rows. */
static int key_guess(struct pass *s, int32_t *key)
{
  struct comm *c = s->e->c;
  gidx each = imax(SAMPLE / c->size, 1), n = 0, bin, left, first, count;
  real l0 = s->e->task->cuts->l0;
  for (int r = 0; r < c->size; r++) {
    comm_partition(s->rows->n, c->size, r, &first, &count);
    n += imin(count, each);
  }
  TRY(all_keys_count(s, each));
  int found = window_find(&s->e->imported.window, imax(cuts_most(l0, n), 1), &bin, &left);
  *key = found ? window_key(&s->e->imported.window, bin) : 1;
  return OK;
}

/* Of the scores that equal the cut, `left` are codes: which is the last one?  Every rank knows how
 * many its rows have. */
static int ties_find(struct pass *s, gidx own, gidx left, struct score_cut *cut)
{
  struct encode *e = s->e;
  gidx *all = e->imported.counts, before = 0, at[2] = {0};
  TRY(comm_allgather_long(e->c, own, all));
  for (int r = 0; r < e->c->rank; r++) before += all[r];
  int is_here = before < left && left <= before + own;
  s->window = NULL;
  s->value = cut->least;
  s->wanted = is_here ? left - before : 0;
  if (!is_active(s)) s->lister = cuts_encoder(e->task->encoder, cut->least, e->imported.threshold);
  TRY(rows_pass(s, s->rows->n));
  if (is_here) {
    at[0] = s->row;
    at[1] = s->ties;
  }
  TRY(comm_sum(e->c, at, 2));
  cut->row = at[0];
  cut->ties = at[1];
  return OK;
}

/* The cut is in this bin of the window, a key each. */
static int cut_take(struct pass *s, gidx bin, gidx left, struct score_cut *cut)
{
  const struct imported *m = &s->e->imported;
  int32_t key = window_key(&m->window, bin);
  memcpy(&cut->least, &key, sizeof cut->least);
  cut->row = s->rows->n;
  cut->ties = 0;
  return left < m->window.bins[bin] ? ties_find(s, m->own_bins[bin], left, cut) : OK;
}

/* Fewer scores than are wanted are positive: all are codes. */
static int all_take(const struct pass *s, struct score_cut *cut)
{
  *cut = (struct score_cut){.row = s->rows->n};
  return OK;
}

static int cut_find(struct pass *s, struct score_cut *cut)
{
  const struct key_window *w = &s->e->imported.window;
  gidx n = s->rows->n, most = cuts_most(s->e->task->cuts->l0, n), bin, left;
  int32_t key = 1, base;
  TRY(key_guess(s, &key));
  base = (int32_t)imax(key - WINDOW_BINS / 2, 1);
  s->hashes = s->choice == 0;
  TRY(keys_count(s, base, 0, n));
  s->hashes = 0;
  if (window_find(w, most, &bin, &left)) return cut_take(s, bin, left, cut);
  if (base == 1 && w->bins[WINDOW_BINS] < most) return all_take(s, cut);
  TRY(all_keys_count(s, n));
  if (!window_find(w, most, &bin, &left)) return all_take(s, cut);
  TRY(keys_count(s, window_key(w, bin), 0, n));
  CHECK(window_find(w, most, &bin, &left), ERR_INTERNAL, "no cut for %lld codes", (long long)most);
  return cut_take(s, bin, left, cut);
}

/* floor <- that of the first rows (N.49), where no encoder has one. */
static int floor_find(struct pass *s)
{
  struct encode *e = s->e;
  const struct imported *m = &e->imported;
  idx n = (idx)imin(s->rows->n, SHUFFLE_ROWS), count;
  real sum = 0, *floor = &e->task->cuts->floor;
  int status = OK;
  if (!is_active(s) || e->task->encoder->active.floor > 0) return OK;
  for (idx first = 0; first < n && e->c->rank == 0 && !status; first += count) {
    count = (idx)imin(n - first, e->block);
    status = piece_read(s, first, count);
    for (gidx i = 0; i < (gidx)count * e->p && !status; i++) sum = fma(m->x[i], m->x[i], sum);
  }
  *floor = find_standard(sum / n).floor;
  TRY(comm_agree(e->c, status));
  TRY(comm_broadcast(e->c, floor, 1, sizeof *floor));
  CHECK(*floor > 0, ERR_INPUT,
        "the rows of '%s' are all equal, and 0 without their mean: "
        "they have no codes",
        s->rows->name);
  return OK;
}

int cuts_find(struct encode *e)
{
  struct score_cuts *cuts = e->task->cuts;
  struct active *a = &e->imported.active;
  struct pass s = {.e = e, .rows = encode_whole(e->task)};
  int choices = encode_is_active(e->task) ? e->task->encoder->active.looks + 1 : 1;
  comm_partition(s.rows->n, e->c->size, e->c->rank, &s.first, &s.n);
  TRY(floor_find(&s));
  if (cuts->floor > 0) a->floor = cuts->floor;
  a->cuts = cuts;
  for (; s.choice < choices; s.choice++) TRY(cut_find(&s, &cuts->at[s.choice]));
  gidx sum = (gidx)s.terms;
  TRY(comm_sum(e->c, &sum, 1));
  cuts->rows = content_hash((uint64_t)sum, s.rows->n, e->p, 1);
  cuts->n = choices;
  return OK;
}
