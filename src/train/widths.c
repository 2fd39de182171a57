/* SPDX-License-Identifier: BSD-3-Clause
 * The entries of a row ascend by atom, so the entries of a block are neighbours.  Finding where
 * each block begins is enough to split a row's list into one list per block.  An atom learns from
 * the errors of its own block alone. */
#include "train/widths.h"

#include "base/num.h"
#include "base/status.h"
#include "device/train.h"
#include "device/triad.h"
#include "train/atoms.h"

static const gidx ITEM = (gidx)sizeof(float);

int widths_open(struct stepper *s, gidx own)
{
  gidx starts = own * s->live.blocks + 1;
  if (s->live.blocks == 1) return OK;
  TRY(buffer_alloc_device(s->device, &s->block_start, starts * (gidx)sizeof(gidx)));
  return buffer_alloc_device(s->device, &s->block_error, (gidx)s->batch * s->sizes->p * ITEM);
}

void widths_close(struct stepper *s)
{
  buffer_free(s->device, &s->block_start);
  buffer_free(s->device, &s->block_error);
}

float *widths_error(const struct stepper *s, const struct entry_rows *e)
{
  return (float *)e->error.device + s->first * e->blocks * s->sizes->p;
}

int widths_lists(struct stepper *s, const struct entry_rows *e, struct triad_lists *lists)
{
  const struct train_sizes *z = s->sizes;
  struct train_entries entries = entries_of(&e->own, e->most);
  const struct train_blocks_job job = {.entries = &entries,
                                       .nested = &z->nested,
                                       .n = (idx)s->own,
                                       .k = z->k,
                                       .start = s->block_start.device};
  if (e->blocks > 1) TRY(device_train_blocks(s->device, &job));
  *lists = (struct triad_lists){s->own * e->blocks,
                                e->blocks > 1 ? job.start : entries.start,
                                entries.index,
                                entries.value,
                                s->w[TRAIN_DECODER].device,
                                z->p};
  return OK;
}

int widths_scale(struct stepper *s, const struct entry_rows *e, float factor)
{
  float *error = widths_error(s, e);
  idx p = s->sizes->p;
  TRY(device_train_scale(s->device, error, s->own * e->blocks * p, factor));
  return e->blocks > 1 ? device_train_suffix(s->device, error, s->own, e->blocks, p) : OK;
}

/* Add the gradients of one block's atoms, from the block's errors. */
static int block_gradients(struct stepper *s, const struct entry_rows *e, int block,
                           const float *errors)
{
  idx p = s->sizes->p, first = 0, end = s->sizes->k;
  if (e->blocks > 1) nested_block(&s->sizes->nested, s->sizes->k, block, &first, &end);
  gidx from = imax(first, s->atom_first) - s->atom_first;
  gidx to = imin(end, s->atom_first + s->atoms) - s->atom_first;
  struct triad_lists lists = {
      to - from, (const gidx *)s->begin.device + from, s->row.device, s->code.device, errors, p};
  float *gradient = (float *)s->gradient[TRAIN_DECODER].device + from * p;
  return to > from ? device_triad_sparse_gradient(s->device, &lists, gradient) : OK;
}

int widths_gradients(struct stepper *s, const struct entry_rows *e)
{
  idx p = s->sizes->p;
  if (s->sizes->is_fixed) return OK;
  for (int b = 0; b < e->blocks; b++) {
    float *errors = s->block_error.device;
    if (e->blocks > 1)
      TRY(device_train_block_get(s->device, e->error.device, s->n, e->blocks, b, p, errors));
    else
      errors = e->error.device;
    TRY(block_gradients(s, e, b, errors));
  }
  return OK;
}
