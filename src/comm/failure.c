/* SPDX-License-Identifier: BSD-3-Clause
 * The states of failure.h.  Messages are not kept here: each thread keeps its first message
 * (base/status.h); comm_agree() copies the message of the chosen rank. */
#include "comm/failure.h"

#include <string.h>

#include "comm/mpi_impl.h"

enum { MESSAGE_LENGTH = 2048 }; /* of the message that is made common */

/* The communicator that has the state of c. */
static const struct comm *keeper(const struct comm *c)
{
  return c->failure.whole ? c->failure.whole : c;
}

int comm_is_alone(const struct comm *c)
{
  return c->failure.whole != NULL;
}

struct comm *comm_whole(struct comm *c)
{
  return c->failure.whole ? c->failure.whole : c;
}

void comm_failure_part(struct comm *part, struct comm *parent, int is_alone)
{
  part->failure = (struct comm_failure){.parent = parent, .whole = is_alone ? parent : NULL};
}

/* c and each of its parents become PENDING if they are OK. */
static void pending_set(struct comm *c, int status, gidx key, const struct comm *part)
{
  for (; c; part = c, c = c->failure.parent) {
    struct comm_failure *f = &c->failure;
    if (f->condition != COMM_OK) continue;
    f->condition = COMM_PENDING;
    f->status = status;
    f->key = key;
    f->child_from = part;
  }
}

void comm_record_at(struct comm *c, int status, gidx key)
{
  if (status) pending_set(comm_whole(c), status, key, NULL);
}

void comm_record(struct comm *c, int status)
{
  comm_record_at(c, status, COMM_NO_KEY);
}

int comm_failure(const struct comm *c)
{
  return keeper(c)->failure.status;
}

int comm_failure_is_common(const struct comm *c)
{
  return keeper(c)->failure.condition == COMM_FAILED;
}

void comm_lockstep_begin(struct comm *c)
{
  c->failure.lockstep++;
}

void comm_lockstep_end(struct comm *c)
{
  c->failure.lockstep--;
}

static int in_lockstep(const struct comm *c)
{
  return c->failure.lockstep > 0 && c->size > 1;
}

int comm_proceeds(const struct comm *c)
{
  return in_lockstep(c) || !comm_failure(c);
}

int comm_record_needed(struct comm *c, int status)
{
  if (in_lockstep(c)) return status;
  comm_record(c, status);
  return OK;
}

int comm_check(const struct comm *c)
{
  for (; c; c = c->failure.parent)
    if (c->failure.condition >= COMM_FAILED)
      return status_fail(c->failure.status, __FILE__, __LINE__,
                         "an exchange after a failure that all ranks know");
  return OK;
}

int comm_meet(struct comm *c, int status)
{
  TRY(comm_check(c));
  c = comm_whole(c);
  if (in_lockstep(c)) return status;
  comm_record(c, status);
  int failed = c->failure.condition == COMM_PENDING;
  if (c->size > 1)
    POST(MPI_Iallreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, c->state->world, &request_));
  return failed ? comm_agree(c, OK) : OK;
}

int comm_lose(struct comm *c, int status)
{
  for (; c; c = c->failure.parent) {
    c->failure.condition = COMM_LOST;
    c->failure.status = status;
  }
  return status;
}

/* Set a failure that all ranks of c know of; returns its code. */
static int failed_set(struct comm *c, int status, gidx key)
{
  c->failure.condition = COMM_FAILED;
  c->failure.status = status;
  c->failure.key = key;
  pending_set(c->failure.parent, status, key, c);
  return status;
}

/* A status, the key by which ranks choose among failures, and flags: three numbers. */
struct keyed_status {
  gidx code, key, flags;
};

/* The rank of the failure with the smallest key; if keys are equal, the lowest of these ranks; -1:
 * none failed. */
static int failed_rank(const struct keyed_status *all, int size)
{
  int worst = -1;
  for (int r = 0; r < size; r++)
    if (all[r].code && (worst < 0 || all[r].key < all[worst].key)) worst = r;
  return worst;
}

/* Take over the message of a rank. */
static int message_take(struct comm *c, int from, int code)
{
  char message[MESSAGE_LENGTH];
  strncpy(message, status_message(), sizeof message - 1);
  message[sizeof message - 1] = '\0';
  POST(MPI_Ibcast(message, sizeof message, MPI_CHAR, from, c->state->world, &request_));
  return status_set(code, message);
}

int comm_agree_flags(struct comm *c, int status, gidx key, uint64_t *flags)
{
  TRY(comm_check(c));
  comm_record_at(c, status, key);
  c = comm_whole(c);
  const struct comm_failure *f = &c->failure;
  if (c->size == 1) return f->status ? failed_set(c, f->status, f->key) : OK;
  struct keyed_status mine = {f->status, f->key, (gidx)*flags},
                      *all = (struct keyed_status *)comm_work(c);
  POST(MPI_Iallgather(&mine, 3, MPI_INT64_T, all, 3, MPI_INT64_T, c->state->world, &request_));
  for (int r = 0; r < c->size; r++) *flags |= (uint64_t)all[r].flags;
  int worst = failed_rank(all, c->size);
  if (worst < 0) return OK;
  const struct keyed_status told = all[worst];
  int code = message_take(c, worst, (int)told.code);
  return f->condition == COMM_LOST ? code : failed_set(c, code, told.key);
}

int comm_agree_at(struct comm *c, int status, gidx key)
{
  uint64_t none = 0;
  return comm_agree_flags(c, status, key, &none);
}

int comm_agree(struct comm *c, int status)
{
  return comm_agree_at(c, status, COMM_NO_KEY);
}

static void clear(struct comm_failure *f)
{
  f->condition = COMM_OK;
  f->status = OK;
  f->key = 0;
  f->child_from = NULL;
}

void comm_recover(struct comm *c)
{
  const struct comm *part = c = comm_whole(c);
  if (c->failure.condition != COMM_FAILED) return;
  clear(&c->failure);
  while ((c = c->failure.parent) && c->failure.condition == COMM_PENDING &&
         c->failure.child_from == part) {
    clear(&c->failure);
    part = c;
  }
}

int comm_defer(const struct comm *part, int status)
{
  return comm_failure_is_common(part) ? OK : status;
}
