/* SPDX-License-Identifier: BSD-3-Clause
 * How the collective operations of this floor wait, whether MPI or NCCL moves the bytes.
 *
 * Floor: comm; included by src/comm only. */
#ifndef COMM_COMM_IMPL_H
#define COMM_COMM_IMPL_H

#include "comm/comm.h"

/* [3 size] numbers that no other operation uses while this one runs: so that none can fail for want
 * of memory, which would leave the others waiting.  Not collective. */
gidx *comm_work(const struct comm *c);

/* Wait a little, longer with each turn from 0 on.  Not collective. */
void comm_pause(int turn);

#endif
