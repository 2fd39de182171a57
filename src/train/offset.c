/* SPDX-License-Identifier: BSD-3-Clause
 * The gradient of the offset (N.48) is the sum of the errors of all rows, minus a sum over atoms:
 * of the atom's encoder vector times the gradient of its bias.  The gradients of the biases are
 * gathered from the ranks that own the atoms. */
#include "train/offset.h"

#include "base/num.h"
#include "base/status.h"
#include "comm/buffers.h"
#include "device/train.h"
#include "device/triad.h"

static const gidx ITEM = (gidx)sizeof(float);

int offset_open(struct stepper *s)
{
  const struct train_sizes *z = s->sizes;
  if (!z->learns_offset) return OK;
  for (int i = 0; i < LENGTH(s->offset); i++)
    TRY(buffer_wrap(s->device, &s->offset[i], s->state->offset[i], z->p * ITEM));
  TRY(buffer_alloc(s->device, &s->handed, z->k * ITEM));
  TRY(buffer_alloc_device(s->device, &s->target, z->p * ITEM));
  return buffer_alloc_device(s->device, &s->offset_gradient, z->p * ITEM);
}

void offset_close(struct stepper *s)
{
  for (int i = 0; i < LENGTH(s->offset); i++) buffer_free(s->device, &s->offset[i]);
  buffer_free(s->device, &s->handed);
  buffer_free(s->device, &s->target);
  buffer_free(s->device, &s->offset_gradient);
}

int offset_begin(struct stepper *s)
{
  for (int i = 0; i < LENGTH(s->offset); i++)
    TRY(device_put(s->device, &s->offset[i], 0, s->offset[i].bytes));
  return OK;
}

int offset_fetch(struct stepper *s)
{
  for (int i = 0; i < LENGTH(s->offset); i++)
    TRY(device_get(s->device, &s->offset[i], 0, s->offset[i].bytes));
  return OK;
}

int offset_subtract(struct stepper *s)
{
  const struct train_sizes *z = s->sizes;
  if (!z->learns_offset) return OK;
  return device_train_offset(s->device, s->x.device, s->n, z->p, s->offset[0].device);
}

int offset_prepare(struct stepper *s)
{
  const struct gather_job own = {
      &s->gradient[TRAIN_BIAS], NULL, s->atoms, ITEM, &s->handed, s->atom_first};
  return s->sizes->learns_offset ? device_gather(s->device, &own) : OK;
}

/* handed <- the bias gradients of all atoms. */
static int biases_gather(struct stepper *s)
{
  gidx first, count;
  for (int r = 0; r < s->c->size; r++) {
    comm_partition(s->sizes->k, s->c->size, r, &first, &count);
    s->counts[r] = (idx)count;
  }
  return comm_allgather_buffer(s->c, s->device, &s->handed, s->counts, (size_t)ITEM);
}

static int gradient_find(struct stepper *s)
{
  const struct train_sizes *z = s->sizes;
  const struct triad_product all = {s->handed.device,
                                    {s->w[TRAIN_ENCODER].device, z->p, 1},
                                    s->target.device,
                                    s->offset_gradient.device,
                                    z->k,
                                    z->p,
                                    1,
                                    z->k,
                                    z->p};
  gidx row = (gidx)s->live.blocks * z->p;
  TRY(device_train_sums(s->device, s->live.error.device, s->n, row, z->p, s->target.device));
  TRY(device_train_scale(s->device, s->handed.device, z->k, -1));
  return device_triad_product(s->device, PRECISION_F32, &all, NULL);
}

static int offset_step(struct stepper *s, const struct adam_rates *rates)
{
  struct adam_state a = {s->offset[0].device, s->offset[1].device, s->offset[2].device,
                         s->offset_gradient.device, s->sizes->p};
  TRY(gradient_find(s));
  return device_adam(s->device, &a, rates);
}

int offset_move(struct stepper *s, const struct adam_rates *rates)
{
  if (!s->sizes->learns_offset) return OK;
  TRY(biases_gather(s));
  return comm_agree(s->c, offset_step(s, rates));
}
