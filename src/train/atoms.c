/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's gradient is a sum over the rows that use it.  The rank that owns the atom makes the
 * whole sum, from the codes and errors of all ranks' rows. */
#include "train/atoms.h"

#include "base/status.h"
#include "comm/buffers.h"
#include "device/train.h"
#include "device/triad.h"
#include "train/widths.h"

static const gidx ITEM = (gidx)sizeof(float);

struct train_entries entries_of(const struct entry_lists *l, idx most)
{
  return (struct train_entries){most, l->start.device, l->index.device, l->value.device};
}

/* Count the rows since each atom was last used, with the n rows of this batch, and find the dead
 * atoms. */
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

/* The entries of all rows; with one rank they are its own entries. */
static const struct entry_lists *lists_all(const struct stepper *s, const struct entry_rows *e)
{
  return s->c->size > 1 ? &e->all : &e->own;
}

int atoms_begin_idle(struct stepper *s)
{
  return idle_count(s, NULL, 0);
}

int atoms_count_idle(struct stepper *s)
{
  struct train_entries live = entries_of(lists_all(s, &s->live), s->live.most);
  return idle_count(s, &live, s->n);
}

/* Sort the entries of own atoms by atom, then by row. */
static int entries_transpose(struct stepper *s, const struct entry_rows *e)
{
  const struct entry_lists *all = lists_all(s, e);
  struct train_entries entries = entries_of(all, e->most);
  struct train_transpose_job job = {.entries = &entries,
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
  return device_train_transpose(s->device, &job);
}

/* Add what the entries contribute to the gradients of own atoms. */
static int gradients_add(struct stepper *s, const struct entry_rows *e)
{
  idx p = s->sizes->p;
  const float *matrices[] = {NULL, s->x.device, s->ones.device};
  TRY(entries_transpose(s, e));
  TRY(widths_gradients(s, e));
  for (int i = TRAIN_ENCODER; i < TRAIN_ARRAYS; i++) {
    struct triad_lists lists = {s->atoms,        s->begin.device, s->row.device,
                                s->slope.device, matrices[i],     i == TRAIN_BIAS ? 1 : p};
    TRY(device_triad_sparse_gradient(s->device, &lists, s->gradient[i].device));
  }
  return OK;
}

int atoms_clear(struct stepper *s)
{
  for (int i = 0; i < TRAIN_ARRAYS; i++)
    TRY(device_clear(s->device, &s->gradient[i], 0, s->gradient[i].bytes));
  return OK;
}

int atoms_gradients(struct stepper *s, int any_dead)
{
  TRY(gradients_add(s, &s->live));
  return any_dead ? gradients_add(s, &s->dead) : OK;
}

/* Where own atoms begin in array i, in numbers. */
static gidx own_begin(const struct stepper *s, int i)
{
  return train_numbers((idx)s->atom_first, s->sizes->p, i);
}

static int array_move(struct stepper *s, int i, const struct adam_rates *rates)
{
  gidx at = own_begin(s, i);
  struct adam_state a = {(float *)s->w[i].device + at, (float *)s->m[i].device + at,
                         (float *)s->v[i].device + at, s->gradient[i].device,
                         train_numbers((idx)s->atoms, s->sizes->p, i)};
  return device_adam(s->device, &a, rates);
}

int atoms_move_encoder(struct stepper *s, const struct adam_rates *rates)
{
  TRY(array_move(s, TRAIN_ENCODER, rates));
  return array_move(s, TRAIN_BIAS, rates);
}

int atoms_move_decoder(struct stepper *s, const struct adam_rates *rates)
{
  idx p = s->sizes->p;
  float *atoms = (float *)s->w[TRAIN_DECODER].device + own_begin(s, TRAIN_DECODER);
  TRY(device_train_tangent(s->device, atoms, s->atoms, p, s->gradient[TRAIN_DECODER].device));
  TRY(array_move(s, TRAIN_DECODER, rates));
  return device_train_normalize(s->device, atoms, s->atoms, p);
}

/* counts <- the number of atoms of each rank. */
static void atoms_counts(struct stepper *s)
{
  gidx first, count;
  for (int r = 0; r < s->c->size; r++) {
    comm_partition(s->sizes->k, s->c->size, r, &first, &count);
    s->counts[r] = (idx)count;
  }
}

/* Bytes of an atom in array i. */
static size_t atom_bytes(const struct stepper *s, int i)
{
  return (size_t)(train_numbers(1, s->sizes->p, i) * ITEM);
}

int encoder_begin(struct stepper *s)
{
  const struct comm_exchange parts[] = {
      {NULL, &s->w[TRAIN_ENCODER], s->counts, atom_bytes(s, TRAIN_ENCODER)},
      {NULL, &s->w[TRAIN_BIAS], s->counts, atom_bytes(s, TRAIN_BIAS)}};
  atoms_counts(s);
  return comm_allgather_begin(s->c, s->device, parts, LENGTH(parts), &s->encoder_exchange);
}

int encoder_end(struct stepper *s)
{
  return comm_allgather_end(s->c, s->device, s->encoder_exchange);
}

int decoder_begin(struct stepper *s)
{
  const struct comm_exchange part = {NULL, &s->w[TRAIN_DECODER], s->counts,
                                     atom_bytes(s, TRAIN_DECODER)};
  if (s->sizes->is_fixed) return OK;
  atoms_counts(s);
  return comm_allgather_begin(s->c, s->device, &part, 1, &s->decoder_exchange);
}

int decoder_end(struct stepper *s)
{
  return comm_allgather_end(s->c, s->device, s->decoder_exchange);
}

/* The first of the arrays that move. */
static int first_array(const struct stepper *s)
{
  return s->sizes->is_fixed ? TRAIN_ENCODER : TRAIN_DECODER;
}

/* Copy own atoms' part of the arrays to the host. */
static int atoms_get(struct stepper *s, const struct buffer *arrays)
{
  for (int i = first_array(s); i < TRAIN_ARRAYS; i++) {
    gidx atom = (gidx)atom_bytes(s, i);
    TRY(device_get(s->device, &arrays[i], s->atom_first * atom, s->atoms * atom));
  }
  return OK;
}

/* Arrays on the host <- the parts of all owners, on every rank. */
static int atoms_exchange(struct stepper *s, struct buffer *arrays)
{
  atoms_counts(s);
  for (int i = first_array(s); i < TRAIN_ARRAYS; i++) {
    float *array = arrays[i].host;
    TRY(comm_allgather(s->c, array + own_begin(s, i), s->counts, atom_bytes(s, i), array));
  }
  return OK;
}

int moments_gather(struct stepper *s)
{
  int status = atoms_get(s, s->m);
  if (!status) status = atoms_get(s, s->v);
  TRY(comm_agree(s->c, status));
  TRY(atoms_exchange(s, s->m));
  return atoms_exchange(s, s->v);
}
