/* SPDX-License-Identifier: BSD-3-Clause
 * Whether the files of a pattern are in the order, and all there, that their numbers say.
 *
 * Floor: io.  Not collective. */
#ifndef IO_SHARDS_ORDER_H
#define IO_SHARDS_ORDER_H

#include "io/shards.h"

/* Warn where bytes put the files of a pattern in another order than their numbers do: part10 before
 * part2, and where numbers that else rise by one step leave some out: part2, part4.  For inputs
 * whose order counts. */
void shards_order_warn(const struct shard_names *s);

#endif
