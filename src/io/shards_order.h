/* SPDX-License-Identifier: BSD-3-Clause
 * Check the numbers in the names of files that match a pattern: are they in order, and is none
 * missing?
 *
 * Floor: io.  Not collective. */
#ifndef IO_SHARDS_ORDER_H
#define IO_SHARDS_ORDER_H

#include "io/shards.h"

/* Warn if the order by bytes differs from the order by numbers (part10 before part2), and if rising
 * numbers leave some out (part1, part2, part4).  Call it for inputs whose order matters. */
void shards_order_warn(const struct shard_names *s);

#endif
