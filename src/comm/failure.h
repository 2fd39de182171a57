/* SPDX-License-Identifier: BSD-3-Clause
 * How a failure of one rank becomes a failure of all ranks.
 *
 * Floor: comm.  A communicator is in one of four states.  While any rank is PENDING, ranks may be
 * in different states:
 *   state        event                   next        effect
 *   OK           comm_record(), one rank PENDING     the failure is kept
 *   PENDING      comm_record()           PENDING     none: the first is kept
 *   OK, PENDING  operation, loose        OK, FAILED  all ranks meet first; if one is PENDING,
 *                                                    nothing moves and all ranks learn it
 *   OK, PENDING  operation, in lockstep  unchanged   arrays move as usual, valid or not
 *   OK, PENDING  comm_agree()            OK, FAILED  all take over the failure with the lowest key,
 *                                                    then of the lowest rank, with its text
 *   FAILED       operation, comm_agree() FAILED      returns the code; no exchange
 *   FAILED       comm_recover()          OK          no exchange
 *   any          an error of MPI         LOST        only comm_abort() is left
 *
 * An operation is any collective operation of comm/comm.h, unless its comment says otherwise.  It
 * is loose outside of comm_lockstep_begin() and comm_lockstep_end().  A part (comm_split()) has a
 * parent: if the part is PENDING or FAILED, the parent is PENDING on these ranks; if the parent is
 * FAILED, so is the part.  A communicator of comm_alone() has no state of its own: it has the state
 * of the communicator that comm_alone() was given. */
#ifndef COMM_FAILURE_H
#define COMM_FAILURE_H

#include "base/types.h"

struct comm;

enum comm_condition { COMM_OK, COMM_PENDING, COMM_FAILED, COMM_LOST };

/* Used by comm/failure.c only. */
struct comm_failure {
  enum comm_condition condition;
  int status; /* OK: none */
  gidx key;
  int lockstep;                  /* comm_lockstep_begin() calls without their end */
  struct comm *parent, *whole;   /* borrowed; parent: c of comm_split() or comm_alone(); whole: c of
                                  * comm_alone(); otherwise NULL */
  const struct comm *child_from; /* the part whose failure is PENDING here; NULL: none */
};

/* Keep a failure of this rank for the next loose operation or agreement.  Does nothing for OK, or
 * if a failure is kept already.  The usual form for the work of one rank is
 *     if (!comm_failure(c)) comm_record(c, work());
 * A failure with a key, such as a row, comes before a failure without one.  Not collective. */
#define COMM_NO_KEY ((gidx)1 << 62)
void comm_record(struct comm *c, int status);
void comm_record_at(struct comm *c, int status, gidx key);
/* comm_failure(): the failure that this rank knows of; OK: none.  comm_failure_is_common(): do all
 * ranks know it?  Not collective. */
int comm_failure(const struct comm *c);
int comm_failure_is_common(const struct comm *c);

/* Between these calls, which nest, ranks come to operations at about the same time.  So an
 * operation does not wait for all ranks first, which would be an exchange of its own.  A
 * communicator of one rank is always loose.  Every rank calls them. */
void comm_lockstep_begin(struct comm *c);
void comm_lockstep_end(struct comm *c);

/* comm_proceeds(): should this rank allocate the memory that its next operation needs?  Yes before
 * any failure, and in lockstep also after one.  comm_record_needed() records the status of the
 * allocation, and returns OK; but in lockstep no rank can continue without the memory, so there it
 * returns the status, to end the job.  Not collective. */
int comm_proceeds(const struct comm *c);
int comm_record_needed(struct comm *c, int status);

/* Make a status, or a PENDING failure, common.  OK on every rank if all are OK.  Otherwise one
 * failure is chosen: the one with the smallest key; if keys are equal, the one of the lowest rank.
 * Every rank returns its code, and takes over its message.  Collective: every rank must call it
 * before it branches on its status, otherwise the others wait for a rank that is elsewhere. */
int comm_agree(struct comm *c, int status);
int comm_agree_at(struct comm *c, int status, gidx key);
/* The same, and *flags <- the bits that are set on any rank; they cost no further exchange. */
int comm_agree_flags(struct comm *c, int status, gidx key, uint64_t *flags);

/* FAILED becomes OK, and so does a parent that this failure made PENDING: the caller continues in
 * another way.  Collective; does nothing in other states. */
void comm_recover(struct comm *c);
/* Returns OK if a part is FAILED, since its parent will tell all ranks.  Any other failure is
 * returned, to end the job: other ranks of the part may not know it. */
int comm_defer(const struct comm *part, int status);

#endif
