/* SPDX-License-Identifier: BSD-3-Clause
 * How the collective operations of this floor wait, whether MPI or NCCL moves the bytes.
 *
 * Floor: comm; included by src/comm only. */
#ifndef COMM_COMM_IMPL_H
#define COMM_COMM_IMPL_H

#include "comm/comm.h"

/* Wait a little, longer with each turn from 0 on.  Not collective. */
void comm_pause(int turn);

#endif
