/* SPDX-License-Identifier: BSD-3-Clause
 * A fetch asks the owner of each atom that is not yet in the table, once per atom.  Several ranks
 * make three alltoallv operations: of counts, of names and of atoms.  Atoms go from the owner's
 * device to the table; or from the owner's host, if the device has no memory for a copy of the
 * tiles.  Between GPUs joined by NCCL, atoms that a device has do not pass through host memory.
 *
 * A rank that has failed asks for nothing, but answers.  A rank without memory for atoms that come
 * or go says so in its message of names; then no rank sends atoms. */
#include "encode/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "comm/buffers.h"
#include "device/route.h"

/* Values of table->place for atoms that are not in the table. */
enum { NOT_THERE = -1, REQUESTED = -2 };

static gidx atom_bytes(const struct shard *t)
{
  return (gidx)t->d * t->p * (gidx)sizeof *t->atoms;
}

/* Memory for the counts and names that ranks exchange before the atoms.  Each rank sends one
 * message of names to each rank. */
static int exchange_init(struct atom_table *table, const struct shard *t, struct arena *arena,
                         gidx request)
{
  int size = t->tiling.workers;
  gidx most = size > 1 ? size : 0;
  TRY(arena_alloc(arena, &table->counts, size, sizeof *table->counts));
  TRY(arena_alloc(arena, &table->asked, size, sizeof *table->asked));
  TRY(arena_alloc(arena, &table->ones, size, sizeof *table->ones));
  TRY(arena_alloc(arena, &table->names, most ? request + size : 0, sizeof *table->names));
  return arena_alloc(arena, &table->theirs, most * (imin(request, t->held) + 1),
                     sizeof *table->theirs);
}

int table_init(struct atom_table *table, const struct shard *t, struct arena *arena, gidx max,
               gidx request)
{
  idx k = t->tiling.k;
  *table = (struct atom_table){.max = max};
  TRY(arena_alloc(arena, &table->place, k, sizeof *table->place));
  TRY(arena_alloc(arena, &table->fetched, k, sizeof *table->fetched));
  for (idx a = 0; table->place && a < k; a++) table->place[a] = NOT_THERE;
  TRY(exchange_init(table, t, arena, request));
  for (int r = 0; table->ones && r < t->tiling.workers; r++) table->ones[r] = 1;
  return OK;
}

void table_free(struct atom_table *table, struct device *device)
{
  buffer_free(device, &table->atoms);
  *table = (struct atom_table){0};
}

/* A buffer for exchanges; between joined GPUs it needs no host side. */
static int exchange_alloc(const struct comm *c, struct device *device, struct buffer *b, gidx bytes)
{
  return c->gpus ? buffer_alloc_device(device, b, bytes) : buffer_alloc(device, b, bytes);
}

/* Make room in the table for `count` atoms.  The atoms in it stay. */
static int table_grow(struct atom_table *table, const struct comm *c, struct device *device,
                      gidx count, gidx unit)
{
  if (count <= table->capacity) return OK;
  gidx wanted = table->capacity ? 2 * count : imax(table->expected, count), spare;
  gidx capacity = imin(table->expected ? wanted : 2 * count, table->max);
  TRY(buffer_bytes_available(device, &spare));
  if (capacity > count && capacity * unit > spare)
    capacity = table->max = count; /* no more than needed */
  capacity = imax(capacity, count);
  struct buffer old = table->atoms;
  struct gather_job keep = {.from = &old, .n = table->used, .unit = unit, .to = &table->atoms};
  TRY(exchange_alloc(c, device, &table->atoms, capacity * unit));
  TRY(device_gather(device, &keep));
  buffer_free(device, &old);
  table->capacity = capacity;
  return OK;
}

/* table->counts <- requested atoms that are not in the table, by owner; table->place marks them.
 * Returns how many there are. */
static gidx request_count(const struct shard *t, struct atom_table *table,
                          const struct atom_request *w)
{
  gidx fresh = 0;
  for (int r = 0; r < t->tiling.workers; r++) table->counts[r] = 0;
  for (gidx i = 0; i < w->n; i++)
    for (idx j = w->from; j < w->to; j++) {
      idx atom = w->atoms[i * w->stride + j];
      if (table->place[atom] != NOT_THERE) continue;
      table->place[atom] = REQUESTED;
      table->counts[tiling_owner(&t->tiling, atom)]++;
      fresh++;
    }
  return fresh;
}

/* Give each missing atom its position in the table, grouped by owner, and each entry its slot. */
static void slots_assign(const struct shard *t, struct atom_table *table,
                         const struct atom_request *w)
{
  int size = t->tiling.workers;
  idx *next = table->asked; /* used as work space: it is not filled in yet */
  next[0] = table->used;
  for (int r = 1; r < size; r++) next[r] = next[r - 1] + table->counts[r - 1];
  for (gidx i = 0; i < w->n; i++)
    for (idx j = w->from; j < w->to; j++) {
      idx atom = w->atoms[i * w->stride + j], *place = &table->place[atom];
      if (*place == REQUESTED) {
        *place = next[tiling_owner(&t->tiling, atom)]++;
        table->fetched[*place] = atom;
      }
      w->slot[i * w->stride + j] = *place;
    }
}

/* Copy this rank's tiles to the device.  If that leaves too little memory on the device, set
 * t->from_host instead. */
static int local_copy(struct shard *t, struct device *device)
{
  gidx bytes = t->held * atom_bytes(t);
  int status = buffer_wrap_spare(device, &t->copy, t->atoms, bytes);
  if (status == ERR_MEMORY) {
    t->from_host = 1;
    t->copy = (struct buffer){0};
    status_clear();
    log_rank("memory of GPU %d is short: atoms for codes come from the host", device->gpu.number);
    return OK;
  }
  TRY(status);
  return device_put(device, &t->copy, 0, bytes);
}

/* *view <- this rank's tiles on the device as they were read; zeroed if t->from_host, which this
 * call may set. */
static int local_view(struct shard *t, struct device *device, struct buffer *view)
{
  *view = (struct buffer){0};
  if (t->from_host || t->held == 0) return OK;
  TRY(device_atoms(device, view));
  if (view->device) return OK;
  if (!t->copy.bytes) TRY(local_copy(t, device));
  *view = t->copy;
  return OK;
}

/* Copy this rank's atoms in slots names[count] to items at .. at + count - 1 of `to`: to its host
 * side, then to the device. */
static int host_gather(const struct shard *t, struct device *device, const idx *names, gidx count,
                       struct buffer *to, gidx at)
{
  gidx unit = atom_bytes(t);
  for (gidx i = 0; i < count; i++)
    memcpy((char *)to->host + (at + i) * unit, t->atoms + (gidx)names[i] * t->d * t->p,
           (size_t)unit);
  return device_put(device, to, at * unit, count * unit);
}

/* Memory for the atoms that others ask for.  It is t->expected atoms, or a quarter more than this
 * request if that is not enough.  If memory is short, it is this request alone. */
static int outgoing_alloc(struct shard *t, const struct comm *c, struct device *device, gidx bytes)
{
  gidx capacity, expected = t->expected * atom_bytes(t);
  buffer_free(device, &t->outgoing);
  TRY(buffer_bytes_available(device, &capacity));
  gidx wanted = bytes <= expected ? expected : bytes + bytes / 4;
  if (wanted <= capacity) bytes = wanted;
  return t->from_host ? buffer_alloc(device, &t->outgoing, bytes)
                      : exchange_alloc(c, device, &t->outgoing, bytes);
}

int fetch_dry(struct shard *t, struct atom_table *tables, int count, const struct comm *c,
              struct device *device, gidx asked)
{
  gidx unit = atom_bytes(t);
  for (int i = 0; i < count; i++) {
    gidx atoms = tables[i].expected ? tables[i].expected : tables[i].max;
    TRY(table_grow(&tables[i], c, device, atoms, unit));
  }
  return outgoing_alloc(t, c, device, (t->expected ? t->expected : asked) * unit);
}

/* Make room for `count` atoms that other ranks ask for; *held <- where this rank's atoms are. */
static int outgoing_ready(struct shard *t, const struct comm *c, struct device *device, gidx count,
                          struct buffer *held)
{
  gidx bytes = count * atom_bytes(t);
  if (bytes > t->outgoing.bytes) TRY(outgoing_alloc(t, c, device, bytes));
  TRY(local_view(t, device, held));
  return t->from_host && !t->outgoing.host ? outgoing_alloc(t, c, device, bytes) : OK;
}

/* Gather the atoms that others ask of this rank, ready to send. */
static int asked_gather(struct shard *t, struct device *device, const struct buffer *held,
                        const idx *names, gidx count)
{
  struct gather_job job = {held, names, count, atom_bytes(t), &t->outgoing, 0};
  return t->from_host ? host_gather(t, device, names, count, &t->outgoing, 0)
                      : device_gather(device, &job);
}

/* The part of a buffer from byte `at` on. */
static struct buffer buffer_from(const struct buffer *b, gidx at)
{
  struct buffer view = {.bytes = b->bytes - at};
  if (b->host) view.host = (char *)b->host + at;
  if (b->device) view.device = (char *)b->device + at;
  return view;
}

/* Each rank sends one message to each rank: whether it has failed, and the names of the atoms that
 * it asks for.  *failed <- 1 if any rank has failed.  table->theirs keeps the names only. */
static int names_exchange(struct atom_table *table, struct comm *c, int *failed)
{
  const idx *from = table->fetched + table->used;
  idx *to = table->names;
  for (int r = 0; r < c->size; r++) {
    *to++ = comm_failure(c) != OK;
    memcpy(to, from, (size_t)table->counts[r] * sizeof *to);
    to += table->counts[r];
    from += table->counts[r]++;
    table->asked[r]++;
  }
  TRY(comm_alltoallv(c, table->names, table->counts, table->theirs, table->asked,
                     sizeof *table->names));
  from = to = table->theirs; /* keep the names only, without gaps */
  for (int r = 0; r < c->size; r++) {
    *failed |= *from++;
    table->counts[r]--;
    memmove(to, from, (size_t)--table->asked[r] * sizeof *to);
    to += table->asked[r];
    from += table->asked[r];
  }
  return OK;
}

/* Ask the owners for atoms, reply to others, and receive at the end of the table.  Collective. */
static int request_exchange(struct shard *t, struct atom_table *table, struct comm *c,
                            struct device *device)
{
  int failed = 0;
  struct buffer held;
  gidx asked = 0, unit = atom_bytes(t), at = table->used * unit;
  idx *counts = table->counts;
  TRY(comm_alltoallv(c, counts, table->ones, table->asked, table->ones, sizeof *counts));
  for (int r = 0; r < c->size; r++) asked += table->asked[r];
  if (!comm_failure(c)) comm_record(c, outgoing_ready(t, c, device, asked, &held));
  TRY(names_exchange(table, c, &failed));
  if (failed) return comm_agree(c, OK);
  for (gidx i = 0; i < asked; i++) table->theirs[i] = tiling_slot(&t->tiling, table->theirs[i]);
  if (!comm_failure(c)) comm_record(c, asked_gather(t, device, &held, table->theirs, asked));
  if (!comm_failure(c)) comm_record(c, comm_buffer_ready(c, device, &t->outgoing, asked * unit));
  struct buffer end = buffer_from(&table->atoms, at);
  return comm_alltoallv_buffer(c, device, &t->outgoing, table->asked, &end, counts, (size_t)unit,
                               0);
}

int table_atoms(const struct shard *t, const struct atom_table *table, struct device *device,
                struct buffer *atoms)
{
  *atoms = table->atoms;
  if (t->tiling.workers > 1 || t->from_host) return OK;
  TRY(device_atoms(device, atoms));
  if (!atoms->device) *atoms = t->copy;
  CHECK(atoms->device || t->held == 0, ERR_INTERNAL,
        "the fetched atoms are not in memory any more");
  return OK;
}

/* For a single rank with its tiles on the device as the table: an atom's slot is its number. */
static void slots_number(const struct atom_request *w)
{
  for (gidx i = 0; i < w->n; i++)
    memcpy(w->slot + i * w->stride + w->from, w->atoms + i * w->stride + w->from,
           (size_t)(w->to - w->from) * sizeof *w->slot);
}

/* Bring the missing atoms into the table, from other ranks or from the host.  Collective. */
static int missing_fetch(struct shard *t, struct atom_table *table, struct comm *c,
                         struct device *device, const struct atom_request *w)
{
  static const struct atom_request nothing = {0};
  if (comm_failure(c)) w = &nothing; /* its atoms may be invalid */
  gidx fresh = request_count(t, table, w);
  if (!comm_failure(c))
    comm_record(c, table_grow(table, c, device, table->used + fresh, atom_bytes(t)));
  slots_assign(t, table, w);
  if (c->size > 1)
    TRY(request_exchange(t, table, c, device));
  else if (!comm_failure(c))
    comm_record(
        c, host_gather(t, device, table->fetched + table->used, fresh, &table->atoms, table->used));
  table->used += (idx)fresh;
  return OK;
}

int table_fetch(struct shard *t, struct atom_table *table, struct comm *c, struct device *device,
                const struct atom_request *w)
{
  struct buffer held;
  if (!comm_failure(c)) comm_record(c, local_view(t, device, &held));
  if (c->size > 1) return missing_fetch(t, table, c, device, w);
  struct atom_request all = *w; /* earlier slots too: they become wrong when from_host is set */
  all.from = 0;
  if (t->from_host) return missing_fetch(t, table, c, device, &all);
  slots_number(&all);
  return OK;
}

void table_release(struct atom_table *table, const struct shard *t, gidx coming)
{
  gidx missing = t->tiling.k - table->used;
  if (table->used + imin(coming, missing) <= table->max) return;
  for (idx i = 0; i < table->used; i++) table->place[table->fetched[i]] = NOT_THERE;
  table->used = 0;
}
