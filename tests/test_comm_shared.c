/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: ranks of a node share memory.  It begins with zeros, on a 64-byte boundary.  After
 * comm_shared_sync() each rank reads what any rank wrote before it, even if one rank is late.
 * Memory that is not available is refused, with numbers, before it is allocated.
 * RUN: np=1 2 4 */
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/shared.h"
#include "tap.h"

enum { ITEMS = 100003, ROUNDS = 50, LATE_MICROSECONDS = 2000 };

/* In each round each rank writes its own items, then reads all items.  In each round a different
 * rank is late. */
static int rounds_run(struct comm *c, struct comm_shared *s)
{
  gidx *all = s->at, first, count;
  int good = 1;
  comm_partition(ITEMS, s->ranks, s->rank, &first, &count);
  for (gidx round = 1; round <= ROUNDS; round++) {
    if (round % s->ranks == s->rank) usleep(LATE_MICROSECONDS);
    for (gidx i = first; i < first + count; i++) all[i] = round * i;
    TRY(comm_shared_sync(c, s));
    if ((round + 1) % s->ranks == s->rank) usleep(LATE_MICROSECONDS);
    for (gidx i = 0; i < ITEMS; i++) good &= all[i] == round * i;
    TRY(comm_shared_sync(c, s));
  }
  return good ? OK : status_fail(ERR_ANSWER, __FILE__, __LINE__, "rank %d read others", c->rank);
}

static int is_zero(const struct comm_shared *s)
{
  const char *bytes = s->at;
  for (gidx i = 0; i < s->bytes; i++)
    if (bytes[i]) return 0;
  return 1;
}

static int memory_check(struct comm *c)
{
  struct comm_shared s;
  TRY(comm_agree(c, comm_shared_check(c, ITEMS * 8)));
  TRY(comm_shared_open(c, ITEMS * 8, &s));
  int good = is_zero(&s) && (uintptr_t)s.at % 64 == 0 && s.bytes == ITEMS * 8;
  good &= s.ranks == c->local_size && s.rank == c->local_rank && s.has_first;
  TRY(comm_shared_sync(c, &s));
  gidx all_good = good;
  TRY(comm_sum(c, &all_good, 1));
  ok(all_good == c->size, "shared memory is zero and aligned, on %lld of %d ranks",
     (long long)all_good, c->size);
  ok(comm_agree(c, rounds_run(c, &s)) == OK, "each rank reads what the others wrote %s",
     status_message());
  TRY(comm_shared_close(c, &s));
  ok(!s.state && !s.at, "closed");
  return comm_shared_close(c, &s);
}

/* Refused: more memory than any machine has, and more than the limit for a file. */
static void refusals_check(const struct comm *c)
{
  struct rlimit was, small = {1 << 20, RLIM_INFINITY};
  int status = comm_shared_check(c, (gidx)1 << 46);
  ok(status == ERR_MEMORY || c->local_rank, "more memory than a machine has is refused: %s",
     status_message());
  status_clear();
  getrlimit(RLIMIT_FSIZE, &was);
  small.rlim_max = was.rlim_max;
  setrlimit(RLIMIT_FSIZE, &small);
  status = comm_shared_check(c, 1 << 21);
  ok(status == (c->local_rank ? OK : ERR_MEMORY),
     "more memory than the limit of a file is refused: %s", status_message());
  status_clear();
  setrlimit(RLIMIT_FSIZE, &was);
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 99;
  tap_rank = c.rank;
  log_setup(LOG_QUIET, c.rank);
  claim_begin("memory that the ranks of a node share");
  if (memory_check(&c)) ok(0, "%s", status_message());
  claim_end();
  claim_begin("memory that is not available is refused");
  refusals_check(&c);
  claim_end();
  int code = done_testing();
  return comm_close(&c) ? 99 : code;
}
