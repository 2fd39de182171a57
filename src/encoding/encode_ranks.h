/* SPDX-License-Identifier: BSD-3-Clause
 * The result of encode and route, if each rank writes its own rows.
 *
 * Floor: encoding.  Collective. */
#ifndef ENCODING_ENCODE_RANKS_H
#define ENCODING_ENCODE_RANKS_H

#include "encoding/encode_files.h"

/* The shape of a result of n rows.  Not collective. */
struct supports_shape encode_shape(const struct encode_task *task, gidx n);

/* May all ranks write the result of a task whose grid is chosen?  Forecasts call this; in a job,
 * encode_ranks_begin() decides.  Not collective. */
int encode_ranks_may(const struct encode_task *task, int ranks);

/* Call this after rank 0 has begun the file in job_begin().  Sets task->by_ranks, which says
 * whether all ranks write.  Copies the rows of an earlier run, unless the file grows and has them
 * already. */
int encode_ranks_begin(struct encode_files *f);
/* Call this after the rows of `result` are written.  From then on rank 0 alone has the file, unless
 * it grows and rows are left. */
int encode_ranks_end(struct encode_files *f, const struct encode_result *result);

#endif
