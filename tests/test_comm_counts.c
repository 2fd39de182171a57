/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: if counts or offsets exceed MPI's int, messages go in parts, or as types that contain
 * their places; none is truncated.  This file replaces MPI calls by ones that move nothing, so only
 * counts are tested.
 * RUN: np=1 */
#include <limits.h>
#include <mpi.h>
#include <string.h>

#include "base/status.h"
#include "comm/mpi_impl.h"
#include "tap.h"

enum { RANKS = 3, HALF = 1 << 30 };
#define AT ((char *)4096) /* never read */

static int calls, good;
static gidx sum, moved[RANKS]; /* items that were broadcast so far; items of each rank so far */
static const idx *wanted;      /* [RANKS] items of each rank */

/* The number of the first item of a rank. */
static gidx start_of(int rank)
{
  gidx start = 0;
  for (int r = 0; r < rank; r++) start += wanted[r];
  return start;
}

/* For statuses: the status that is sent counts as the status of every rank. */
int MPI_Iallgather(const void *from, int n, MPI_Datatype type, void *to, int to_n,
                   MPI_Datatype to_type, MPI_Comm comm, MPI_Request *request)
{
  (void)type, (void)to_n, (void)to_type, (void)comm;
  size_t bytes = (size_t)n * sizeof(gidx);
  for (int r = 0; r < RANKS; r++) memcpy((char *)to + (size_t)r * bytes, from, bytes);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

/* A part of all items.  The items of a rank must follow those that it has moved before. */
int MPI_Iallgatherv(const void *from, int n, MPI_Datatype type, void *to, const int *counts,
                    const int *starts, MPI_Datatype to_type, MPI_Comm comm, MPI_Request *request)
{
  (void)from, (void)n, (void)type, (void)to_type, (void)comm;
  calls++;
  for (int r = 0; r < RANKS; moved[r] += counts[r], r++) {
    if (counts[r] == 0) continue;
    good &= counts[r] > 0 && starts[r] >= 0 && (gidx)starts[r] + counts[r] <= comm_most;
    good &= (char *)to + 8 * (gidx)starts[r] == AT + 8 * (start_of(r) + moved[r]);
  }
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

/* Does a type have `count` items of 8 bytes at this place? */
static int is_at(MPI_Datatype type, gidx count, MPI_Aint place)
{
  MPI_Aint at, bytes;
  MPI_Type_get_true_extent(type, &at, &bytes);
  return count == 0 ? bytes == 0 : at == place && bytes == 8 * count;
}

/* Messages of the other ranks.  All items of a rank must come as one type, at their place. */
int MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
  (void)tag, (void)comm;
  calls++;
  MPI_Aint place;
  MPI_Get_address(AT + 8 * start_of(from), &place);
  good &= to == MPI_BOTTOM && count == 1 && is_at(type, wanted[from], place);
  moved[from] = wanted[from];
  moved[0] = wanted[0]; /* rank 0 has its own items already */
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

/* 1: the counts wanted[] are those that are sent; 0: those that are received. */
static int is_sent;

int MPI_Ialltoallw(const void *from, const int *send, const int *send_starts,
                   const MPI_Datatype *send_types, void *to, const int *counts, const int *starts,
                   const MPI_Datatype *types, MPI_Comm comm, MPI_Request *request)
{
  (void)comm;
  calls++;
  good &= from == AT && to == AT;
  for (int r = 0; r < RANKS; r++) {
    good &= send[r] == 1 && counts[r] == 1 && send_starts[r] == 0 && starts[r] == 0;
    good &= is_at(is_sent ? send_types[r] : types[r], wanted[r], 8 * start_of(r));
    moved[r] = wanted[r];
  }
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

/* A part of items of 8 bytes.  Parts have to follow each other. */
int MPI_Ibcast(void *items, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request)
{
  (void)root, (void)comm;
  *request = MPI_REQUEST_NULL;
  if (type == MPI_CHAR) return MPI_SUCCESS; /* the message of a refusal */
  calls++;
  good &= count > 0 && (char *)items == AT + 8 * sum;
  sum += count;
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

/* Check that an operation was refused before any call. */
static void refused(int status, const char *what)
{
  ok(status == ERR_COMM && calls == 0 && strstr(status_message(), "more than one exchange carries"),
     "%s: status %d after %d calls, '%s'", what, status, calls, status_message());
  status_clear();
  calls = 0;
}

/* Set the counts that are to move, and forget what has moved. */
static const idx *want(const idx *counts)
{
  wanted = counts;
  good = 1;
  memset(moved, 0, sizeof moved);
  return counts;
}

/* Check that all items were moved to their places, in exactly `most` calls. */
static void taken(int status, int most, const char *what)
{
  int all = memcmp(moved, (gidx[]){wanted[0], wanted[1], wanted[2]}, sizeof moved) == 0;
  ok(status == OK && good && calls == most && all, "%s: status %d, %d calls, good=%d all=%d, '%s'",
     what, status, calls, good, all, status_message());
  status_clear();
  calls = 0;
}

static void test_broadcast(struct comm *c, gidx count)
{
  good = 1;
  sum = 0;
  int status = comm_broadcast(c, AT, count, 8);
  ok(status == OK && good && sum == count, "%lld of %lld items in %d parts", (long long)sum,
     (long long)count, calls);
  calls = 0;
}

int main(void)
{
  struct comm c;
  if (comm_open(&c) || c.size != 1) return 1;
  c.size = RANKS;
  comm_scratch_free(&c.state->scratch);
  if (comm_scratch_alloc(&c.state->scratch, RANKS)) return 1;
  const idx many[RANKS] = {HALF, HALF, HALF}, fit[RANKS] = {HALF, HALF - 1, 0};
  const idx few[RANKS] = {1, 1, 1}, most[RANKS] = {INT_MAX, 0, INT_MAX};
  claim_begin("an item of 2^31 bytes is refused");
  want(few);
  refused(comm_allgather(&c, AT, few, (size_t)INT_MAX + 1, AT), "allgather");
  refused(comm_gather(&c, AT, few, (size_t)INT_MAX + 1, AT), "gather");
  refused(comm_alltoallv(&c, AT, few, AT, few, (size_t)INT_MAX + 1), "alltoallv");
  refused(comm_broadcast(&c, AT, 2, (size_t)1 << 32), "a broadcast of 2^32 bytes an item");
  claim_end();
  claim_begin("more than 2^31 - 1 items of all ranks arrive in order, in one or several parts");
  taken(comm_allgather(&c, AT, want(fit), 8, AT), 1, "allgather of as many as MPI counts");
  taken(comm_allgather(&c, AT, want(many), 8, AT), 2, "allgather");
  taken(comm_allgather(&c, AT, want(most), 8, AT), 2, "allgather, as many as possible");
  taken(comm_gather(&c, AT, want(many), 8, AT), 2, "gather");
  taken(comm_gather(&c, AT, want(most), 8, AT), 1, "gather, as many as possible");
  is_sent = 1;
  taken(comm_alltoallv(&c, AT, want(many), AT, few, 8), 1, "sent by alltoallv");
  taken(comm_alltoallv(&c, AT, want(most), AT, few, 8), 1,
        "sent by alltoallv, as many as possible");
  is_sent = 0;
  taken(comm_alltoallv(&c, AT, few, AT, want(many), 8), 1, "received by alltoallv");
  claim_end();
  claim_begin("a broadcast of any length goes in parts");
  test_broadcast(&c, 1);
  test_broadcast(&c, INT_MAX);
  test_broadcast(&c, 6 * (gidx)HALF + 5);
  claim_end();
  c.size = 1;
  ok(comm_close(&c) == OK, "close");
  return done_testing();
}
