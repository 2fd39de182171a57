/* SPDX-License-Identifier: BSD-3-Clause
 * Synthetic arrow systems, made in shares and written in blocks.
 *
 * Floor: synth.  Knows no files: results go to a sink, on rank 0. */
#ifndef SYNTH_SYSTEMS_H
#define SYNTH_SYSTEMS_H

#include "comm/comm.h"
#include "model/synth_systems.h"

struct synth_systems_result {
  gidx kinds[SYNTHETIC_ILL + 1]; /* systems of each kind */
  gidx memory;                   /* bytes that this rank held, besides the shape */
  uint64_t fingerprint;          /* of all numbers */
};

/* ERR_USAGE: a single system would have too many numbers. */
int synth_systems_check(const struct systems_shape *shape);

/* *bytes <- the memory of rank 0, which needs the most, without the shape.  It is found by a dry
 * run of the job's allocations. */
int synth_systems_memory(const struct systems_shape *shape, int ranks, gidx *bytes);

/* Make all systems of the shape, which synthetic_shape() made.  Collective; the same status on
 * every rank. */
int synth_systems_run(const struct synthetic_systems *made, const struct systems_shape *shape,
                      struct comm *c, const struct system_sink *sink,
                      struct synth_systems_result *result);

#endif
