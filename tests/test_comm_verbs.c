/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: each collective operation of comm/comm.h moves what it promises, with uneven and empty
 * shares, and in pieces, as between nodes and in containers.  Waiting for a late rank takes no
 * core.  With SPEED=1, on a quiet machine: pieces move about as fast as by MPI with polling.
 * RUN: np=1 2 3 5 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/mpi_impl.h"
#include "tap.h"

enum { N = 11, MANY = 1 << 20, TRIES = 20 };
/* An operation takes at most SLOWER times the time of MPI with polling, plus ASIDE.  Sleeping
 * between the pieces took 20 to 40 times as long, on two idle cores. */
#define SLOWER 5
#define ASIDE 0.02 /* seconds */

static void test_share(int size)
{
  gidx next = 0, first, count;
  int good = 1;
  for (gidx n = 0; n < 30; n++) {
    next = 0;
    for (int r = 0; r < size; r++) {
      comm_partition(n, size, r, &first, &count);
      good &= first == next && count >= n / size && count <= n / size + 1;
      next += count;
    }
    good &= next == n;
  }
  ok(good, "shares are consecutive, even and complete");
}

static void counts_fill(const struct comm *c, gidx n, idx *counts)
{
  for (int r = 0; r < c->size; r++) {
    gidx first, count;
    comm_partition(n, c->size, r, &first, &count);
    counts[r] = (idx)count;
  }
}

static void test_gather(struct comm *c, gidx n)
{
  idx counts[16], all[N] = {0}, root[N] = {0}, mine[N] = {0}, good = 1;
  gidx first, count;
  comm_partition(n, c->size, c->rank, &first, &count);
  for (gidx i = 0; i < count; i++) mine[i] = (idx)(100 + first + i);
  counts_fill(c, n, counts);
  int status = comm_allgather(c, mine, counts, sizeof *mine, all);
  status |= comm_gather(c, mine, counts, sizeof *mine, c->rank ? NULL : root);
  for (idx i = 0; i < n; i++) good &= all[i] == 100 + i && (c->rank || root[i] == 100 + i);
  ok(!status && good, "%lld items", (long long)n);
}

/* Rank r sends (r + q) % 3 items r * 1000 + q * 10 + i to rank q. */
static void test_exchange(struct comm *c)
{
  idx out[64], in[64], send[16], receive[16], n = 0, at = 0, good = 1;
  for (int q = 0; q < c->size; q++) {
    send[q] = receive[q] = (c->rank + q) % 3;
    for (idx i = 0; i < send[q]; i++) out[n++] = c->rank * 1000 + q * 10 + i;
  }
  int status = comm_alltoallv(c, out, send, in, receive, sizeof *out);
  for (int q = 0; q < c->size; q++)
    for (idx i = 0; i < receive[q]; i++) good &= in[at++] == q * 1000 + c->rank * 10 + i;
  ok(!status && good, "alltoallv gives each rank what the others sent it");
}

/* Empty memory may begin at the address of other memory.  The first rank sends its items and
 * receives nothing at the same address; the last rank receives items and sends nothing from it. */
static void test_nothing(struct comm *c)
{
  idx items[16] = {1, 2, 3}, none[16] = {0}, some[16] = {0}, last = c->size - 1;
  int moved = 1;
  if (c->rank == 0) some[last] = 3;
  if (c->rank == last) some[0] = 3;
  int sends = c->rank == 0, receives = c->rank == last;
  for (int turn = 0; turn < 2; turn++) {
    if (!sends) memset(items, 0, sizeof items);
    moved &= !comm_alltoallv(c, items, sends ? some : none, c->size > 1 ? items : items + 8,
                             receives ? some : none, sizeof *items);
    for (int i = 0; i < 3 && receives; i++) moved &= items[c->size > 1 ? i : 8 + i] == 1 + i;
  }
  gidx sum = 1;
  ok(moved && !comm_sum(c, &sum, 1) && sum == c->size,
     "a rank may send nothing from an address at which it receives");
}

enum verb { GATHER, GATHER_ALL, EXCHANGE, BROADCAST, SUM, VERBS };

/* Move many items by an operation.  1: they are right. */
static int many_move(struct comm *c, enum verb verb, gidx *mine, gidx *all)
{
  idx counts[16], back[16] = {0};
  gidx first, count, good = 1;
  comm_partition(MANY, c->size, c->rank, &first, &count);
  counts_fill(c, MANY, counts);
  int whole = verb == EXCHANGE || verb == SUM || (verb == BROADCAST && c->rank == 0);
  for (gidx i = 0; i < (whole ? MANY : count); i++) mine[i] = whole ? i : first + i;
  for (int r = 0; r < c->size; r++) back[r] = (idx)count;
  memset(all, 0x55, MANY * sizeof *all);
  int status = verb == GATHER       ? comm_gather(c, mine, counts, sizeof *mine, all)
               : verb == GATHER_ALL ? comm_allgather(c, mine, counts, sizeof *mine, all)
               : verb == EXCHANGE   ? comm_alltoallv(c, mine, counts, all, back, sizeof *mine)
               : verb == BROADCAST  ? comm_broadcast(c, mine, MANY, sizeof *mine)
                                    : comm_sum(c, mine, MANY);
  const gidx *got = verb == BROADCAST || verb == SUM ? mine : all;
  for (gidx i = 0; i < MANY && !(verb == GATHER && c->rank); i++) {
    if (verb == EXCHANGE && i >= c->size * count) break;
    good &= got[i] == (verb == EXCHANGE ? first + i % count : verb == SUM ? c->size * i : i);
  }
  return !status && good;
}

/* Wait for all ranks.  Another thread of this process uses MPI, too, for signs of life: hence the
 * lock. */
static void ranks_wait(struct comm *c)
{
  pthread_mutex_lock(c->state->mpi);
  MPI_Barrier(MPI_COMM_WORLD);
  pthread_mutex_unlock(c->state->mpi);
}

/* Seconds of an operation of comm, counted from when all ranks are ready; mpi_time() measures MPI's
 * own operation in the same way. */
static double verb_time(struct comm *c, enum verb verb, gidx *mine)
{
  ranks_wait(c);
  double begun = log_seconds();
  int status = verb == SUM ? comm_sum(c, mine, MANY) : comm_broadcast(c, mine, MANY, sizeof *mine);
  return status ? INFINITY : log_seconds() - begun;
}

static double mpi_time(struct comm *c, enum verb verb, gidx *mine)
{
  ranks_wait(c);
  pthread_mutex_lock(c->state->mpi);
  double begun = log_seconds();
  MPI_Request request;
  if (verb == SUM)
    MPI_Iallreduce(MPI_IN_PLACE, mine, MANY, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
  else
    MPI_Ibcast(mine, MANY, MPI_INT64_T, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  pthread_mutex_unlock(c->state->mpi);
  return log_seconds() - begun;
}

/* Compare the best times of some tries, because other jobs may disturb some.  All ranks stop
 * together. */
static void test_speed(struct comm *c, enum verb verb, gidx *mine)
{
  double best = INFINITY, best_mpi = INFINITY;
  gidx slow = 1;
  for (int i = 0; i < TRIES && slow; i++) {
    double seconds = verb_time(c, verb, mine), mpi = mpi_time(c, verb, mine);
    if (seconds < best) best = seconds;
    if (mpi < best_mpi) best_mpi = mpi;
    slow = best > SLOWER * best_mpi + ASIDE;
    comm_sum(c, &slow, 1);
  }
  printf("# %.3f s, MPI %.3f s\n", best, best_mpi);
  ok(!slow, "%s of %zu bytes at MPI's speed", verb == SUM ? "sum" : "broadcast",
     MANY * sizeof *mine);
}

/* While the others wait for a late rank they use no core. */
static void test_late(struct comm *c)
{
  struct timespec second = {1, 0}, begun, ended;
  gidx value = 1;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
  if (c->rank == 0) nanosleep(&second, NULL);
  int status = comm_sum(c, &value, 1);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
  double busy =
      (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec);
  ok(!status && busy < 0.3, "waiting takes %.3f s of a core", busy);
}

static void test_many(struct comm *c)
{
  static const char *const names[] = {"gather", "gather_all", "exchange", "broadcast", "sum"};
  gidx *mine = malloc(MANY * sizeof *mine), *all = malloc((MANY + 16) * sizeof *all);
  claim_begin("each verb moves %d items", MANY);
  for (int verb = 0; verb < VERBS; verb++) ok(many_move(c, verb, mine, all), "%s", names[verb]);
  claim_end();
  memset(mine, 0, MANY * sizeof *mine);
  const char *speed = getenv("SPEED");
  for (int verb = BROADCAST; speed && *speed && verb <= SUM; verb++) test_speed(c, verb, mine);
  free(mine);
  free(all);
}

/* Move many items with few per call of MPI, as if there were more items than MPI can count. */
static void test_parts(struct comm *c)
{
  gidx most = comm_most, *mine = malloc(MANY * sizeof *mine),
       *all = malloc((MANY + 16) * sizeof *all);
  claim_begin("more items than a call can carry go in parts");
  for (comm_most = 1; comm_most < 6; comm_most++) {
    test_gather(c, 0);
    test_gather(c, 1);
    test_gather(c, N);
    test_exchange(c);
  }
  comm_most = MANY / 7;
  for (int verb = 0; verb < VERBS; verb++)
    ok(many_move(c, verb, mine, all), "verb %d in parts of %lld", verb, (long long)comm_most);
  claim_end();
  comm_most = most;
  free(mine);
  free(all);
}

static void test_sums(struct comm *c)
{
  gidx values[3] = {c->rank, 1, (gidx)1 << 62}, all[16];
  double reals[16];
  idx word = c->rank ? 0 : 77;
  int status = comm_sum(c, values, 3);
  ok(!status && values[0] == c->size * (c->size - 1) / 2 && values[1] == c->size, "sum");
  status = comm_allgather_long(c, 5 * c->rank, all) | comm_allgather_real(c, 0.5 * c->rank, reals);
  ok(!status && all[c->size - 1] == 5 * (c->size - 1) && reals[c->size - 1] == 0.5 * (c->size - 1),
     "allgather of one number of each rank");
  status = comm_broadcast(c, &word, 1, sizeof word);
  ok(!status && word == 77, "broadcast");
}

/* Clear the failure that all ranks know. */
static void state_clear(struct comm *c)
{
  comm_recover(c);
  status_clear();
}

static void test_agree(struct comm *c)
{
  ok(comm_agree(c, OK) == OK && !comm_failure_is_common(c),
     "an agreement without a failure reports none");
  int last = c->rank == c->size - 1;
  int status = last ? status_fail(ERR_INPUT, __FILE__, __LINE__, "rank %d fails", c->rank) : OK;
  status = comm_agree(c, status);
  char want[32];
  snprintf(want, sizeof want, "rank %d fails", c->size - 1);
  ok(status == ERR_INPUT && comm_failure_is_common(c) && !strcmp(status_message(), want),
     "a failure of one rank is known to all ranks");
  state_clear(c);
  status = status_fail(c->rank ? ERR_IO : ERR_MEMORY, __FILE__, __LINE__, "rank %d", c->rank);
  status = comm_agree_at(c, status, -c->rank);
  snprintf(want, sizeof want, "rank %d", c->size - 1);
  ok(status == (c->size > 1 ? ERR_IO : ERR_MEMORY) && !strcmp(status_message(), want),
     "of failures on all ranks the one with the smallest key is reported");
  state_clear(c);
}

/* Call one of the operations that report a failure.  Without a failure they change out[]. */
static int verb_call(struct comm *c, int verb, gidx *out)
{
  idx ones[16];
  for (int r = 0; r < c->size; r++) ones[r] = 1;
  if (verb == 0) return comm_allgather(c, out + c->rank, ones, sizeof *out, out);
  if (verb == 1) return comm_gather(c, out + c->rank, ones, sizeof *out, out);
  if (verb == 2) return comm_alltoallv(c, out, ones, out + 16, ones, sizeof *out);
  if (verb == 3) return comm_broadcast(c, out, 16, sizeof *out);
  if (verb == 4) return comm_sum(c, out, 16);
  if (verb == 5) return comm_or(c, (uint64_t *)out, 16);
  return comm_agree(c, OK);
}

/* One rank fails, twice.  The next operation reports the first failure on all ranks and moves
 * nothing; the one after it works. */
static void test_local_failure(struct comm *c)
{
  enum { OPERATIONS = 7, MOST = 32 };
  int failing = c->size / 2, all_know = 1, none_moved = 1, works = 1;
  for (int verb = 0; verb < OPERATIONS; verb++) {
    gidx out[MOST], was[MOST];
    char want[32];
    for (int i = 0; i < MOST; i++) out[i] = was[i] = 1000 * c->rank + i;
    comm_record(c, OK);
    if (c->rank == failing) {
      comm_record(c, status_fail(ERR_MEMORY, __FILE__, __LINE__, "verb %d", verb));
      comm_record(c, status_fail(ERR_IO, __FILE__, __LINE__, "it goes on"));
    }
    snprintf(want, sizeof want, "verb %d", verb);
    int status = verb_call(c, verb, out);
    all_know &=
        status == ERR_MEMORY && comm_failure_is_common(c) && !strcmp(status_message(), want);
    none_moved &= !memcmp(out, was, sizeof out);
    state_clear(c);
    works &= verb_call(c, verb, out) == OK && !comm_failure(c);
  }
  ok(all_know, "all ranks learn of the first failure of one rank");
  ok(none_moved, "an operation that reports a failure moves nothing");
  ok(works, "the operation after the report works");
}

/* In lockstep a rank that failed goes on.  What operations move is right, and the next agreement
 * reports the failure. */
static void test_met(struct comm *c)
{
  int failing = c->size / 2, moved = 1, known = 1, parts = c->size > 1;
  for (int verb = 0; verb < 3; verb++) { /* allgather, gather, alltoallv */
    gidx out[32];
    for (int i = 0; i < 32; i++) out[i] = 1000 * c->rank + i;
    comm_lockstep_begin(c);
    if (c->rank == failing)
      comm_record(c, status_fail(ERR_MEMORY, __FILE__, __LINE__, "rank %d fails", failing));
    if (parts) moved &= verb_call(c, verb, out) == OK;
    for (int r = 0; r < c->size && parts && (verb != 1 || c->rank == 0); r++)
      moved &= out[verb == 2 ? 16 + r : r] == 1000 * r + (verb == 2 ? c->rank : r);
    comm_lockstep_end(c);
    known &= comm_agree(c, OK) == ERR_MEMORY && comm_failure_is_common(c);
    state_clear(c);
  }
  ok(moved, "operations in lockstep move items in spite of a failure");
  ok(known, "the agreement after lockstep reports the failure");
}

/* Ranks with even numbers form a part, and so do the others.  Operations of a part are among its
 * ranks only, and the parts need not do the same. */
static void test_split(struct comm *c)
{
  struct comm part = {0};
  idx counts[16], all[16] = {0}, good = 1;
  gidx value = 1 + c->rank;
  int odd = c->rank % 2, want = odd ? c->size / 2 : (c->size + 1) / 2;
  claim_begin("a part of the ranks has the verbs of all");
  ok(comm_split(c, odd, &part) == OK, "split");
  ok(part.size == want && part.rank == c->rank / 2, "rank %d of %d", part.rank, part.size);
  for (int r = 0; r < part.size; r++) counts[r] = 1;
  for (int turn = 0; turn < 1 + odd; turn++)
    good &= !comm_allgather(&part, &c->rank, counts, sizeof *all, all);
  for (int r = 0; r < part.size; r++) good &= all[r] == 2 * r + odd;
  gidx sum = value;
  good &= !comm_sum(&part, &sum, 1) && sum == (odd ? want * (want + 1) : want * want);
  ok(good, "allgather and sum");
  int status = odd ? status_fail(ERR_INPUT, __FILE__, __LINE__, "odd") : OK;
  status = comm_agree(&part, status);
  ok(status == (odd ? ERR_INPUT : OK), "a failure is known to its part");
  status = comm_agree(c, status);
  ok(status == (c->size > 1 ? ERR_INPUT : OK),
     "after an agreement of all ranks a failure of a part is known to all");
  state_clear(&part);
  state_clear(c);
  double before = c->bytes, own = part.bytes;
  ok(comm_unite(c, &part) == OK && c->bytes == before + own && !part.state, "unite");
  ok(comm_unite(c, &part) == OK, "nothing to unite");
  claim_end();
}

/* Ranks that do the same work, each by itself.  Only agreements and broadcasts involve all
 * ranks. */
static void test_alone(struct comm *c)
{
  struct comm part = {0};
  idx one = 1, got = -1, told = 100 + c->rank, last = c->rank == c->size - 1;
  gidx sum = c->rank;
  uint64_t flags = (uint64_t)1 << c->rank, bits = flags;
  char want[32];
  claim_begin("a rank alone agrees with all, and shares nothing else");
  ok(comm_alone(c, &part) == OK && part.size == 1 && part.rank == 0, "alone");
  ok(!comm_allgather(&part, &c->rank, &one, sizeof one, &got) && got == c->rank, "allgather");
  ok(!comm_sum(&part, &sum, 1) && sum == c->rank, "sum");
  ok(!comm_or(&part, &bits, 1) && bits == flags, "or");
  ok(!comm_broadcast(&part, &told, 1, sizeof told) && told == 100, "broadcast");
  ok(!comm_agree_flags(&part, OK, 0, &flags) && flags == ((uint64_t)1 << c->size) - 1, "flags");
  snprintf(want, sizeof want, "rank %d fails", c->size - 1);
  for (int turn = 0; turn < 3; turn++) {
    if (last) comm_record(&part, status_fail(ERR_INPUT, __FILE__, __LINE__, "%s", want));
    int status = turn == 0   ? comm_agree(&part, OK)
                 : turn == 1 ? comm_sum(&part, &sum, 1)
                             : comm_broadcast(&part, &told, 1, sizeof told);
    ok(status == ERR_INPUT && comm_failure_is_common(c) && !strcmp(status_message(), want),
       "a failure of one is known to all, turn %d: %s", turn, status_message());
    state_clear(&part);
    ok(!comm_failure(&part) && !comm_failure(c), "a failure is over after recovery");
  }
  ok(comm_unite(c, &part) == OK && !part.state, "unite");
  claim_end();
}

int main(void)
{
  struct comm c;
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  test_many(&c);
  test_late(&c);
  test_share(c.size);
  claim_begin("allgather and gather give all items in order");
  test_gather(&c, 0);
  test_gather(&c, 1);
  test_gather(&c, N);
  claim_end();
  test_exchange(&c);
  test_nothing(&c);
  test_parts(&c);
  test_sums(&c);
  test_agree(&c);
  claim_begin("the next operation reports a failure of one rank on all ranks");
  test_local_failure(&c);
  claim_end();
  claim_begin("in lockstep, ranks continue after a failure until they agree");
  test_met(&c);
  claim_end();
  test_split(&c);
  test_alone(&c);
  ok(comm_close(&c) == OK, "close");
  return done_testing();
}
