/* SPDX-License-Identifier: BSD-3-Clause
 * Objects have the same names as in a capture, so that the next capture can copy them. */
#include "io/mixer_state.h"

#include "base/status.h"
#include "io/check.h"

enum { SLACK_BYTES = 4 << 20 };

static const struct object_row object_rows[] = {
    {"/state/s", TYPE_F32, "slots H Dv Dk", 1, "states of each slot, key index fastest"},
    {"/state/taps", TYPE_F32, "slots C taps", 0, "channels before the next token, oldest first"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

int state_output_create(struct state_output *f, const char *path, const struct gated_delta *m,
                        idx slots)
{
  const gidx s[] = {slots, m->heads, m->dv, m->d};
  const gidx taps[] = {slots, gated_delta_channels(m), m->width - 1};
  gidx floats = s[1] * s[2] * s[3] + (m->width ? taps[1] * taps[2] : 0);
  *f = (struct state_output){0};
  TRY(result_create(&f->result, path, &state_kind, 4 * floats * slots + SLACK_BYTES));
  if (m->width) TRY(object_create(&f->result.h5, "/state/taps", 3, taps, 0, &f->taps));
  return object_create(&f->result.h5, "/state/s", 4, s, 0, &f->s);
}

int state_output_write(struct state_output *f, idx slot, const float *s, const float *taps)
{
  TRY(h5_array_write(&f->s, slot, 1, s));
  return f->taps.id ? h5_array_write(&f->taps, slot, 1, taps) : OK;
}

int state_output_finish(struct state_output *f, const struct run_fact *facts, int n_facts)
{
  TRY(h5_array_close(&f->s));
  TRY(h5_array_close(&f->taps));
  return result_publish(&f->result, facts, n_facts);
}

/* Nothing to check: slots without a sequence may hold anything. */
static int file_check(struct verify *v)
{
  (void)v;
  return OK;
}

const struct file_kind state_kind = {"state", {&objects}, file_check, NULL, NULL, NULL};
