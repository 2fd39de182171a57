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

/* Begin an operation as failure.h has it: wait for all ranks unless they are in lockstep.  status:
 * of what it needs here, which in lockstep is returned, to end the job. */
int comm_meet(struct comm *c, int status);
/* The code of a failure that ends every operation, of c or what it is a part of; OK: none.  Not
 * collective, as are the next. */
int comm_check(const struct comm *c);
/* An error of MPI; returns status. */
int comm_lose(struct comm *c, int status);
/* A communicator that was just made is a part of another, or stands for it. */
void comm_failure_part(struct comm *part, struct comm *parent, int is_alone);

/* Wait a little, longer with each turn from 0 on.  Not collective. */
void comm_pause(int turn);

#endif
