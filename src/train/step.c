/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are shared out until each has its codes and its error, then atoms are.  What a rank knows of
 * its rows goes to all, so that an atom's gradient is made in one place, in the order of rows.
 *
 * All arrays are the device's, and go from device to device, by NCCL where it joins them; the hosts
 * tell each other how many codes each row has. */
#include "train/step.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "comm/buffers.h"
#include "device/train.h"
#include "device/triad.h"
#include "train/train.h"

static const gidx ITEM = (gidx)sizeof(float);

static int lists_open(struct device *dev, struct entry_lists *l, gidx rows, gidx entries)
{
  TRY(buffer_alloc(dev, &l->start, (rows + 1) * (gidx)sizeof(gidx)));
  TRY(buffer_alloc(dev, &l->index, entries * (gidx)sizeof(idx)));
  TRY(buffer_alloc(dev, &l->value, entries * ITEM));
  return buffer_alloc(dev, &l->slope, entries * ITEM);
}

static int entries_open(struct stepper *s, struct entry_rows *e, gidx own)
{
  if (!e->most) return OK;
  TRY(lists_open(s->device, &e->own, own, own * e->most));
  if (s->c->size > 1) TRY(lists_open(s->device, &e->all, s->batch, (gidx)s->batch * e->most));
  return buffer_alloc(s->device, &e->error, (gidx)s->batch * s->sizes->p * ITEM);
}

/* The batch and its entries. */
static int rows_open(struct stepper *s, gidx own)
{
  struct device *dev = s->device;
  gidx batch = s->batch;
  TRY(buffer_alloc_device(dev, &s->x, batch * s->sizes->p * ITEM));
  TRY(buffer_alloc(dev, &s->ones, batch * ITEM));
  TRY(entries_open(s, &s->live, own));
  TRY(entries_open(s, &s->dead, own));
  return buffer_alloc(dev, &s->squares, 2 * batch * (gidx)sizeof(real));
}

/* What is known of all atoms, and where the entries of own ones are sorted. */
static int atoms_open(struct stepper *s, gidx own)
{
  struct device *dev = s->device;
  idx k = s->sizes->k;
  idx of_row = (idx)imax(s->live.most, s->dead.most);
  gidx most = (gidx)s->batch * of_row;
  const struct train_codes_job job = {.n = (idx)own,
                                      .p = s->sizes->p,
                                      .k = k,
                                      .precision = s->precision,
                                      .live = {.most = s->live.most},
                                      .dead = {.most = s->dead.most}};
  gidx codes = device_train_codes_bytes(dev, &job);
  gidx turn = device_train_turn_bytes(dev, s->batch, k);
  TRY(buffer_wrap(dev, &s->idle, s->state->idle, k * (gidx)sizeof(gidx)));
  TRY(buffer_alloc_device(dev, &s->is_dead, k));
  TRY(buffer_alloc_device(dev, &s->used, k + 2 * (gidx)sizeof(int)));
  TRY(buffer_alloc_device(dev, &s->begin, (s->atoms + 2) * (gidx)sizeof(gidx)));
  TRY(buffer_alloc_device(dev, &s->row, most * (gidx)sizeof(idx)));
  TRY(buffer_alloc_device(dev, &s->code, most * ITEM));
  TRY(buffer_alloc_device(dev, &s->slope, most * ITEM));
  return buffer_alloc_device(dev, &s->work, imax(codes, turn));
}

static int weights_open(struct stepper *s)
{
  const struct train_sizes *z = s->sizes;
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    gidx bytes = train_numbers(z->k, z->p, i) * ITEM;
    TRY(buffer_wrap(s->device, &s->w[i], s->state->w[i], bytes));
    TRY(buffer_wrap(s->device, &s->m[i], s->state->m[i], bytes));
    TRY(buffer_wrap(s->device, &s->v[i], s->state->v[i], bytes));
    TRY(buffer_alloc_device(s->device, &s->gradient[i],
                            train_numbers((idx)s->atoms, z->p, i) * ITEM));
  }
  return OK;
}

int stepper_open(struct stepper *s)
{
  const struct train_sizes *z = s->sizes;
  gidx own = ceil_div(s->batch, s->c->size);
  s->arena.is_dry = s->device->is_dry;
  comm_share(z->k, s->c->size, s->c->rank, &s->atom_first, &s->atoms);
  s->live.most = z->s;
  s->dead.most = (idx)imin(z->aux, z->k);
  gidx most = own * imax(s->live.most, s->dead.most);
  CHECK(s->c->size == 1 || most <= INT32_MAX, ERR_INPUT,
        "a rank tells the others up to %lld codes of a batch, more than one exchange carries: "
        "lower --batch, or use more ranks",
        (long long)most);
  TRY(arena_alloc(&s->arena, &s->many, s->c->size, sizeof *s->many));
  TRY(arena_alloc(&s->arena, &s->counts, s->c->size, sizeof *s->counts));
  TRY(arena_alloc(&s->arena, &s->lengths, s->batch, sizeof *s->lengths));
  TRY(rows_open(s, own));
  TRY(atoms_open(s, own));
  return weights_open(s);
}

void stepper_bytes(const struct stepper *s, gidx *host, gidx *gpu)
{
  const struct train_sizes *z = s->sizes;
  const struct device *dev = s->device;
  gidx wrapped = z->k * (gidx)sizeof(gidx);
  for (int i = 0; i < TRAIN_ARRAYS; i++) wrapped += 3 * train_numbers(z->k, z->p, i) * ITEM;
  int is_gpu = device_is_gpu(dev);
  *host = (gidx)s->arena.bytes + (is_gpu ? dev->planned_host : dev->planned_device - wrapped);
  *gpu = is_gpu ? dev->planned_device : 0;
}

gidx stepper_message(const struct stepper *s)
{
  return imax(s->sizes->k, s->batch) * s->sizes->p * ITEM;
}

static void lists_close(struct device *dev, struct entry_lists *l)
{
  buffer_free(dev, &l->start);
  buffer_free(dev, &l->index);
  buffer_free(dev, &l->value);
  buffer_free(dev, &l->slope);
}

void stepper_close(struct stepper *s)
{
  struct buffer *const all[] = {&s->x,    &s->ones,    &s->live.error, &s->dead.error, &s->squares,
                                &s->idle, &s->is_dead, &s->used,       &s->begin,      &s->row,
                                &s->code, &s->slope,   &s->work};
  struct entry_lists *const lists[] = {&s->live.own, &s->live.all, &s->dead.own, &s->dead.all};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(s->device, all[i]);
  for (int i = 0; i < LENGTH(lists); i++) lists_close(s->device, lists[i]);
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    buffer_free(s->device, &s->w[i]);
    buffer_free(s->device, &s->m[i]);
    buffer_free(s->device, &s->v[i]);
    buffer_free(s->device, &s->gradient[i]);
  }
  arena_free(&s->arena);
}

static int whole_put(struct device *dev, const struct buffer *b)
{
  return device_put(dev, b, 0, b->bytes);
}

static int whole_get(struct device *dev, const struct buffer *b)
{
  return device_get(dev, b, 0, b->bytes);
}

/* The entries of these rows, as operations of the device take them. */
static struct train_entries entries_of(const struct entry_lists *l, idx most)
{
  return (struct train_entries){most, l->start.device, l->index.device, l->value.device};
}

/* The entries of all rows: with one rank, the own ones. */
static const struct entry_lists *lists_all(const struct stepper *s, const struct entry_rows *e)
{
  return s->c->size > 1 ? &e->all : &e->own;
}

/* How long no row of the n rows at hand used each atom, and which are dead. */
static int idle_count(struct stepper *s, const struct train_entries *entries, idx n)
{
  struct train_idle_job job = {.entries = entries,
                               .n = n,
                               .k = s->sizes->k,
                               .idle = s->idle.device,
                               .dead_rows = s->sizes->dead_rows,
                               .is_dead = s->is_dead.device,
                               .used = s->used.device,
                               .any = &s->any_dead};
  return device_train_idle(s->device, &job);
}

int stepper_begin(struct stepper *s)
{
  float *ones = s->ones.host;
  for (idx i = 0; i < s->batch; i++) ones[i] = 1;
  TRY(whole_put(s->device, &s->ones));
  TRY(whole_put(s->device, &s->idle));
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    TRY(whole_put(s->device, &s->w[i]));
    TRY(whole_put(s->device, &s->m[i]));
    TRY(whole_put(s->device, &s->v[i]));
  }
  return idle_count(s, NULL, 0);
}

static int rows_choose(struct stepper *s, int any_dead)
{
  const struct train_sizes *z = s->sizes;
  struct phase *codes = &s->phases[TRAIN_SCORES];
  struct train_codes_job job = {.x = (const float *)s->x.device + s->first * z->p,
                                .encoder = s->w[TRAIN_ENCODER].device,
                                .bias = s->w[TRAIN_BIAS].device,
                                .is_dead = any_dead ? s->is_dead.device : NULL,
                                .n = (idx)s->own,
                                .p = z->p,
                                .k = z->k,
                                .precision = s->precision,
                                .live = entries_of(&s->live.own, s->live.most),
                                .dead = entries_of(&s->dead.own, s->dead.most),
                                .work = s->work.device,
                                .work_bytes = s->work.bytes};
  phase_begin(codes);
  TRY(device_train_codes(s->device, &job));
  phase_end(codes, (double)s->own * z->k * z->p);
  return OK;
}

static struct triad_lists lists_of(const struct stepper *s, const struct entry_rows *e)
{
  return (struct triad_lists){s->own,
                              e->own.start.device,
                              e->own.index.device,
                              e->own.value.device,
                              s->w[TRAIN_DECODER].device,
                              s->sizes->p};
}

/* Where own rows begin in the errors. */
static float *own_error(const struct stepper *s, const struct entry_rows *e)
{
  return (float *)e->error.device + s->first * s->sizes->p;
}

/* What codes leave over of own rows, and what the dead would leave over of that. */
static int rows_decode(struct stepper *s, int any_dead)
{
  struct triad_lists live = lists_of(s, &s->live), dead = lists_of(s, &s->dead);
  struct train_errors_job job = {.error = own_error(s, &s->live),
                                 .x = (const float *)s->x.device + s->first * s->sizes->p,
                                 .left = any_dead ? own_error(s, &s->dead) : NULL,
                                 .squares = (real *)s->squares.device + 2 * s->first,
                                 .n = (idx)s->own,
                                 .p = s->sizes->p};
  gidx pair = 2 * (gidx)sizeof(real);
  TRY(device_triad_sparse(s->device, &live, job.error));
  if (any_dead) TRY(device_triad_sparse(s->device, &dead, job.left));
  TRY(device_train_errors(s->device, &job));
  return device_get(s->device, &s->squares, s->first * pair, s->own * pair);
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
  real size = 0, *squares = s->squares.host;
  rows_counts(s);
  TRY(comm_allgather(s->c, squares + 2 * s->first, s->counts, 2 * sizeof *squares, squares));
  *error = 0;
  for (gidx i = 0; i < s->n; i++) {
    *error += squares[2 * i];
    size += squares[2 * i + 1];
  }
  s->state->error += *error;
  s->state->size += size;
  CHECK(isfinite(*error), ERR_INPUT,
        "the error of step %lld is not finite: a smaller '--lr' may help", (long long)t);
  return OK;
}

/* Scale the errors of own rows, find what they say of the codes, and bring to the host how many
 * codes each has. */
static int slopes_find(struct stepper *s, struct entry_rows *e, float factor)
{
  struct device *dev = s->device;
  gidx numbers = s->own * s->sizes->p;
  struct triad_lists lists = lists_of(s, e);
  float *error = own_error(s, e);
  TRY(device_train_scale(dev, error, numbers, factor));
  TRY(device_triad_dots(dev, &lists, error, e->own.slope.device));
  if (s->c->size == 1) return OK;
  return device_get(dev, &e->own.start, 0, (s->own + 1) * (gidx)sizeof(gidx));
}

/* Where the entries of each row begin among all. */
static int starts_share(struct stepper *s, struct entry_rows *e)
{
  const gidx *own = e->own.start.host;
  gidx *all = e->all.start.host;
  for (gidx i = 0; i < s->own; i++) s->lengths[s->first + i] = (idx)(own[i + 1] - own[i]);
  rows_counts(s);
  TRY(comm_allgather(s->c, s->lengths + s->first, s->counts, sizeof *s->lengths, s->lengths));
  all[0] = 0;
  for (idx i = 0; i < s->n; i++) all[i + 1] = all[i] + s->lengths[i];
  return OK;
}

/* What is known of own rows, to all ranks. */
static int entries_share(struct stepper *s, struct entry_rows *e)
{
  size_t row = (size_t)(s->sizes->p * ITEM);
  struct device *dev = s->device;
  struct entry_lists *own = &e->own, *all = &e->all;
  if (s->c->size == 1) return OK;
  TRY(starts_share(s, e));
  TRY(comm_allgather_buffer(s->c, dev, &e->error, s->counts, row));
  TRY(comm_allgather_long(s->c, ((const gidx *)e->own.start.host)[s->own], s->many));
  for (int r = 0; r < s->c->size; r++) TRY(comm_count(s->many[r], &s->counts[r]));
  TRY(comm_allgather_parts(s->c, dev, &own->index, &all->index, s->counts, sizeof(idx)));
  TRY(comm_allgather_parts(s->c, dev, &own->value, &all->value, s->counts, sizeof(float)));
  return comm_allgather_parts(s->c, dev, &own->slope, &all->slope, s->counts, sizeof(float));
}

/* Where they begin, to the device. */
static int starts_put(struct stepper *s, struct entry_rows *e)
{
  if (s->c->size == 1) return OK;
  return device_put(s->device, &e->all.start, 0, ((gidx)s->n + 1) * (gidx)sizeof(gidx));
}

/* Sort the entries of own atoms, atom by atom, by ascending row. */
static int entries_turn(struct stepper *s, const struct entry_rows *e)
{
  const struct entry_lists *all = lists_all(s, e);
  struct train_entries entries = entries_of(all, e->most);
  struct train_turn_job job = {.entries = &entries,
                               .slopes = all->slope.device,
                               .n = s->n,
                               .k = s->sizes->k,
                               .first = s->atom_first,
                               .atoms = s->atoms,
                               .start = s->begin.device,
                               .row = s->row.device,
                               .code = s->code.device,
                               .slope = s->slope.device,
                               .work = s->work.device};
  return device_train_turn(s->device, &job);
}

/* Add what the entries say to the gradients of own atoms. */
static int gradients_add(struct stepper *s, const struct entry_rows *e)
{
  idx p = s->sizes->p;
  const float *values[] = {s->code.device, s->slope.device, s->slope.device};
  const float *matrices[] = {e->error.device, s->x.device, s->ones.device};
  TRY(entries_turn(s, e));
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    if (i == TRAIN_DECODER && s->sizes->is_fixed) continue;
    struct triad_lists lists = {s->atoms,  s->begin.device, s->row.device,
                                values[i], matrices[i],     i == TRAIN_BIAS ? 1 : p};
    TRY(device_triad_sparse_gradient(s->device, &lists, s->gradient[i].device));
  }
  return OK;
}

/* Own atoms take their step. */
static int atoms_move(struct stepper *s, real rate, gidx t)
{
  const struct train_sizes *z = s->sizes;
  const struct adam_rates rates = adam_rates(rate, t);
  gidx own = s->atom_first * z->p;
  float *atoms = (float *)s->w[TRAIN_DECODER].device + own;
  if (!z->is_fixed)
    TRY(device_train_tangent(s->device, atoms, s->atoms, z->p, s->gradient[TRAIN_DECODER].device));
  for (int i = z->is_fixed ? TRAIN_ENCODER : TRAIN_DECODER; i < TRAIN_ARRAYS; i++) {
    gidx at = i == TRAIN_BIAS ? s->atom_first : own;
    struct adam_state a = {(float *)s->w[i].device + at, (float *)s->m[i].device + at,
                           (float *)s->v[i].device + at, s->gradient[i].device,
                           train_numbers((idx)s->atoms, z->p, i)};
    TRY(device_adam(s->device, &a, &rates));
  }
  return z->is_fixed ? OK : device_train_normalize(s->device, atoms, s->atoms, z->p);
}

/* Bring own atoms' part of arrays to the host. */
static int atoms_get(struct stepper *s, const struct buffer *arrays)
{
  const struct train_sizes *z = s->sizes;
  for (int i = z->is_fixed ? TRAIN_ENCODER : TRAIN_DECODER; i < TRAIN_ARRAYS; i++) {
    gidx atom = (i == TRAIN_BIAS ? 1 : z->p) * ITEM;
    TRY(device_get(s->device, &arrays[i], s->atom_first * atom, s->atoms * atom));
  }
  return OK;
}

/* counts <- the atoms of each rank. */
static void atoms_counts(struct stepper *s)
{
  gidx first, count;
  for (int r = 0; r < s->c->size; r++) {
    comm_share(s->sizes->k, s->c->size, r, &first, &count);
    s->counts[r] = (idx)count;
  }
}

/* The host's arrays[k], or with on_device the device's, <- what their owners have, on every
 * rank. */
static int atoms_share(struct stepper *s, struct buffer *arrays, int on_device)
{
  const struct train_sizes *z = s->sizes;
  atoms_counts(s);
  for (int i = z->is_fixed ? TRAIN_ENCODER : TRAIN_DECODER; i < TRAIN_ARRAYS; i++) {
    gidx width = i == TRAIN_BIAS ? 1 : z->p;
    size_t atom = (size_t)(width * ITEM);
    float *array = arrays[i].host;
    if (on_device)
      TRY(comm_allgather_buffer(s->c, s->device, &arrays[i], s->counts, atom));
    else
      TRY(comm_allgather(s->c, array + s->atom_first * width, s->counts, atom, array));
  }
  return OK;
}

int stepper_fetch(struct stepper *s)
{
  for (int i = 0; i < TRAIN_ARRAYS; i++) TRY(whole_get(s->device, &s->w[i]));
  return whole_get(s->device, &s->idle);
}

int stepper_gather(struct stepper *s)
{
  int status = atoms_get(s, s->m);
  if (!status) status = atoms_get(s, s->v);
  TRY(comm_agree(s->c, status));
  TRY(atoms_share(s, s->m, 0));
  return atoms_share(s, s->v, 0);
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

/* Gradients of own atoms, from the entries of all rows. */
static int gradients_find(struct stepper *s, int any_dead)
{
  phase_begin(&s->phases[TRAIN_GRADIENT]);
  TRY(starts_put(s, &s->live));
  if (any_dead) TRY(starts_put(s, &s->dead));
  for (int i = 0; i < TRAIN_ARRAYS; i++)
    TRY(device_clear(s->device, &s->gradient[i], 0, s->gradient[i].bytes));
  TRY(gradients_add(s, &s->live));
  if (any_dead) TRY(gradients_add(s, &s->dead));
  phase_end(&s->phases[TRAIN_GRADIENT], 0);
  return OK;
}

static int atoms_step(struct stepper *s, int any_dead, real rate, gidx t)
{
  struct train_entries live = entries_of(lists_all(s, &s->live), s->live.most);
  TRY(gradients_find(s, any_dead));
  phase_begin(&s->phases[TRAIN_MOVE]);
  TRY(idle_count(s, &live, s->n));
  TRY(atoms_move(s, rate, t));
  phase_end(&s->phases[TRAIN_MOVE], 0);
  return OK;
}

int stepper_run(struct stepper *s, idx n, real rate, gidx t)
{
  struct comm *c = s->c;
  struct phase *share = &s->phases[TRAIN_SHARE];
  int any_dead = s->any_dead && s->dead.most > 0;
  real error = 0;
  s->n = n;
  comm_share(n, c->size, c->rank, &s->first, &s->own);
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
  status = atoms_step(s, any_dead, rate, t);
  s->asked = stops_asked(s->stops);
  TRY(comm_agree_flags(c, status, 0, &s->asked));
  phase_begin(share);
  if (c->size > 1) TRY(atoms_share(s, s->w, 1));
  phase_end(share, 0);
  return OK;
}
