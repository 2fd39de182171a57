/* SPDX-License-Identifier: BSD-3-Clause
 * Synthetic arrow systems, made in shares and written in blocks.
 *
 * Floor: stage.  Knows no files: what is made goes to a sink, on rank 0. */
#ifndef STAGE_SYNTH_SYSTEMS_H
#define STAGE_SYNTH_SYSTEMS_H

#include "comm/comm.h"
#include "model/synth_systems.h"

struct synth_systems_result {
  gidx kinds[MADE_ILL + 1]; /* systems of each kind */
  uint64_t fingerprint;     /* of all numbers */
};

/* Numbers of a block of systems, and the most of a single one: ERR_USAGE when that is too many. */
int synth_systems_check(const struct systems_shape *shape);
gidx synth_systems_memory(const struct systems_shape *shape, int ranks); /* bytes a rank, about */

/* Make all systems of the shape (made_shape's).  Collective; the same status on every rank. */
int synth_systems_run(const struct made_systems *made, const struct systems_shape *shape,
                      struct comm *c, const struct system_sink *sink,
                      struct synth_systems_result *result);

#endif
