/* SPDX-License-Identifier: BSD-3-Clause
 * The device counts the scores of own rows, and all ranks agree on the cut (cut.h). */
#include "train/selection.h"

#include "base/status.h"
#include "train/atoms.h"
#include "train/cut.h"
#include "train/train.h"

struct train_codes_job codes_job_of(const struct stepper *s, int any_dead)
{
  const struct train_sizes *z = s->sizes;
  return (struct train_codes_job){.x = (const float *)s->x.device + s->first * z->p,
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
}

int selection_scores(struct stepper *s, int any_dead)
{
  struct phase *scores = &s->phases[TRAIN_SCORES];
  struct train_codes_job job = codes_job_of(s, any_dead);
  phase_begin(scores);
  TRY(device_train_scores(s->device, &job));
  phase_end(scores, (double)s->own * s->sizes->k * s->sizes->p);
  return OK;
}

struct counting {
  struct device *device;
  const struct train_codes_job *job;
};

static int scores_count(void *self, const struct batch_cut *cut, gidx *counts)
{
  struct counting *c = self;
  return device_train_count(c->device, c->job, cut, counts);
}

int selection_run(struct stepper *s, int any_dead)
{
  struct phase *codes = &s->phases[TRAIN_CODES];
  gidx ties = 0;
  struct train_codes_job job = codes_job_of(s, any_dead);
  struct batch_cut cut = batch_cut_begin(batch_most(s->sizes->l0, s->n));
  struct counting counting = {s->device, &job};
  const struct cut_task task = {s->c, &counting, scores_count, s->ties};
  int is_any = cut.digits == 0;
  phase_begin(codes);
  TRY(cut_agree(&task, &cut, &ties));
  if (!comm_failure(s->c)) comm_record(s->c, device_train_cut(s->device, &job, &cut, ties));
  if (is_any) batch_threshold_add(&s->state->threshold, batch_cut_value(&cut));
  phase_end(codes, 0);
  return OK;
}
