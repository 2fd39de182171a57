/* SPDX-License-Identifier: BSD-3-Clause
 * Its gradient is that of the rows as targets, less what the encoder's biases hand back: the latter
 * are gathered from the owners of the atoms.  A CPU alone has it, so arrays have one side. */
#include "train/offset.h"

#include "base/status.h"
#include "device/train.h"
#include "device/triad.h"

static const gidx ITEM = (gidx)sizeof(float);

int offset_open(struct stepper *s)
{
  const struct train_sizes *z = s->sizes;
  if (!z->learns_offset) return OK;
  TRY(device_train_offset_has(s->device));
  TRY(buffer_alloc(s->device, &s->handed, z->k * ITEM));
  TRY(buffer_alloc(s->device, &s->target, z->p * ITEM));
  return buffer_alloc(s->device, &s->offset_gradient, z->p * ITEM);
}

void offset_close(struct stepper *s)
{
  buffer_free(s->device, &s->handed);
  buffer_free(s->device, &s->target);
  buffer_free(s->device, &s->offset_gradient);
}

int offset_subtract(struct stepper *s)
{
  const struct train_sizes *z = s->sizes;
  if (!z->learns_offset) return OK;
  return device_train_offset(s->device, s->x.device, s->n, z->p, s->state->offset[0]);
}

/* handed <- what each atom's bias learned, of all atoms. */
static int biases_gather(struct stepper *s)
{
  gidx first, count;
  for (int r = 0; r < s->c->size; r++) {
    comm_share(s->sizes->k, s->c->size, r, &first, &count);
    s->counts[r] = (idx)count;
  }
  return comm_allgather(s->c, s->gradient[TRAIN_BIAS].device, s->counts, sizeof(float),
                        s->handed.host);
}

static int gradient_find(struct stepper *s)
{
  const struct train_sizes *z = s->sizes;
  gidx row = (gidx)s->live.blocks * z->p;
  const struct triad_gradient target = {
      s->ones.device, s->live.error.device, s->target.device, 1, row, z->p, s->n, 1, z->p};
  const struct triad_product all = {s->handed.device,
                                    {s->w[TRAIN_ENCODER].device, z->p, 1},
                                    s->target.device,
                                    s->offset_gradient.device,
                                    z->k,
                                    z->p,
                                    1,
                                    z->k,
                                    z->p};
  TRY(device_clear(s->device, &s->target, 0, s->target.bytes));
  TRY(device_triad_gradient(s->device, PRECISION_F32, &target, NULL));
  TRY(device_train_scale(s->device, s->handed.device, z->k, -1));
  return device_triad_product(s->device, PRECISION_F32, &all, NULL);
}

static int offset_step(struct stepper *s, const struct adam_rates *rates)
{
  float *const *state = s->state->offset;
  struct adam_state a = {state[0], state[1], state[2], s->offset_gradient.device, s->sizes->p};
  TRY(gradient_find(s));
  return device_adam(s->device, &a, rates);
}

int offset_move(struct stepper *s, const struct adam_rates *rates)
{
  if (!s->sizes->learns_offset) return OK;
  TRY(biases_gather(s));
  return comm_agree(s->c, offset_step(s, rates));
}
