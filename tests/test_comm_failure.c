/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the table of comm/failure.h holds.  Every event in every state, whichever rank fails,
 * gives the next state, the status and the number of exchanges of the table, and moves numbers or
 * not.
 * RUN: np=1 2 3 4 */
#include "base/log.h"
#include "base/status.h"
#include "comm/mpi_impl.h"
#include "tap.h"

enum event { RECORD, RECORD_AGAIN, LOOSE, LOCKSTEP, AGREE, AGREE_FLAGS, RECOVER, EVENTS };
enum verb { ALLGATHER, GATHER, ALLTOALLV, BROADCAST, SUM, OR, VERBS };
static const char *const event_names[] = {"record", "record again", "loose",  "lockstep",
                                          "agree",  "flags",        "recover"};

/* A row of the table.  PENDING is the state of the rank that failed; the other ranks are OK. */
struct row {
  enum comm_condition from;
  enum event event;
  enum comm_condition next, next_elsewhere; /* of the rank that failed, of the others */
  int fails;                                /* returns the code on every rank */
  int moves;                                /* of operations: do the numbers move? */
  int exchanges;
};
/* Exchanges: a loose operation has one more than one in lockstep: the meeting.  After a failure the
 * agreement follows, with an exchange for the statuses and one for the message. */
static const struct row table[] = {
    {COMM_OK, RECORD, COMM_PENDING, COMM_OK, 0, 0, 0},
    {COMM_OK, LOOSE, COMM_OK, COMM_OK, 0, 1, 2},
    {COMM_OK, LOCKSTEP, COMM_OK, COMM_OK, 0, 1, 1},
    {COMM_OK, AGREE, COMM_OK, COMM_OK, 0, 0, 1},
    {COMM_OK, AGREE_FLAGS, COMM_OK, COMM_OK, 0, 0, 1},
    {COMM_OK, RECOVER, COMM_OK, COMM_OK, 0, 0, 0},
    {COMM_PENDING, RECORD_AGAIN, COMM_PENDING, COMM_OK, 0, 0, 0},
    {COMM_PENDING, LOOSE, COMM_FAILED, COMM_FAILED, 1, 0, 3},
    {COMM_PENDING, LOCKSTEP, COMM_PENDING, COMM_OK, 0, 1, 1},
    {COMM_PENDING, AGREE, COMM_FAILED, COMM_FAILED, 1, 0, 2},
    {COMM_PENDING, AGREE_FLAGS, COMM_FAILED, COMM_FAILED, 1, 0, 2},
    {COMM_PENDING, RECOVER, COMM_PENDING, COMM_OK, 0, 0, 0},
    {COMM_FAILED, RECORD, COMM_FAILED, COMM_FAILED, 0, 0, 0},
    {COMM_FAILED, LOOSE, COMM_FAILED, COMM_FAILED, 1, 0, 0},
    {COMM_FAILED, LOCKSTEP, COMM_FAILED, COMM_FAILED, 1, 0, 0},
    {COMM_FAILED, AGREE, COMM_FAILED, COMM_FAILED, 1, 0, 0},
    {COMM_FAILED, AGREE_FLAGS, COMM_FAILED, COMM_FAILED, 1, 0, 0},
    {COMM_FAILED, RECOVER, COMM_OK, COMM_OK, 0, 0, 0},
    {COMM_LOST, RECORD, COMM_LOST, COMM_LOST, 0, 0, 0},
    {COMM_LOST, LOOSE, COMM_LOST, COMM_LOST, 1, 0, 0},
    {COMM_LOST, LOCKSTEP, COMM_LOST, COMM_LOST, 1, 0, 0},
    {COMM_LOST, AGREE, COMM_LOST, COMM_LOST, 1, 0, 0},
    {COMM_LOST, AGREE_FLAGS, COMM_LOST, COMM_LOST, 1, 0, 0},
    {COMM_LOST, RECOVER, COMM_LOST, COMM_LOST, 0, 0, 0},
};

static int fail(int code, const char *why)
{
  return status_fail(code, __FILE__, __LINE__, "%s", why);
}

/* Call an operation, which changes some of numbers[32] on every rank or on rank 0. */
static int verb_call(struct comm *c, enum verb verb, gidx *numbers)
{
  idx ones[16];
  for (int r = 0; r < c->size; r++) ones[r] = 1;
  if (verb == ALLGATHER)
    return comm_allgather(c, numbers + c->rank, ones, sizeof *numbers, numbers);
  if (verb == GATHER) return comm_gather(c, numbers + c->rank, ones, sizeof *numbers, numbers);
  if (verb == ALLTOALLV)
    return comm_alltoallv(c, numbers, ones, numbers + 16, ones, sizeof *numbers);
  if (verb == BROADCAST) return comm_broadcast(c, numbers, 16, sizeof *numbers);
  if (verb == SUM) return comm_sum(c, numbers, 16);
  return comm_or(c, (uint64_t *)numbers, 16);
}

/* Number i of a rank before an operation. */
static gidx number_of(int rank, int i)
{
  return 1000 * (rank + 1) + i;
}

/* Did the numbers move as the operation says? */
static int have_moved(const struct comm *c, enum verb verb, const gidx *numbers)
{
  int good = 1;
  for (int r = 0; r < c->size; r++) {
    if (verb == ALLGATHER || (verb == GATHER && c->rank == 0))
      good &= numbers[r] == number_of(r, r);
    if (verb == ALLTOALLV) good &= numbers[16 + r] == number_of(r, c->rank);
  }
  gidx sum = 0, bits = 0;
  for (int r = 0; r < c->size; r++) sum += number_of(r, 3), bits |= number_of(r, 3);
  if (verb == BROADCAST) good &= numbers[3] == number_of(0, 3);
  if (verb == SUM) good &= numbers[3] == sum;
  if (verb == OR) good &= numbers[3] == bits;
  return good;
}

static int have_stayed(const struct comm *c, const gidx *numbers)
{
  int good = 1;
  for (int i = 0; i < 32; i++) good &= numbers[i] == number_of(c->rank, i);
  return good;
}

/* Bring c to a state.  LOST comes at the end, because no event leads out of it. */
static void state_make(struct comm *c, enum comm_condition to, int failing)
{
  if (to == COMM_PENDING && c->rank == failing) comm_record(c, fail(ERR_MEMORY, "the first"));
  if (to == COMM_FAILED) comm_agree(c, c->rank == failing ? fail(ERR_MEMORY, "the first") : OK);
  if (to == COMM_LOST && c->failure.condition != COMM_LOST)
    comm_lose(c, fail(ERR_MEMORY, "the first"));
}

/* Bring c back to OK, from any state except LOST. */
static void state_clear(struct comm *c)
{
  comm_agree(c, OK);
  comm_recover(c);
  status_clear();
}

static int event_run(struct comm *c, enum event event, enum verb verb, int failing, gidx *numbers)
{
  uint64_t flags = 0;
  int status = OK;
  switch (event) {
  case RECORD:
    if (c->rank == failing) comm_record(c, fail(ERR_MEMORY, "the first"));
    return OK;
  case RECORD_AGAIN:
    if (c->rank == failing) comm_record_at(c, fail(ERR_IO, "the second"), -1);
    return OK;
  case LOOSE:
    return verb_call(c, verb, numbers);
  case LOCKSTEP:
    comm_lockstep_begin(c);
    comm_lockstep_begin(c);
    comm_lockstep_end(c); /* ends only the inner lockstep */
    status = verb_call(c, verb, numbers);
    comm_lockstep_end(c);
    return status;
  case AGREE:
    return comm_agree(c, OK);
  case AGREE_FLAGS:
    return comm_agree_flags(c, OK, 7, &flags);
  case RECOVER:
    comm_recover(c);
    return OK;
  default:
    return OK;
  }
}

/* What is expected.  A single rank has no exchanges, and its operations are always loose. */
static struct row row_expected(const struct comm *c, const struct row *row)
{
  struct row want = *row;
  if (c->size > 1) return want;
  want.exchanges = 0;
  if (row->event != LOCKSTEP || row->from != COMM_PENDING) return want;
  want.next = want.next_elsewhere = COMM_FAILED;
  want.fails = 1;
  want.moves = 0;
  return want;
}

static void row_check(struct comm *c, const struct row *row, enum verb verb, int failing)
{
  const struct row want = row_expected(c, row);
  gidx numbers[32];
  for (int i = 0; i < 32; i++) numbers[i] = number_of(c->rank, i);
  state_make(c, row->from, failing);
  gidx calls = c->calls;
  int status = event_run(c, row->event, verb, failing, numbers);
  gidx exchanges = c->calls - calls;
  enum comm_condition next = c->rank == failing ? want.next : want.next_elsewhere;
  const char *name = event_names[row->event];
  int is_operation = row->event == LOOSE || row->event == LOCKSTEP;
  ok(status == (want.fails ? ERR_MEMORY : OK), "%d %s %d: status %d", row->from, name, verb,
     status);
  ok(c->failure.condition == next, "%d %s %d: to %d, not %d", row->from, name, verb,
     c->failure.condition, next);
  ok(comm_failure(c) == (next == COMM_OK ? OK : ERR_MEMORY), "%d %s: the first failure is kept",
     row->from, name);
  ok(comm_failure_is_common(c) == (next == COMM_FAILED), "%d %s: common", row->from, name);
  ok(!want.fails || !strcmp(status_message(), "the first"), "%d %s: %s", row->from, name,
     status_message());
  ok(exchanges == want.exchanges, "%d %s %d: %lld exchanges, not %d", row->from, name, verb,
     (long long)exchanges, want.exchanges);
  if (is_operation && c->size > 1)
    ok(want.moves ? have_moved(c, verb, numbers) : have_stayed(c, numbers), "%d %s %d: moves",
       row->from, name, verb);
  if (row->from != COMM_LOST) state_clear(c);
}

static void table_check(struct comm *c, int with_lost)
{
  for (int i = 0; i < LENGTH(table); i++) {
    const struct row *row = &table[i];
    int is_operation = row->event == LOOSE || row->event == LOCKSTEP;
    if ((row->from == COMM_LOST) != with_lost) continue;
    for (int failing = 0; failing < c->size; failing++)
      for (int verb = 0; verb < (is_operation ? VERBS : 1); verb++)
        row_check(c, row, verb, failing);
  }
}

/* Of several failures the one with the smallest key is reported; if keys are equal, the one of the
 * lowest rank.  Failures without a key come last. */
static void check_keys(struct comm *c)
{
  char own[32], want[32];
  claim_begin(
      "the failure with the lowest key is reported, with equal keys that of the lowest rank");
  for (int way = 0; way < 3; way++) {
    snprintf(own, sizeof own, "rank %d", c->rank);
    int status = fail(c->rank ? ERR_IO : ERR_MEMORY, own);
    if (way == 0) comm_record_at(c, status, -c->rank);
    if (way == 1) comm_record(c, status);
    if (way == 2 && c->rank == c->size - 1)
      comm_record_at(c, status, 5);
    else if (way == 2)
      comm_record(c, status);
    snprintf(want, sizeof want, "rank %d", way == 1 ? 0 : c->size - 1);
    status = comm_agree(c, OK);
    ok(status == (way == 1 || c->size == 1 ? ERR_MEMORY : ERR_IO), "%d: %d", way, status);
    ok(!strcmp(status_message(), want), "%d: %s", way, status_message());
    state_clear(c);
  }
  claim_end();
}

/* Memory that operations need: in lockstep it is allocated although a failure was recorded, and a
 * failure to allocate it is final and not recorded. */
static void check_needed(struct comm *c)
{
  int many = c->size > 1;
  claim_begin("an operation in lockstep allocates memory in spite of an earlier failure");
  ok(comm_proceeds(c), "memory is allocated before a failure");
  comm_record(c, fail(ERR_INPUT, "a failure"));
  ok(!comm_proceeds(c), "memory is not allocated after a failure");
  comm_lockstep_begin(c);
  ok(comm_proceeds(c) == many, "memory is allocated after a failure in lockstep");
  ok(comm_record_needed(c, ERR_MEMORY) == (many ? ERR_MEMORY : OK),
     "a failure to allocate in lockstep is final");
  comm_lockstep_end(c);
  state_clear(c);
  ok(comm_record_needed(c, fail(ERR_MEMORY, "none")) == OK && comm_failure(c) == ERR_MEMORY,
     "a failure to allocate without lockstep is recorded");
  state_clear(c);
  claim_end();
}

/* A failure in a part is PENDING in its parent, on the ranks that know it, until the parent
 * agrees. */
static void check_part(struct comm *c)
{
  struct comm part = {0};
  int odd = c->rank % 2, fails = odd == (c->size > 1);
  claim_begin("a failure in a part is PENDING in its parent until the parent agrees");
  ok(comm_split(c, odd, &part) == OK, "split");
  for (int common = 0; common < 2; common++) {
    int first = fails && part.rank == 0, known = common ? fails : first;
    if (first) comm_record_at(&part, fail(ERR_INPUT, "of a part"), 3);
    if (common) comm_agree(&part, OK);
    ok(part.failure.condition == (common && fails ? COMM_FAILED
                                  : first         ? COMM_PENDING
                                                  : COMM_OK),
       "part, %d", common);
    ok(c->failure.condition == (known ? COMM_PENDING : COMM_OK), "parent, %d", common);
    ok(comm_defer(&part, ERR_INPUT) == (common && fails ? OK : ERR_INPUT), "defer, %d", common);
    gidx calls = part.calls, one = 1;
    if (common && fails) ok(comm_sum(&part, &one, 1) == ERR_INPUT && one == 1, "no operation");
    ok(part.calls == calls, "no exchange");
    int status = comm_agree(c, OK);
    ok(status == ERR_INPUT && !strcmp(status_message(), "of a part"), "agreed, %d: %s", common,
       status_message());
    ok(comm_sum(&part, &one, 1) == ERR_INPUT && one == 1,
       "a part of FAILED ranks has no operation");
    comm_recover(c);
    if (!common) comm_agree(&part, OK);
    comm_recover(&part);
    comm_recover(c);
    status_clear();
  }
  comm_agree(&part, fails ? fail(ERR_DEVICE, "no device") : OK);
  comm_recover(&part);
  status_clear();
  ok(c->failure.condition == COMM_OK && comm_agree(c, OK) == OK,
     "recovery of the part clears its failure in the parent, too");
  if (fails) comm_record(c, fail(ERR_IO, "of all"));
  comm_agree(&part, fails ? fail(ERR_DEVICE, "no device") : OK);
  comm_recover(&part);
  ok(comm_failure(c) == (fails ? ERR_IO : OK),
     "recovery of the part leaves a failure of all ranks");
  state_clear(c);
  ok(comm_unite(c, &part) == OK, "unite");
  claim_end();
}

/* comm_alone(): the communicator of a single rank shares the state of the communicator of all
 * ranks. */
static void check_alone(struct comm *c)
{
  struct comm part = {0};
  gidx one = c->rank;
  int last = c->rank == c->size - 1;
  claim_begin("the communicator of one rank shares the failure state of all ranks");
  ok(comm_alone(c, &part) == OK && comm_is_alone(&part) && comm_whole(&part) == c, "alone");
  ok(!comm_is_alone(c) && comm_whole(c) == c, "the communicator of all ranks is not alone");
  if (last) comm_record(&part, fail(ERR_INPUT, "alone"));
  ok(comm_failure(c) == (last ? ERR_INPUT : OK),
     "a failure that one rank records alone is recorded for all");
  ok(comm_sum(&part, &one, 1) == ERR_INPUT && one == c->rank,
     "all ranks learn of the failure at an operation of one rank");
  ok(comm_failure_is_common(&part) && comm_failure_is_common(c), "common");
  comm_recover(&part);
  ok(!comm_failure(c), "recovered");
  status_clear();
  ok(comm_unite(c, &part) == OK, "unite");
  claim_end();
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  log_setup(LOG_QUIET, c.rank);
  claim_begin(
      "every event in OK, PENDING and FAILED has the result of the table, whichever rank fails");
  table_check(&c, 0);
  claim_end();
  check_keys(&c);
  check_needed(&c);
  check_part(&c);
  check_alone(&c);
  claim_begin("every event in LOST has the result of the table");
  table_check(&c, 1);
  claim_end();
  ok(comm_close(&c) == OK, "close");
  return done_testing();
}
