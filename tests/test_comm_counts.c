/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: counts and offsets beyond MPI's int are an error, or go in parts; none is cut.  The calls
 * of MPI are ours, and move nothing: a test in counts alone.
 * RUN: np=1 */
#include <limits.h>
#include <mpi.h>
#include <string.h>

#include "base/status.h"
#include "comm/comm.h"
#include "tap.h"

enum { RANKS = 3, HALF = 1 << 30 };
#define AT ((char *)4096) /* never looked at */

static int calls, good;
static int last_offset;
static gidx sum;

/* Of statuses: that of each rank is the one that is sent. */
int MPI_Iallgather(const void *from, int n, MPI_Datatype type, void *to, int to_n,
                   MPI_Datatype to_type, MPI_Comm comm, MPI_Request *request)
{
  (void)type, (void)to_n, (void)to_type, (void)comm;
  size_t bytes = (size_t)n * sizeof(gidx);
  for (int r = 0; r < RANKS; r++) memcpy((char *)to + (size_t)r * bytes, from, bytes);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

int MPI_Iallgatherv(const void *from, int n, MPI_Datatype type, void *to, const int *counts,
                    const int *starts, MPI_Datatype to_type, MPI_Comm comm, MPI_Request *request)
{
  (void)from, (void)n, (void)type, (void)to, (void)counts, (void)to_type, (void)comm;
  calls++;
  last_offset = starts[RANKS - 1];
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

int MPI_Igatherv(const void *from, int n, MPI_Datatype type, void *to, const int *counts,
                 const int *starts, MPI_Datatype to_type, int root, MPI_Comm comm,
                 MPI_Request *request)
{
  (void)root;
  return MPI_Iallgatherv(from, n, type, to, counts, starts, to_type, comm, request);
}

int MPI_Ialltoallv(const void *from, const int *send, const int *send_starts, MPI_Datatype type,
                   void *to, const int *counts, const int *starts, MPI_Datatype to_type,
                   MPI_Comm comm, MPI_Request *request)
{
  (void)send, (void)send_starts;
  return MPI_Iallgatherv(from, 0, type, to, counts, starts, to_type, comm, request);
}

/* Parts of 8 bytes an item have to follow each other. */
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

/* Was it refused, before a call? */
static void refused(int status, const char *what)
{
  ok(status == ERR_COMM && calls == 0 && strstr(status_message(), "more than one exchange carries"),
     "%s: status %d after %d calls, '%s'", what, status, calls, status_message());
  status_clear();
  calls = 0;
}

static void taken(int status, const char *what)
{
  ok(status == OK && calls == 1 && last_offset == INT_MAX, "%s: status %d, offset %d, '%s'", what,
     status, last_offset, status_message());
  status_clear();
  calls = last_offset = 0;
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
  const idx many[RANKS] = {HALF, HALF, HALF}, fit[RANKS] = {HALF, HALF - 1, 0};
  const idx few[RANKS] = {1, 1, 1};
  claim_begin("more than 2^31 - 1 items are refused, and so are longer items");
  refused(comm_allgather(&c, AT, many, 8, AT), "allgather");
  refused(comm_gather(&c, AT, many, 8, AT), "gather");
  refused(comm_alltoallv(&c, AT, many, AT, few, 8), "sent by alltoallv");
  refused(comm_alltoallv(&c, AT, few, AT, many, 8), "received by alltoallv");
  refused(comm_allgather(&c, AT, few, (size_t)INT_MAX + 1, AT), "an item of 2^31 bytes");
  refused(comm_broadcast(&c, AT, 2, (size_t)1 << 32), "a broadcast of 2^32 bytes an item");
  claim_end();
  claim_begin("2^31 - 1 items are taken, with the right offsets");
  taken(comm_allgather(&c, AT, fit, 8, AT), "allgather");
  taken(comm_gather(&c, AT, fit, 8, AT), "gather");
  taken(comm_alltoallv(&c, AT, few, AT, fit, 8), "alltoallv");
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
