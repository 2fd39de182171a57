/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks compare texts of lines "key = value", such as their options.
 *
 * Floor: comm. */
#ifndef COMM_LINES_H
#define COMM_LINES_H

#include "comm/comm.h"

enum { COMM_LINES_MOST = 1 << 16 }; /* largest number of bytes of a compared text */

/* Check that a text is the same on all ranks.  ERR_INPUT names the rank and the first line that
 * differs from rank 0's.  Collective. */
int comm_lines_agree(struct comm *c, const char *text);

#endif
