/* SPDX-License-Identifier: BSD-3-Clause
 * slots.h5: the pool of states of a gated delta net after its last token, slot by slot.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_MIXER_STATE_H
#define IO_MIXER_STATE_H

#include "io/outputs.h"
#include "io/schema.h"
#include "model/gated_delta.h"

extern const struct file_kind state_kind;

struct state_output {
  struct result_file result;
  struct h5_array s, taps;
};
int state_output_create(struct state_output *f, const char *path, const struct gated_delta *m,
                        idx slots);
/* Write the next slot; taps is used only if the net has a convolution. */
int state_output_write(struct state_output *f, idx slot, const float *s, const float *taps);
int state_output_finish(struct state_output *f, const struct run_fact *facts, int n_facts);

#endif
