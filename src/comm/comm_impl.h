/* SPDX-License-Identifier: BSD-3-Clause
 * How the collective operations of this floor wait, whether MPI or NCCL moves the bytes.
 *
 * Floor: comm; included by src/comm only. */
#ifndef COMM_COMM_IMPL_H
#define COMM_COMM_IMPL_H

#include "comm/comm.h"

/* Work space of [3 size] numbers for the operation that runs.  It was allocated in advance: an
 * operation that failed for lack of memory would leave the other ranks waiting.  Not collective. */
gidx *comm_work(const struct comm *c);

/* Begin an operation as failure.h describes: wait for all ranks unless they are in lockstep.
 * status: of the preparations on this rank; in lockstep a failure of them is returned, and ends the
 * job. */
int comm_meet(struct comm *c, int status);
/* The code of a failure that ends every operation of c, or of a communicator that c is a part of;
 * OK: none.  Neither this function nor those below are collective. */
int comm_check(const struct comm *c);
/* Note an error of MPI; returns status. */
int comm_lose(struct comm *c, int status);
/* Set up the failure state of `part`, a new part of parent; is_alone: it has the state of
 * parent. */
void comm_failure_part(struct comm *part, struct comm *parent, int is_alone);

/* Wait for a short time, which grows with turn, from turn 0 on.  Not collective. */
void comm_pause(int turn);

#endif
