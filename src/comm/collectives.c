/* SPDX-License-Identifier: BSD-3-Clause
 * Collective operations, by the non-blocking ones of MPI-3.  Operations on arrays, except
 * comm_gather_parts(), first wait for all ranks (comm_meet()): it may take long until all arrive,
 * and polling should begin only then.  In lockstep they do not wait, since the ranks arrive
 * together. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "comm/mpi_impl.h"

enum { MAX_SUM = 1 << 24 };            /* values that are joined at a time */
enum { PARTS_TAG = 1, MAX_PARTS = 8 }; /* of gathered parts */

gidx comm_most = INT_MAX;

int comm_count(gidx n, idx *out)
{
  CHECK(n >= 0 && n <= INT_MAX, ERR_COMM,
        "%lld items are more than one exchange carries, %d: use more ranks or smaller blocks",
        (long long)n, INT_MAX);
  *out = (idx)n;
  return OK;
}

/* *type <- an MPI datatype of `unit` bytes, so that counts are items and stay below 2^31. */
static int unit_type(struct comm *c, size_t unit, MPI_Datatype *type)
{
  int bytes = 0;
  TRY(comm_count((gidx)unit, &bytes));
  pthread_mutex_lock(c->state->mpi);
  MPI_Type_contiguous(bytes, MPI_BYTE, type);
  MPI_Type_commit(type);
  pthread_mutex_unlock(c->state->mpi);
  return OK;
}

static void unit_free(struct comm *c, MPI_Datatype *type)
{
  pthread_mutex_lock(c->state->mpi);
  MPI_Type_free(type);
  pthread_mutex_unlock(c->state->mpi);
}

/* *total <- the sum of the counts.  If comm_proceeds() is 0, a rank has failed and its counts may
 * be invalid: no count is read, and *total is 0. */
static int counts_add(const struct comm *c, const idx *counts, gidx *total)
{
  int proceeds = comm_proceeds(c);
  *total = 0;
  for (int r = 0; r < c->size && proceeds; r++) {
    CHECK(counts[r] >= 0, ERR_INTERNAL, "rank %d has %d items", r, counts[r]);
    *total += counts[r];
  }
  return OK;
}

void comm_partition(gidx n, int size, int rank, gidx *first, gidx *count)
{
  gidx each = n / size, more = n % size;
  *first = each * rank + imin(rank, more);
  *count = each + (rank < more);
}

/* Of items first .. first + n - 1 of all ranks: of[r] <- how many rank r has; starts[r] <- where
 * they begin, counted from `first`. */
static void part_cut(const idx *counts, int size, gidx first, gidx n, int *of, int *starts)
{
  gidx begin = 0;
  for (int r = 0; r < size; begin += counts[r++]) {
    gidx low = imax(begin, first), high = imin(begin + counts[r], first + n);
    of[r] = (int)imax(high - low, 0);
    starts[r] = (int)(imin(low, first + n) - first);
  }
}

static int items_broadcast(struct comm *c, int root, gidx count, size_t unit, char *items)
{
  MPI_Datatype type;
  TRY(unit_type(c, unit, &type));
  for (gidx first = 0; first < count; first += comm_most) {
    int part = (int)imin(count - first, comm_most);
    POST_BYTES((double)unit * (double)part, MPI_Ibcast(items + (size_t)first * unit, part, type,
                                                       root, c->state->world, &request_));
  }
  unit_free(c, &type);
  return OK;
}

/* The only rank that has items; -1: there are several, or none. */
static int only_owner(const struct comm *c, const idx *counts, gidx total)
{
  for (int r = 0; r < c->size && total; r++)
    if (counts[r]) return counts[r] == total ? r : -1;
  return -1;
}

/* All-gather in place: all[] has the items of this rank at their position.  A call of MPI takes at
 * most comm_most consecutive items, so that offsets fit MPI's int.  If only one rank has items, it
 * broadcasts them: in an all-gather it would itself send them to every other rank. */
static int parts_allgather(struct comm *c, const idx *counts, gidx total, size_t unit, char *all)
{
  int owner = only_owner(c, counts, total);
  if (owner >= 0) return items_broadcast(c, owner, total, unit, all);
  MPI_Datatype type;
  int *of = c->state->scratch.ints, *starts = of + c->size;
  TRY(unit_type(c, unit, &type));
  for (gidx first = 0, n; first < total; first += n) {
    n = imin(total - first, comm_most);
    part_cut(counts, c->size, first, n, of, starts);
    POST_BYTES((double)unit * (double)n,
               MPI_Iallgatherv(MPI_IN_PLACE, 0, type, all + (size_t)first * unit, of, starts, type,
                               c->state->world, &request_));
  }
  unit_free(c, &type);
  return OK;
}

int comm_allgather(struct comm *c, const void *mine, const idx *counts, size_t unit, void *all)
{
  gidx total = 0, first = 0;
  TRY(comm_meet(c, counts_add(c, counts, &total)));
  for (int r = 0; r < c->rank; r++) first += counts[r];
  char *place = (char *)all + (size_t)first * unit;
  if (mine != place) memcpy(place, mine, (size_t)counts[c->rank] * unit);
  if (c->size > 1) TRY(parts_allgather(c, counts, total, unit, all));
  c->bytes += (double)unit * (double)(total - counts[c->rank]);
  return OK;
}

/* *type <- an MPI datatype of items of all parts, at their positions: on rank 0 the items of rank
 * r, on other ranks their own items.  *bytes <- their length. */
static int parts_type(struct comm *c, const struct comm_part *parts, int count, int r,
                      MPI_Datatype *type, double *bytes)
{
  int lengths[MAX_PARTS];
  MPI_Aint places[MAX_PARTS];
  MPI_Datatype types[MAX_PARTS];
  *bytes = 0;
  for (int i = 0; i < count; i++) {
    const struct comm_part *p = &parts[i];
    gidx start = 0;
    for (int q = 0; q < r && c->rank == 0; q++) start += p->counts[q];
    const char *at = c->rank ? p->mine : (char *)p->all + (size_t)start * p->unit;
    TRY(unit_type(c, p->unit, &types[i]));
    TRY_MPI(MPI_Get_address(at, &places[i]));
    lengths[i] = p->counts[r];
    *bytes += (double)p->unit * p->counts[r];
  }
  pthread_mutex_lock(c->state->mpi);
  int error = MPI_Type_create_struct(count, lengths, places, types, type);
  if (!error) error = MPI_Type_commit(type);
  for (int i = 0; i < count; i++) MPI_Type_free(&types[i]);
  pthread_mutex_unlock(c->state->mpi);
  TRY_MPI(error);
  return OK;
}

/* Post the message of rank r: its sending on rank r, its receiving on rank 0.  *bytes <- the length
 * of the message; 0: there is none. */
static int parts_post(struct comm *c, const struct comm_part *parts, int count, int r,
                      MPI_Request *request, double *bytes)
{
  MPI_Datatype type;
  TRY(parts_type(c, parts, count, r, &type, bytes));
  pthread_mutex_lock(c->state->mpi);
  int error = OK;
  if (*bytes > 0)
    error = c->rank ? MPI_Isend(MPI_BOTTOM, 1, type, 0, PARTS_TAG, c->state->world, request)
                    : MPI_Irecv(MPI_BOTTOM, 1, type, r, PARTS_TAG, c->state->world, request);
  MPI_Type_free(&type);
  pthread_mutex_unlock(c->state->mpi);
  TRY_MPI(error);
  return OK;
}

/* Rank 0 receives from all others, in any order. */
static int parts_receive(struct comm *c, const struct comm_part *parts, int count)
{
  double begun = log_seconds(), total = 0;
  if (c->size == 1) return OK;
  MPI_Request *requests = c->state->scratch.requests;
  double *bytes = c->state->scratch.bytes;
  for (int r = 1; r < c->size; r++) {
    TRY(parts_post(c, parts, count, r, &requests[r], &bytes[r]));
    total += bytes[r];
  }
  for (int r = 1; r < c->size; r++)
    if (bytes[r] > 0) TRY(mpi_wait(c, &requests[r], begun, total));
  c->bytes += total;
  return OK;
}

int comm_gather_parts(struct comm *c, const struct comm_part *parts, int count)
{
  double begun = log_seconds(), bytes;
  MPI_Request request;
  CHECK(count <= MAX_PARTS, ERR_INTERNAL, "%d parts", count);
  TRY(comm_check(c));
  if (c->rank == 0) {
    for (int i = 0; i < count; i++)
      if (parts[i].mine != parts[i].all && parts[i].counts[0])
        memcpy(parts[i].all, parts[i].mine, (size_t)parts[i].counts[0] * parts[i].unit);
    c->calls += c->size > 1;
    return parts_receive(c, parts, count);
  }
  c->calls++;
  TRY(parts_post(c, parts, count, c->rank, &request, &bytes));
  return bytes > 0 ? mpi_wait(c, &request, begun, bytes) : OK;
}

int comm_gather(struct comm *c, const void *mine, const idx *counts, size_t unit, void *all)
{
  const struct comm_part part = {mine, all, counts, unit};
  gidx total = 0;
  TRY(comm_meet(c, counts_add(c, counts, &total)));
  return comm_gather_parts(c, &part, 1);
}

/* What a rank sends to all ranks, or receives from them.  types[r] is a datatype of all items that
 * go to rank r, or come from it.  Rank r's items begin at item places[r]; if places is NULL, the
 * items of all ranks stand one after another.  MPI moves one element of types[r], at offset 0, so
 * positions may exceed MPI's int.  scattered_free() frees the types. */
struct scattered {
  MPI_Datatype *types;
  int *ones, *zeros;
};

static int scattered_make(struct comm *c, const idx *counts, const gidx *places,
                          MPI_Datatype unit_type, size_t unit, struct scattered *s)
{
  MPI_Aint at = 0;
  int error = 0;
  pthread_mutex_lock(c->state->mpi);
  for (int r = 0; r < c->size && !error; at += (MPI_Aint)unit * counts[r++]) {
    if (places) at = (MPI_Aint)unit * places[r];
    s->ones[r] = 1;
    s->zeros[r] = 0;
    error = MPI_Type_create_hindexed_block(1, counts[r], &at, unit_type, &s->types[r]);
    if (!error) error = MPI_Type_commit(&s->types[r]);
  }
  pthread_mutex_unlock(c->state->mpi);
  TRY_MPI(error);
  return OK;
}

static void scattered_free(struct comm *c, struct scattered *s)
{
  pthread_mutex_lock(c->state->mpi);
  for (int r = 0; r < c->size; r++) MPI_Type_free(&s->types[r]);
  pthread_mutex_unlock(c->state->mpi);
}

/* Exchange one message per pair of ranks. */
static int pairs_exchange(struct comm *c, const void *mine, const idx *send_counts, void *theirs,
                          const idx *recv_counts, size_t unit, const struct comm_offsets *offsets,
                          double bytes)
{
  int size = c->size, *ints = c->state->scratch.ints;
  MPI_Datatype *types = c->state->scratch.types;
  struct scattered out = {types, ints, ints + size};
  struct scattered in = {types + size, ints + 2 * size, ints + 3 * size};
  MPI_Datatype type;
  TRY(unit_type(c, unit, &type));
  TRY(scattered_make(c, send_counts, offsets ? offsets->send : NULL, type, unit, &out));
  TRY(scattered_make(c, recv_counts, offsets ? offsets->receive : NULL, type, unit, &in));
  POST_BYTES(bytes, MPI_Ialltoallw(mine, out.ones, out.zeros, out.types, theirs, in.ones, in.zeros,
                                   in.types, c->state->world, &request_));
  scattered_free(c, &out);
  scattered_free(c, &in);
  unit_free(c, &type);
  return OK;
}

int comm_alltoallv(struct comm *c, const void *mine, const idx *send_counts, void *theirs,
                   const idx *recv_counts, size_t unit)
{
  return comm_alltoallv_at(c, mine, send_counts, theirs, recv_counts, unit, NULL);
}

int comm_alltoallv_at(struct comm *c, const void *mine, const idx *send_counts, void *theirs,
                      const idx *recv_counts, size_t unit, const struct comm_offsets *offsets)
{
  gidx sent = 0, total = 0;
  int status = counts_add(c, send_counts, &sent);
  if (!status) status = counts_add(c, recv_counts, &total);
  TRY(comm_meet(c, status));
  double bytes = (double)unit * (double)(sent + total);
  gidx from = offsets ? offsets->send[0] : 0, to = offsets ? offsets->receive[0] : 0;
  if (c->size == 1)
    memcpy((char *)theirs + to * (gidx)unit, (const char *)mine + from * (gidx)unit,
           (size_t)send_counts[0] * unit);
  else /* NULL if there are no items: Open MPI 4.1 takes two equal addresses for MPI_IN_PLACE */
    TRY(pairs_exchange(c, sent ? mine : NULL, send_counts, total ? theirs : NULL, recv_counts, unit,
                       offsets, bytes));
  c->bytes += (double)unit * (double)(total - recv_counts[c->rank]);
  return OK;
}

int comm_broadcast(struct comm *c, void *items, gidx count, size_t unit)
{
  if (comm_is_alone(c)) return comm_broadcast(comm_whole(c), items, count, unit);
  TRY(comm_meet(c, OK));
  if (c->size == 1 || count == 0) return OK;
  TRY(items_broadcast(c, 0, count, unit, items));
  if (c->rank) c->bytes += (double)unit * (double)count;
  return OK;
}

/* Combine values of 64 bits over all ranks. */
static int values_join(struct comm *c, void *values, gidx count, MPI_Datatype type, MPI_Op op)
{
  TRY(comm_meet(c, OK));
  if (c->size == 1) return OK;
  gidx most = imin(MAX_SUM, comm_most);
  for (gidx first = 0; first < count; first += most) {
    int part = (int)imin(count - first, most);
    /* Time is allowed for four times the bytes: the values go out, come back, and are combined. */
    POST_BYTES(4.0 * (double)part * sizeof(gidx),
               MPI_Iallreduce(MPI_IN_PLACE, (gidx *)values + first, part, type, op, c->state->world,
                              &request_));
  }
  return OK;
}

int comm_sum(struct comm *c, gidx *values, gidx count)
{
  return values_join(c, values, count, MPI_INT64_T, MPI_SUM);
}

int comm_array_send(struct comm *c, struct arena *arena, void *array, gidx count, size_t size)
{
  void **at = array;
  int there = *at != NULL;
  TRY(comm_agree(c, c->rank && there ? arena_alloc(arena, at, count, size) : OK));
  return there ? comm_broadcast(c, *at, count, size) : OK;
}

int comm_or(struct comm *c, uint64_t *words, gidx count)
{
  return values_join(c, words, count, MPI_UINT64_T, MPI_BOR);
}

int comm_is_same(struct comm *c, uint64_t value, int *same)
{
  uint64_t bits[] = {value, ~value}; /* a bit that differs is then set in both words */
  TRY(comm_or(c, bits, LENGTH(bits)));
  *same = (bits[0] & bits[1]) == 0;
  return OK;
}

int comm_allgather_long(struct comm *c, gidx value, gidx *values)
{
  TRY(comm_check(c));
  POST(MPI_Iallgather(&value, 1, MPI_INT64_T, values, 1, MPI_INT64_T, c->state->world, &request_));
  return OK;
}

int comm_allgather_real(struct comm *c, double value, double *values)
{
  TRY(comm_check(c));
  POST(MPI_Iallgather(&value, 1, MPI_DOUBLE, values, 1, MPI_DOUBLE, c->state->world, &request_));
  return OK;
}
