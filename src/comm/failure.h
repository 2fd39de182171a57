/* SPDX-License-Identifier: BSD-3-Clause
 * How a failure of one rank becomes one of all ranks.
 *
 * Floor: comm.  A communicator is in one of four states, on each rank in its own while one is
 * PENDING:
 *   state        event                   next        effect
 *   OK           comm_record(), one rank PENDING     the failure is kept
 *   PENDING      comm_record()           PENDING     none: the first is kept
 *   OK, PENDING  operation, loose        OK, FAILED  all ranks meet first; where one is PENDING
 *                                                    nothing moves, and all learn it
 *   OK, PENDING  operation, in lockstep  unchanged   right sizes move, whatever they hold
 *   OK, PENDING  comm_agree()            OK, FAILED  all take over the failure with the lowest key,
 *                                                    then of the lowest rank, with its text
 *   FAILED       operation, comm_agree() FAILED      returns the code; no exchange
 *   FAILED       comm_recover()          OK          no exchange
 *   any          an error of MPI         LOST        only comm_abort() is left
 *
 * "Operation" is any collective operation of comm/comm.h that is not exempt by its comment.  A part
 * (comm_split()) has a parent: what is PENDING or FAILED in the part is PENDING in the parent, on
 * these ranks, and where the parent is FAILED so is the part.  A rank alone (comm_alone()) has no
 * state of its own: it is that of all ranks. */
#ifndef COMM_FAILURE_H
#define COMM_FAILURE_H

#include "base/types.h"

struct comm;

enum comm_condition { COMM_OK, COMM_PENDING, COMM_FAILED, COMM_LOST };

/* Read and written by comm/failure.c alone. */
struct comm_failure {
  enum comm_condition condition;
  int status; /* OK: none */
  gidx key;
  int lockstep;                  /* how many comm_lockstep_begin() have no end yet */
  struct comm *parent, *whole;   /* borrowed: of comm_split(), of comm_alone(); else NULL */
  const struct comm *child_from; /* the part whose failure is PENDING here; NULL: none */
};

/* Keep a failure of this rank for the next loose operation or agreement.  Nothing for OK, or where
 * one is kept.  Work of one rank is usually done as
 *     if (!comm_failure(c)) comm_record(c, work());
 * Failures with a key, such as a row, come before those without.  Not collective. */
#define COMM_NO_KEY ((gidx)1 << 62)
void comm_record(struct comm *c, int status);
void comm_record_at(struct comm *c, int status, gidx key);
/* The failure that this rank knows of, OK: none; does every rank know it?  Not collective. */
int comm_failure(const struct comm *c);
int comm_failure_is_common(const struct comm *c);

/* Between these, which nest, ranks come to operations together, so none waits for the others first,
 * which is an exchange, too.  One rank is always loose.  Every rank calls them. */
void comm_lockstep_begin(struct comm *c);
void comm_lockstep_end(struct comm *c);

/* Memory that operations need is sought where comm_proceeds(): before any failure, and in lockstep
 * after one, too.  comm_record_needed() takes its status, and returns OK; in lockstep, where nobody
 * can do without, the status, to end the job.  Not collective. */
int comm_proceeds(const struct comm *c);
int comm_record_needed(struct comm *c, int status);

/* Make a status common, or what is PENDING.  OK on every rank if it is on all of them; else every
 * rank returns the code and takes over the message of one failure, that with the smallest key, of
 * equal keys that of the lowest rank.  Collective: every rank must reach it before any of them
 * branches on its status, or the others wait for one that has gone. */
int comm_agree(struct comm *c, int status);
int comm_agree_at(struct comm *c, int status, gidx key);
/* The same, and *flags <- the bits that some rank has, which are told at no cost. */
int comm_agree_flags(struct comm *c, int status, gidx key, uint64_t *flags);

/* FAILED becomes OK, also the parent that it made PENDING: the caller has another way.  Collective;
 * nothing in other states. */
void comm_recover(struct comm *c);
/* OK for the status of an operation on a part that is FAILED, since its parent will tell all; any
 * other status, which the others of the part may not know of, is returned, to end the job. */
int comm_defer(const struct comm *part, int status);

#endif
