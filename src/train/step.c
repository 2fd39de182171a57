/* SPDX-License-Identifier: BSD-3-Clause
 * First ranks divide the rows of a batch: a rank finds the codes and errors of its rows.  Codes and
 * errors then go to all ranks.  Last, ranks divide the atoms: one rank makes the whole gradient of
 * an atom, as a sum in the order of rows.
 *
 * Arrays are on devices, which exchange them, by NCCL if it joins them.  Hosts exchange the squares
 * and numbers of codes of each row (struct row_known). */
#include "train/step.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "comm/buffers.h"
#include "device/train.h"
#include "device/triad.h"
#include "train/atoms.h"
#include "train/offset.h"
#include "train/selection.h"
#include "train/train.h"
#include "train/widths.h"

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
  TRY(lists_open(s->device, &e->own, own, e->own_most));
  if (s->c->size > 1) TRY(lists_open(s->device, &e->all, s->batch, e->all_most));
  gidx row = (gidx)e->blocks * s->sizes->p * ITEM;
  return buffer_alloc(s->device, &e->error, s->batch * row);
}

/* Allocate the batch and its entries. */
static int rows_open(struct stepper *s, gidx own)
{
  struct device *dev = s->device;
  gidx batch = s->batch;
  TRY(buffer_alloc_device(dev, &s->x, batch * s->sizes->p * ITEM));
  TRY(buffer_alloc(dev, &s->ones, batch * ITEM));
  TRY(entries_open(s, &s->live, own));
  TRY(entries_open(s, &s->dead, own));
  TRY(widths_open(s, own));
  TRY(offset_open(s));
  return buffer_alloc(dev, &s->squares, 2 * batch * (gidx)sizeof(real));
}

/* Allocate the arrays about all atoms, the sorted entries of own atoms, and work space. */
static int atoms_open(struct stepper *s, gidx own)
{
  struct device *dev = s->device;
  idx k = s->sizes->k;
  gidx most = imax(s->live.all_most, s->dead.all_most);
  const struct train_codes_job job = {.n = (idx)own,
                                      .p = s->sizes->p,
                                      .k = k,
                                      .precision = s->precision,
                                      .live = {.most = s->live.most},
                                      .dead = {.most = s->dead.most}};
  gidx codes =
      s->sizes->l0 > 0 ? device_train_batch_bytes(dev, &job) : device_train_codes_bytes(dev, &job);
  gidx turn = device_train_transpose_bytes(dev, s->batch, k);
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

/* Set the numbers of blocks and the largest numbers of entries. */
static void entries_count(struct stepper *s, gidx own)
{
  const struct train_sizes *z = s->sizes;
  gidx most = batch_most(z->l0, s->batch);
  struct entry_rows *live = &s->live, *dead = &s->dead;
  live->blocks = nested_blocks(&z->nested);
  dead->blocks = 1;
  live->most = z->l0 > 0 ? (idx)imin(z->k, imax(most, 1)) : z->s;
  live->own_most = z->l0 > 0 ? imin(own * z->k, most) : own * live->most;
  live->all_most = z->l0 > 0 ? most : (gidx)s->batch * live->most;
  dead->most = (idx)imin(z->aux, z->k);
  dead->own_most = own * dead->most;
  dead->all_most = (gidx)s->batch * dead->most;
}

int stepper_open(struct stepper *s)
{
  const struct train_sizes *z = s->sizes;
  gidx own = ceil_div(s->batch, s->c->size);
  s->arena.is_dry = s->device->is_dry;
  comm_partition(z->k, s->c->size, s->c->rank, &s->atom_first, &s->atoms);
  entries_count(s, own);
  gidx most = imax(s->live.own_most, s->dead.own_most);
  CHECK(!device_is_gpu(s->device) || imax(s->live.all_most, s->dead.all_most) <= INT32_MAX,
        ERR_INPUT, "a batch has up to %lld codes, more than a GPU sorts: lower --batch",
        (long long)imax(s->live.all_most, s->dead.all_most));
  CHECK(s->c->size == 1 || most <= INT32_MAX, ERR_INPUT,
        "a rank tells the others up to %lld codes of a batch, more than one exchange carries: "
        "lower --batch, or use more ranks",
        (long long)most);
  TRY(arena_alloc(&s->arena, &s->counts, s->c->size, sizeof *s->counts));
  TRY(arena_alloc(&s->arena, &s->many, s->c->size, sizeof *s->many));
  TRY(arena_alloc(&s->arena, &s->ties, s->c->size, sizeof *s->ties));
  TRY(arena_alloc(&s->arena, &s->known, s->batch, sizeof *s->known));
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
  if (z->learns_offset) wrapped += LENGTH(s->offset) * z->p * ITEM;
  int is_gpu = device_is_gpu(dev);
  *host = (gidx)s->arena.bytes + (is_gpu ? dev->planned_host : dev->planned_device - wrapped);
  *gpu = is_gpu ? dev->planned_device : 0;
}

gidx stepper_message(const struct stepper *s)
{
  gidx vectors = imax(s->sizes->k, (gidx)s->batch * nested_blocks(&s->sizes->nested));
  return vectors * s->sizes->p * ITEM;
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
  widths_close(s);
  offset_close(s);
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
  TRY(offset_begin(s));
  return atoms_begin_idle(s);
}

static int rows_choose(struct stepper *s, int any_dead)
{
  struct phase *codes = &s->phases[TRAIN_SCORES];
  struct train_codes_job job = codes_job_of(s, any_dead);
  phase_begin(codes);
  TRY(device_train_codes(s->device, &job));
  phase_end(codes, (double)s->own * s->sizes->k * s->sizes->p);
  return OK;
}

/* Find the errors of own rows, and what remains of these errors if dead atoms describe them. */
static int rows_decode(struct stepper *s, int any_dead)
{
  struct triad_lists lists;
  struct train_errors_job job = {.error = widths_error(s, &s->live),
                                 .x = (const float *)s->x.device + s->first * s->sizes->p,
                                 .left = any_dead ? widths_error(s, &s->dead) : NULL,
                                 .squares = (real *)s->squares.device + 2 * s->first,
                                 .n = (idx)s->own,
                                 .p = s->sizes->p,
                                 .blocks = s->live.blocks};
  TRY(widths_lists(s, &s->live, &lists));
  TRY(device_triad_sparse(s->device, &lists, job.error));
  if (any_dead) {
    TRY(widths_lists(s, &s->dead, &lists));
    TRY(device_triad_sparse(s->device, &lists, job.left));
  }
  return device_train_errors(s->device, &job);
}

/* Scale the errors of own rows, and find the slopes of the codes. */
static int slopes_find(struct stepper *s, const struct entry_rows *e, float factor)
{
  struct triad_lists lists;
  TRY(widths_lists(s, e, &lists));
  TRY(widths_scale(s, e, factor));
  return device_triad_dots(s->device, &lists, widths_error(s, e), e->own.slope.device);
}

/* Copy to the host where the entries of own rows begin. */
static int starts_get(struct stepper *s, const struct entry_rows *e)
{
  return device_get(s->device, &e->own.start, 0, (s->own + 1) * (gidx)sizeof(gidx));
}

/* Fill s->known for own rows. */
static int rows_get(struct stepper *s, int any_dead)
{
  struct row_known *own = s->known + s->first;
  const real *squares = (const real *)s->squares.host + 2 * s->first;
  gidx pair = 2 * (gidx)sizeof(real);
  TRY(device_get(s->device, &s->squares, s->first * pair, s->own * pair));
  for (gidx i = 0; i < s->own; i++)
    own[i] = (struct row_known){.error = squares[2 * i], .size = squares[2 * i + 1]};
  if (s->c->size == 1) return OK;
  const gidx *live = s->live.own.start.host, *dead = s->dead.own.start.host;
  TRY(starts_get(s, &s->live));
  if (any_dead) TRY(starts_get(s, &s->dead));
  for (gidx i = 0; i < s->own; i++) {
    own[i].live = (idx)(live[i + 1] - live[i]);
    if (any_dead) own[i].dead = (idx)(dead[i + 1] - dead[i]);
  }
  return OK;
}

static void rows_counts(struct stepper *s)
{
  gidx first, count;
  for (int r = 0; r < s->c->size; r++) {
    comm_partition(s->n, s->c->size, r, &first, &count);
    s->counts[r] = (idx)count;
  }
}

/* many <- the number of entries of each rank's rows. */
static int entries_counts(struct stepper *s, const gidx *start)
{
  gidx first, count;
  for (int r = 0; r < s->c->size; r++) {
    comm_partition(s->n, s->c->size, r, &first, &count);
    TRY(comm_count(start[first + count] - start[first], &s->many[r]));
  }
  return OK;
}

/* Gather s->known from all ranks; *error <- the batch's error.  Update the state's sums. */
static int rows_exchange(struct stepper *s, gidx t, real *error)
{
  real size = 0;
  rows_counts(s);
  TRY(comm_allgather(s->c, s->known + s->first, s->counts, sizeof *s->known, s->known));
  *error = 0;
  for (gidx i = 0; i < s->n; i++) {
    *error += s->known[i].error;
    size += s->known[i].size;
  }
  s->state->error += *error;
  s->state->size += size;
  CHECK(isfinite(*error), ERR_INPUT,
        "the error of step %lld is not finite: a smaller '--lr' may help", (long long)t);
  return OK;
}

/* Begin to send the entries e and errors of own rows to all ranks; is_dead: e is s->dead. */
static int entries_exchange(struct stepper *s, struct entry_rows *e, int is_dead, gidx *turn)
{
  size_t row = (size_t)(e->blocks * s->sizes->p * ITEM);
  struct entry_lists *own = &e->own, *all = &e->all;
  gidx *start = all->start.host;
  start[0] = 0;
  for (idx i = 0; i < s->n; i++)
    start[i + 1] = start[i] + (is_dead ? s->known[i].dead : s->known[i].live);
  rows_counts(s);
  TRY(entries_counts(s, start));
  const struct comm_exchange parts[] = {
      {NULL, &e->error, s->counts, row},
      {&own->index, &all->index, s->many, sizeof(idx)},
      {&own->value, &all->value, s->many, sizeof(float)},
      {&own->slope, &all->slope, s->many, sizeof(float)},
  };
  return comm_allgather_begin(s->c, s->device, parts, LENGTH(parts), turn);
}

/* Copy to the device where entries begin. */
static int starts_put(struct stepper *s, const struct entry_rows *e)
{
  return device_put(s->device, &e->all.start, 0, ((gidx)s->n + 1) * (gidx)sizeof(gidx));
}

/* Wait for the weights of all atoms, which were sent in the step before. */
static int weights_wait(struct stepper *s, int (*end)(struct stepper *s))
{
  phase_begin(&s->phases[TRAIN_SHARE]);
  TRY(end(s));
  phase_end(&s->phases[TRAIN_SHARE], 0);
  return OK;
}

/* Score own rows.  Choose their codes, too, unless codes are chosen in the whole batch (N.46).
 * any_dead is the same on every rank. */
static int rows_score(struct stepper *s, int any_dead)
{
  TRY(weights_wait(s, encoder_end));
  TRY(offset_subtract(s));
  return s->sizes->l0 > 0 ? selection_scores(s, any_dead) : rows_choose(s, any_dead);
}

/* Find the errors and slopes of own rows. */
static int rows_describe(struct stepper *s, int any_dead)
{
  struct phase *codes = &s->phases[TRAIN_CODES];
  TRY(weights_wait(s, decoder_end));
  phase_begin(codes);
  TRY(rows_decode(s, any_dead));
  TRY(slopes_find(s, &s->live, train_error_factor(s->n, s->sizes->p)));
  TRY(rows_get(s, any_dead));
  phase_end(codes, 0);
  return OK;
}

/* Find the slopes of dead entries, which depend on the batch's error. */
static int dead_describe(struct stepper *s, real error)
{
  phase_begin(&s->phases[TRAIN_CODES]);
  TRY(slopes_find(s, &s->dead, train_aux_factor(s->sizes, error)));
  phase_end(&s->phases[TRAIN_CODES], 0);
  return OK;
}

/* Send codes and errors to all ranks; meanwhile set the gradients to 0. */
static int rows_allgather(struct stepper *s, int any_dead, real error)
{
  struct comm *c = s->c;
  struct phase *share = &s->phases[TRAIN_SHARE];
  int many = c->size > 1;
  gidx turn = 0;
  phase_begin(share);
  if (many) TRY(entries_exchange(s, &s->live, 0, &turn));
  phase_end(share, 0);
  if (any_dead) TRY(comm_agree(c, dead_describe(s, error)));
  phase_begin(share);
  if (many && any_dead) TRY(entries_exchange(s, &s->dead, 1, &turn));
  if (!comm_failure(c)) comm_record(c, atoms_clear(s));
  if (many)
    if (!comm_failure(c)) comm_record(c, starts_put(s, &s->live));
  if (many && any_dead)
    if (!comm_failure(c)) comm_record(c, starts_put(s, &s->dead));
  TRY(comm_allgather_end(c, s->device, turn));
  phase_end(share, 0);
  return OK;
}

static int atoms_learn(struct stepper *s, int any_dead)
{
  phase_begin(&s->phases[TRAIN_GRADIENT]);
  TRY(atoms_gradients(s, any_dead));
  TRY(device_finish(s->device));
  phase_end(&s->phases[TRAIN_GRADIENT], 0);
  return OK;
}

/* Move own atoms, the encoder first: it may be sent before the decoder has moved.  atoms_step()
 * ends the phase TRAIN_MOVE. */
static int atoms_move(struct stepper *s, const struct adam_rates *rates)
{
  phase_begin(&s->phases[TRAIN_MOVE]);
  TRY(atoms_move_encoder(s, rates));
  TRY(comm_allgather_ready(s->c, s->device));
  return s->sizes->is_fixed ? OK : atoms_move_decoder(s, rates);
}

/* Move own atoms and send them: the encoder while the decoder moves, the decoder while the next
 * batch is scored.  An exchange starts when its weights have moved.  The host does not wait for the
 * exchanges: encoder_end() and decoder_end() return their failures. */
static int atoms_step(struct stepper *s, int any_dead, const struct adam_rates *rates)
{
  struct comm *c = s->c;
  struct phase *move = &s->phases[TRAIN_MOVE];
  int status = atoms_learn(s, any_dead);
  if (s->sizes->learns_offset) {
    TRY(comm_agree(c, status ? status : offset_prepare(s)));
    TRY(offset_move(s, rates));
  }
  TRY(comm_agree(c, status ? status : atoms_move(s, rates)));
  TRY(encoder_begin(s));
  TRY(decoder_begin(s));
  status = atoms_count_idle(s);
  s->asked = stops_asked(s->stops);
  TRY(comm_agree_flags(c, status, 0, &s->asked));
  phase_end(move, 0);
  return OK;
}

int stepper_run(struct stepper *s, idx n, real rate, gidx t)
{
  struct comm *c = s->c;
  struct phase *share = &s->phases[TRAIN_SHARE];
  const struct adam_rates rates = adam_rates(rate, t);
  int any_dead = s->any_dead && s->dead.most > 0;
  real error = 0;
  s->n = n;
  comm_partition(n, c->size, c->rank, &s->first, &s->own);
  if (!comm_failure(c)) comm_record(c, rows_score(s, any_dead));
  if (s->sizes->l0 > 0) TRY(selection_run(s, any_dead));
  if (!comm_failure(c)) comm_record(c, rows_describe(s, any_dead));
  phase_begin(share);
  TRY(rows_exchange(s, t, &error));
  phase_end(share, 0);
  any_dead = any_dead && error > 0;
  TRY(rows_allgather(s, any_dead, error));
  return atoms_step(s, any_dead, &rates);
}

int stepper_fetch(struct stepper *s)
{
  TRY(encoder_end(s));
  TRY(decoder_end(s));
  for (int i = 0; i < TRAIN_ARRAYS; i++) TRY(whole_get(s->device, &s->w[i]));
  TRY(offset_fetch(s));
  return whole_get(s->device, &s->idle);
}

int stepper_gather(struct stepper *s)
{
  return moments_gather(s);
}
