/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of a block's turn: what it takes from the device and from other ranks.
 *
 * Floor: stage.  All are collective, and count in the phases of the result. */
#ifndef STAGE_ENCODE_STEPS_H
#define STAGE_ENCODE_STEPS_H

#include "stage/encode_inside.h"

/* All rows of the block, or the residuals and, with_chosen, the supports that exclude atoms. */
int step_gather(struct encode *e, struct flight *f, struct buffer *rows, int with_chosen);

/* Lists of all rows of the block over own tiles.  ERR_INPUT names the lowest row and atom whose
 * score is not finite. */
int step_route(struct encode *e, struct flight *f);

/* Each row's lists to its rank; they wait to be merged there. */
int step_exchange(struct encode *e, struct flight *f);

/* The atoms that entries have .. now - 1 of own supports name. */
int step_fetch(struct encode *e, struct flight *f);

/* Own rows' codes on `now` atoms: of the last round with their quality on the host, of the others
 * the residual on the device. */
int step_codes(struct encode *e, struct flight *f, int last);

/* Supports, scores, codes and quality to rank 0. */
int step_collect(struct encode *e, struct flight *f);

#endif
