/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks add up how many scores have each digit, and so all know the same cut; scores that equal it
 * go to ranks in their order, which is that of rows. */
#include "train/selection.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "train/atoms.h"
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

/* *cut <- that of all ranks' scores; *tied <- own scores that equal it. */
static int cut_find(struct stepper *s, const struct train_codes_job *job, struct batch_cut *cut,
                    gidx *tied)
{
  gidx own[BATCH_BINS] = {0}, all[BATCH_BINS];
  *tied = 0;
  while (cut->digits < BATCH_DIGITS) {
    if (!comm_failure(s->c)) comm_record(s->c, device_train_count(s->device, job, cut, own));
    memcpy(all, own, sizeof all);
    TRY(comm_sum(s->c, all, BATCH_BINS));
    int last = cut->digits == BATCH_DIGITS - 1;
    batch_cut_narrow(cut, all);
    if (last && cut->key > 0) *tied = own[cut->key & 1023];
  }
  return OK;
}

/* *ties <- how many of own scores that equal the cut are codes. */
static int ties_share(struct stepper *s, const struct batch_cut *cut, gidx tied, gidx *ties)
{
  gidx left = cut->left;
  memset(s->ties, 0, (size_t)s->c->size * sizeof *s->ties);
  s->ties[s->c->rank] = tied;
  if (s->c->size > 1) TRY(comm_sum(s->c, s->ties, s->c->size));
  for (int r = 0; r < s->c->rank; r++) left -= imin(left, s->ties[r]);
  *ties = imin(left, tied);
  return OK;
}

int selection_run(struct stepper *s, int any_dead)
{
  struct phase *codes = &s->phases[TRAIN_CODES];
  gidx tied, ties = 0;
  struct train_codes_job job = codes_job_of(s, any_dead);
  struct batch_cut cut = batch_cut_begin(batch_most(s->sizes->l0, s->n));
  int is_any = cut.digits == 0;
  phase_begin(codes);
  TRY(cut_find(s, &job, &cut, &tied));
  TRY(ties_share(s, &cut, tied, &ties));
  if (!comm_failure(s->c)) comm_record(s->c, device_train_cut(s->device, &job, &cut, ties));
  if (is_any) batch_threshold_add(&s->state->threshold, batch_cut_value(&cut));
  phase_end(codes, 0);
  return OK;
}
