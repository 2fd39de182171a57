/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are shared out until each has its codes and its error, then atoms are.  What a rank knows of
 * its rows goes to all, so that an atom's gradient is made in one place, in the order of rows. */
#include "train/step.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "device/triad.h"
#include "model/dictionary.h"
#include "train/train.h"

enum { PIECE = 512 }; /* rows whose scores are held at a time */

static int entries_alloc(struct entry_rows *e, struct arena *a, gidx own, gidx batch, gidx p)
{
  gidx mine = own * e->most, all = batch * e->most;
  TRY(arena_alloc(a, &e->atoms, mine, sizeof *e->atoms));
  TRY(arena_alloc(a, &e->codes, mine, sizeof *e->codes));
  TRY(arena_alloc(a, &e->lengths, batch, sizeof *e->lengths));
  TRY(arena_alloc(a, &e->start, own + 1, sizeof *e->start));
  TRY(arena_alloc(a, &e->index, mine, sizeof *e->index));
  TRY(arena_alloc(a, &e->value, mine, sizeof *e->value));
  TRY(arena_alloc(a, &e->slope, mine, sizeof *e->slope));
  TRY(arena_alloc(a, &e->mine, mine, sizeof *e->mine));
  TRY(arena_alloc(a, &e->all, all, sizeof *e->all));
  return arena_alloc(a, &e->error, e->most ? batch * p : 0, sizeof *e->error);
}

int stepper_alloc(struct stepper *s, struct arena *a)
{
  const struct train_sizes *z = s->sizes;
  gidx batch = s->batch, own = ceil_div(batch, s->c->size), p = z->p, k = z->k;
  comm_share(k, s->c->size, s->c->rank, &s->atom_first, &s->atoms);
  s->live.most = z->s;
  s->dead.most = (idx)imin(z->aux, k);
  gidx most = batch * imax(s->live.most, s->dead.most);
  TRY(arena_alloc(a, &s->x, batch * p, sizeof *s->x));
  TRY(arena_alloc(a, &s->h, imin(own, PIECE) * k, sizeof *s->h));
  TRY(arena_alloc(a, &s->ones, batch, sizeof *s->ones));
  TRY(entries_alloc(&s->live, a, own, batch, p));
  TRY(entries_alloc(&s->dead, a, own, batch, p));
  TRY(arena_alloc(a, &s->squares, 2 * batch, sizeof *s->squares));
  TRY(arena_alloc(a, &s->is_dead, k, 1));
  TRY(arena_alloc(a, &s->start, s->atoms + 2, sizeof *s->start));
  TRY(arena_alloc(a, &s->row, most, sizeof *s->row));
  TRY(arena_alloc(a, &s->code, most, sizeof *s->code));
  TRY(arena_alloc(a, &s->slope, most, sizeof *s->slope));
  for (int i = 0; i < TRAIN_ARRAYS; i++)
    TRY(arena_alloc(a, &s->gradient[i], train_numbers((idx)s->atoms, z->p, i), sizeof(float)));
  TRY(arena_alloc(a, &s->many, s->c->size, sizeof *s->many));
  TRY(arena_alloc(a, &s->counts, s->c->size, sizeof *s->counts));
  for (gidx i = 0; i < batch && s->ones; i++) s->ones[i] = 1;
  return OK;
}

/* is_dead[k] before the step; are any? */
static int dead_find(struct stepper *s)
{
  const struct train_sizes *z = s->sizes;
  int any = 0;
  for (idx a = 0; a < z->k && s->dead.most; a++)
    any |= s->is_dead[a] = s->state->idle[a] >= z->dead_rows;
  return any;
}

/* What the team works on: own rows from `first` on, whose scores are in h. */
struct rows_work {
  struct stepper *s;
  gidx first;
  int any_dead;
};

/* The codes of one row, and those of dead latents. */
static void row_choose(void *self, gidx i)
{
  const struct rows_work *w = self;
  struct stepper *s = w->s;
  idx k = s->sizes->k;
  gidx row = w->first + i;
  float *h = s->h + i * k;
  struct entry_rows *live = &s->live, *dead = &s->dead;
  live->lengths[s->first + row] = train_select(h, k, live->most, live->atoms + row * live->most,
                                               live->codes + row * live->most);
  dead->lengths[s->first + row] = 0;
  if (!w->any_dead) return;
  for (idx a = 0; a < k; a++)
    if (!s->is_dead[a]) h[a] = 0;
  dead->lengths[s->first + row] = train_select(h, k, dead->most, dead->atoms + row * dead->most,
                                               dead->codes + row * dead->most);
}

/* Put the entries of own rows one after another. */
static void entries_pack(const struct stepper *s, struct entry_rows *e)
{
  e->start[0] = 0;
  for (gidx i = 0; i < s->own; i++) {
    gidx n = e->lengths[s->first + i], at = e->start[i];
    memcpy(e->index + at, e->atoms + i * e->most, (size_t)n * sizeof *e->index);
    memcpy(e->value + at, e->codes + i * e->most, (size_t)n * sizeof *e->value);
    e->start[i + 1] = at + n;
  }
}

static int rows_choose(struct stepper *s, int any_dead)
{
  const struct train_sizes *z = s->sizes;
  const struct train_state *w = s->state;
  struct phase *scores = &s->phases[TRAIN_SCORES], *codes = &s->phases[TRAIN_CODES];
  for (gidx first = 0, n; first < s->own; first += n) {
    n = imin(s->own - first, PIECE);
    struct triad_product p = {s->x + (s->first + first) * z->p,
                              {w->w[TRAIN_ENCODER], 1, z->p},
                              w->w[TRAIN_BIAS],
                              s->h,
                              z->p,
                              z->k,
                              (idx)n,
                              z->p,
                              z->k};
    struct rows_work work = {s, first, any_dead};
    phase_begin(scores);
    TRY(device_triad_product(s->device, &p));
    phase_end(scores, (double)n * z->k * z->p);
    phase_begin(codes);
    team_run(s->threads, n, row_choose, &work);
    phase_end(codes, 0);
  }
  entries_pack(s, &s->live);
  entries_pack(s, &s->dead);
  return OK;
}

static struct triad_lists lists_of(const struct stepper *s, const struct entry_rows *e)
{
  return (struct triad_lists){s->own,     e->start, e->index, e->value, s->state->w[TRAIN_DECODER],
                              s->sizes->p};
}

/* What codes leave over of own rows, and what the dead would leave over of that. */
static int rows_decode(struct stepper *s, int any_dead)
{
  gidx p = s->sizes->p, numbers = s->own * p;
  struct triad_lists live = lists_of(s, &s->live), dead = lists_of(s, &s->dead);
  const float *x = s->x + s->first * p;
  float *e = s->live.error + s->first * p, *left = s->dead.error + s->first * p;
  TRY(device_triad_sparse(s->device, &live, e));
  for (gidx i = 0; i < numbers; i++) e[i] -= x[i];
  for (gidx i = 0; i < s->own; i++) {
    s->squares[2 * (s->first + i)] = train_square(e + i * p, (idx)p);
    s->squares[2 * (s->first + i) + 1] = train_square(x + i * p, (idx)p);
  }
  if (!any_dead) return OK;
  TRY(device_triad_sparse(s->device, &dead, left));
  for (gidx i = 0; i < numbers; i++) left[i] += e[i];
  return OK;
}

static void rows_counts(struct stepper *s)
{
  gidx first, count;
  for (int r = 0; r < s->c->size; r++) {
    comm_share(s->n, s->c->size, r, &first, &count);
    s->counts[r] = (idx)count;
  }
}

/* *error <- the batch's; the state's sums go on. */
static int errors_sum(struct stepper *s, gidx t, real *error)
{
  real size = 0;
  rows_counts(s);
  TRY(comm_allgather(s->c, s->squares + 2 * s->first, s->counts, 2 * sizeof *s->squares,
                     s->squares));
  *error = 0;
  for (idx i = 0; i < s->n; i++) {
    *error += s->squares[2 * i];
    size += s->squares[2 * i + 1];
  }
  s->state->error += *error;
  s->state->size += size;
  CHECK(isfinite(*error), ERR_INPUT,
        "the error of step %lld is not finite: a smaller '--lr' may help", (long long)t);
  return OK;
}

/* Scale the errors of own rows, and find what they say of the codes. */
static int slopes_find(struct stepper *s, struct entry_rows *e, float factor)
{
  gidx p = s->sizes->p;
  float *error = e->error + s->first * p;
  struct triad_lists lists = lists_of(s, e);
  for (gidx i = 0; i < s->own * p; i++) error[i] *= factor;
  TRY(device_triad_dots(s->device, &lists, error, e->slope));
  for (gidx i = 0; i < e->start[s->own]; i++)
    e->mine[i] = (struct train_entry){e->index[i], e->value[i], e->slope[i]};
  return OK;
}

/* What is known of own rows, to all ranks. */
static int entries_share(struct stepper *s, struct entry_rows *e)
{
  gidx p = s->sizes->p;
  rows_counts(s);
  TRY(comm_allgather(s->c, e->lengths + s->first, s->counts, sizeof *e->lengths, e->lengths));
  TRY(comm_allgather(s->c, e->error + s->first * p, s->counts, (size_t)p * sizeof *e->error,
                     e->error));
  TRY(comm_allgather_long(s->c, e->start[s->own], s->many));
  for (int r = 0; r < s->c->size; r++) s->counts[r] = (idx)s->many[r];
  return comm_allgather(s->c, e->mine, s->counts, sizeof *e->mine, e->all);
}

/* The entries of own atoms, atom by atom, by ascending row. */
static void entries_turn(struct stepper *s, const struct entry_rows *e)
{
  gidx *start = s->start + 1, at = 0, first = s->atom_first;
  memset(s->start, 0, (size_t)(s->atoms + 2) * sizeof *s->start);
  for (idx i = 0; i < s->n; i++) at += e->lengths[i];
  for (gidx i = 0; i < at; i++)
    if (e->all[i].atom >= first && e->all[i].atom < first + s->atoms)
      start[e->all[i].atom - first + 1]++;
  for (gidx a = 0; a < s->atoms; a++) start[a + 1] += start[a];
  at = 0;
  for (idx i = 0; i < s->n; i++)
    for (gidx end = at + e->lengths[i]; at < end; at++) {
      gidx a = e->all[at].atom - first;
      if (a < 0 || a >= s->atoms) continue;
      gidx to = start[a]++;
      s->row[to] = i;
      s->code[to] = e->all[at].code;
      s->slope[to] = e->all[at].slope;
    }
}

/* Add what the entries say to the gradients of own atoms.  After entries_turn() list a of own atoms
 * begins at start[a]. */
static int gradients_add(struct stepper *s, const struct entry_rows *e)
{
  idx p = s->sizes->p;
  entries_turn(s, e);
  const float *values[] = {s->code, s->slope, s->slope};
  const float *matrices[] = {e->error, s->x, s->ones};
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    if (i == TRAIN_DECODER && s->sizes->is_fixed) continue;
    struct triad_lists lists = {s->atoms,  s->start,    s->row,
                                values[i], matrices[i], i == TRAIN_BIAS ? 1 : p};
    TRY(device_triad_sparse_gradient(s->device, &lists, s->gradient[i]));
  }
  return OK;
}

static void idle_count(struct stepper *s)
{
  gidx *idle = s->state->idle, entries = 0;
  for (idx a = 0; a < s->sizes->k; a++) idle[a] += s->n;
  for (idx i = 0; i < s->n; i++) entries += s->live.lengths[i];
  for (gidx i = 0; i < entries; i++) idle[s->live.all[i].atom] = 0;
}

static void atom_finish(void *self, gidx a)
{
  struct stepper *s = self;
  idx p = s->sizes->p;
  atom_gradient(s->state->w[TRAIN_DECODER] + (s->atom_first + a) * p, p,
                s->gradient[TRAIN_DECODER] + a * p);
}

static void atom_normalize(void *self, gidx a)
{
  struct stepper *s = self;
  idx p = s->sizes->p;
  atoms_normalize(s->state->w[TRAIN_DECODER] + (s->atom_first + a) * p, 1, 1, p);
}

/* Own atoms take their step. */
static int atoms_move(struct stepper *s, real rate, gidx t)
{
  const struct train_sizes *z = s->sizes;
  const struct adam_rates rates = adam_rates(rate, t);
  struct train_state *w = s->state;
  if (!z->is_fixed) team_run(s->threads, s->atoms, atom_finish, s);
  for (int i = z->is_fixed ? TRAIN_ENCODER : TRAIN_DECODER; i < TRAIN_ARRAYS; i++) {
    gidx at = s->atom_first * (i == TRAIN_BIAS ? 1 : z->p);
    struct adam_state a = {w->w[i] + at, w->m[i] + at, w->v[i] + at, s->gradient[i],
                           train_numbers((idx)s->atoms, z->p, i)};
    TRY(device_adam(s->device, &a, &rates));
  }
  if (!z->is_fixed) team_run(s->threads, s->atoms, atom_normalize, s);
  return OK;
}

/* arrays[k] <- what their owners have, on every rank. */
static int atoms_share(struct stepper *s, float *const *arrays)
{
  const struct train_sizes *z = s->sizes;
  gidx first, count;
  for (int r = 0; r < s->c->size; r++) {
    comm_share(z->k, s->c->size, r, &first, &count);
    s->counts[r] = (idx)count;
  }
  for (int i = z->is_fixed ? TRAIN_ENCODER : TRAIN_DECODER; i < TRAIN_ARRAYS; i++) {
    gidx width = i == TRAIN_BIAS ? 1 : z->p;
    TRY(comm_allgather(s->c, arrays[i] + s->atom_first * width, s->counts,
                       (size_t)width * sizeof(float), arrays[i]));
  }
  return OK;
}

int stepper_gather(struct stepper *s)
{
  TRY(atoms_share(s, s->state->m));
  return atoms_share(s, s->state->v);
}

/* Own rows' codes and errors; any_dead is the same on every rank. */
static int rows_describe(struct stepper *s, int any_dead)
{
  TRY(rows_choose(s, any_dead));
  phase_begin(&s->phases[TRAIN_CODES]);
  TRY(rows_decode(s, any_dead));
  phase_end(&s->phases[TRAIN_CODES], 0);
  return OK;
}

static int atoms_step(struct stepper *s, int any_dead, real rate, gidx t)
{
  phase_begin(&s->phases[TRAIN_GRADIENT]);
  for (int i = 0; i < TRAIN_ARRAYS; i++)
    memset(s->gradient[i], 0, (size_t)train_numbers((idx)s->atoms, s->sizes->p, i) * sizeof(float));
  TRY(gradients_add(s, &s->live));
  if (any_dead) TRY(gradients_add(s, &s->dead));
  phase_end(&s->phases[TRAIN_GRADIENT], 0);
  phase_begin(&s->phases[TRAIN_MOVE]);
  TRY(atoms_move(s, rate, t));
  phase_end(&s->phases[TRAIN_MOVE], 0);
  return OK;
}

int stepper_run(struct stepper *s, idx n, real rate, gidx t)
{
  struct comm *c = s->c;
  struct phase *share = &s->phases[TRAIN_SHARE];
  real error = 0;
  s->n = n;
  comm_share(n, c->size, c->rank, &s->first, &s->own);
  int any_dead = dead_find(s);
  TRY(comm_agree(c, rows_describe(s, any_dead)));
  phase_begin(share);
  TRY(errors_sum(s, t, &error));
  phase_end(share, 0);
  any_dead = any_dead && error > 0;
  int status = slopes_find(s, &s->live, train_error_factor(n, s->sizes->p));
  if (!status && any_dead)
    status = slopes_find(s, &s->dead, train_aux_factor(s->sizes->aux_weight, error));
  TRY(comm_agree(c, status));
  phase_begin(share);
  TRY(entries_share(s, &s->live));
  if (any_dead) TRY(entries_share(s, &s->dead));
  phase_end(share, 0);
  idle_count(s);
  TRY(comm_agree(c, atoms_step(s, any_dead, rate, t)));
  phase_begin(share);
  TRY(atoms_share(s, s->state->w));
  phase_end(share, 0);
  return OK;
}
