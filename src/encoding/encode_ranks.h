/* SPDX-License-Identifier: BSD-3-Clause
 * The result of encode and route, written by all ranks where each takes rows of its own.
 *
 * Floor: encoding.  Collective. */
#ifndef ENCODING_ENCODE_RANKS_H
#define ENCODING_ENCODE_RANKS_H

#include "encoding/encode_files.h"

/* The shape of a result of n rows.  Not collective. */
struct supports_shape encode_shape(const struct encode_task *task, gidx n);

/* May ranks write, by the numbers of a task whose grid is chosen?  A task says so by by_ranks: its
 * forecasts follow that.  Not collective. */
int encode_ranks_may(const struct encode_task *task, int ranks);

/* Rank 0 has begun the file, behind job_begin(): let the task say whether ranks write it, and copy
 * what an earlier run has done. */
int encode_ranks_begin(struct encode_files *f);
/* The rows of a result are written: rank 0 has the file from now on. */
int encode_ranks_end(struct encode_files *f, const struct encode_result *result);

#endif
