/* SPDX-License-Identifier: BSD-3-Clause
 * Each atom that is not yet in the table is asked of its owner once: requests and replies are one
 * alltoallv each.  Replies go from the owner's device to the table, and between GPUs that are
 * joined they touch no host. */
#include "encode/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "comm/buffers.h"
#include "device/route.h"

/* The place of an atom in a table, where it has none. */
enum { NOT_THERE = -1, REQUESTED = -2 };

static gidx atom_bytes(const struct shard *t)
{
  return (gidx)t->d * t->p * (gidx)sizeof *t->atoms;
}

int table_init(struct atom_table *table, const struct shard *t, struct arena *arena, gidx max)
{
  idx k = t->tiling.k;
  *table = (struct atom_table){.max = max};
  TRY(arena_alloc(arena, &table->place, k, sizeof *table->place));
  TRY(arena_alloc(arena, &table->fetched, k, sizeof *table->fetched));
  for (idx a = 0; table->place && a < k; a++) table->place[a] = NOT_THERE;
  return OK;
}

void table_free(struct atom_table *table, struct device *device)
{
  buffer_free(device, &table->atoms);
  *table = (struct atom_table){0};
}

/* A buffer that ranks exchange: between joined GPUs it needs no host side. */
static int exchange_alloc(const struct comm *c, struct device *device, struct buffer *b, gidx bytes)
{
  return c->gpus ? buffer_alloc_device(device, b, bytes) : buffer_alloc(device, b, bytes);
}

/* Let the table hold count atoms, keeping what is there. */
static int table_grow(struct atom_table *table, const struct comm *c, struct device *device,
                      gidx count, gidx unit)
{
  if (count <= table->capacity) return OK;
  gidx capacity = imin(2 * count, table->max), spare;
  TRY(buffer_bytes_available(device, &spare));
  if (capacity > count && capacity * unit > spare)
    capacity = table->max = count; /* no more than it must */
  capacity = imax(capacity, count);
  struct buffer old = table->atoms;
  struct gather_job keep = {.from = &old, .n = table->used, .unit = unit, .to = &table->atoms};
  TRY(exchange_alloc(c, device, &table->atoms, capacity * unit));
  TRY(device_gather(device, &keep));
  buffer_free(device, &old);
  table->capacity = capacity;
  return OK;
}

/* counts[size] <- atoms that are requested and not in the table, by owner; they are marked.
 * Returns how many. */
static gidx request_count(const struct shard *t, struct atom_table *table,
                          const struct atom_request *w, idx *counts)
{
  gidx fresh = 0;
  for (int r = 0; r < t->tiling.workers; r++) counts[r] = 0;
  for (gidx i = 0; i < w->n; i++)
    for (idx j = w->from; j < w->to; j++) {
      idx atom = w->atoms[i * w->stride + j];
      if (table->place[atom] != NOT_THERE) continue;
      table->place[atom] = REQUESTED;
      counts[tiling_owner(&t->tiling, atom)]++;
      fresh++;
    }
  return fresh;
}

/* Give each atom that is missing its place in the table, by owner, and each entry its slot. */
static int request_place(const struct shard *t, struct atom_table *table,
                         const struct atom_request *w, const idx *counts)
{
  int size = t->tiling.workers;
  idx *next = malloc((size_t)size * sizeof *next);
  CHECK(next, ERR_MEMORY, "cannot allocate %d offsets", size);
  next[0] = table->used;
  for (int r = 1; r < size; r++) next[r] = next[r - 1] + counts[r - 1];
  for (gidx i = 0; i < w->n; i++)
    for (idx j = w->from; j < w->to; j++) {
      idx atom = w->atoms[i * w->stride + j], *place = &table->place[atom];
      if (*place == REQUESTED) {
        *place = next[tiling_owner(&t->tiling, atom)]++;
        table->fetched[*place] = atom;
      }
      w->slot[i * w->stride + j] = *place;
    }
  free(next);
  return OK;
}

/* Copy this rank's tiles to the device, if nothing else has to do with less for it. */
static int held_copy(struct shard *t, struct device *device)
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

/* *view <- this rank's tiles on the device as they were read; zeroed with from_host, which this may
 * set. */
static int held_view(struct shard *t, struct device *device, struct buffer *view)
{
  *view = (struct buffer){0};
  if (t->from_host || t->held == 0) return OK;
  TRY(device_atoms(device, view));
  if (view->device) return OK;
  if (!t->copy.bytes) TRY(held_copy(t, device));
  *view = t->copy;
  return OK;
}

/* Items at .. at + count - 1 of `to`, which has a host side, <- atoms of this rank by their
 * slots. */
static int host_gather(const struct shard *t, struct device *device, const idx *names, gidx count,
                       struct buffer *to, gidx at)
{
  gidx unit = atom_bytes(t);
  for (gidx i = 0; i < count; i++)
    memcpy((char *)to->host + (at + i) * unit, t->atoms + (gidx)names[i] * t->d * t->p,
           (size_t)unit);
  return device_put(device, to, at * unit, count * unit);
}

/* Memory for the atoms that others ask for, and a quarter more where memory is not short. */
static int outgoing_alloc(struct shard *t, const struct comm *c, struct device *device, gidx bytes)
{
  gidx capacity;
  buffer_free(device, &t->outgoing);
  TRY(buffer_bytes_available(device, &capacity));
  if (bytes + bytes / 4 <= capacity) bytes += bytes / 4;
  return t->from_host ? buffer_alloc(device, &t->outgoing, bytes)
                      : exchange_alloc(c, device, &t->outgoing, bytes);
}

int fetch_dry(struct shard *t, struct atom_table *tables, int count, const struct comm *c,
              struct device *device, gidx asked)
{
  gidx unit = atom_bytes(t);
  for (int i = 0; i < count; i++) TRY(table_grow(&tables[i], c, device, tables[i].max, unit));
  return outgoing_alloc(t, c, device, asked * unit);
}

/* Gather the atoms that others ask of this rank, ready to be sent. */
static int asked_gather(struct shard *t, const struct comm *c, struct device *device,
                        const idx *names, gidx count)
{
  gidx unit = atom_bytes(t), bytes = count * unit;
  struct buffer held, *out = &t->outgoing;
  struct gather_job job = {&held, names, count, unit, out, 0};
  if (bytes > out->bytes) TRY(outgoing_alloc(t, c, device, bytes));
  TRY(held_view(t, device, &held));
  if (!t->from_host) return device_gather(device, &job);
  if (!out->host) TRY(outgoing_alloc(t, c, device, bytes));
  return host_gather(t, device, names, count, out, 0);
}

/* The part of a buffer from byte `at` on. */
static struct buffer buffer_from(const struct buffer *b, gidx at)
{
  struct buffer view = {.bytes = b->bytes - at};
  if (b->host) view.host = (char *)b->host + at;
  if (b->device) view.device = (char *)b->device + at;
  return view;
}

/* Ask the owners, reply to others, and receive at the end of the table.  Collective. */
static int request_exchange(struct shard *t, struct atom_table *table, struct comm *c,
                            struct device *device, const idx *counts, idx *asked, idx *ones)
{
  for (int r = 0; r < c->size; r++) ones[r] = 1;
  TRY(comm_alltoallv(c, counts, ones, asked, ones, sizeof *counts));
  gidx asked_all = 0, at = table->used * atom_bytes(t);
  for (int r = 0; r < c->size; r++) asked_all += asked[r];
  struct arena arena = {0};
  idx *names = NULL;
  TRY(comm_agree_met(c, arena_alloc(&arena, &names, asked_all, sizeof *names)));
  TRY(comm_alltoallv(c, table->fetched + table->used, counts, names, asked, sizeof *names));
  for (gidx i = 0; i < asked_all; i++) names[i] = tiling_slot(&t->tiling, names[i]);
  int status = asked_gather(t, c, device, names, asked_all);
  arena_free(&arena);
  struct buffer end = buffer_from(&table->atoms, at);
  return comm_alltoallv_buffer(c, device, &t->outgoing, asked, &end, counts, (size_t)atom_bytes(t),
                               0, status);
}

int table_atoms(const struct shard *t, const struct atom_table *table, struct device *device,
                struct buffer *atoms)
{
  *atoms = table->atoms;
  if (t->tiling.workers > 1 || t->from_host) return OK;
  TRY(device_atoms(device, atoms));
  if (!atoms->device) *atoms = t->copy;
  CHECK(atoms->device || t->held == 0, ERR_INTERNAL, "the fetched atoms are gone");
  return OK;
}

/* A single rank's tiles are the table, if they are on the device; an atom's slot is its number. */
static void slots_number(const struct atom_request *w)
{
  for (gidx i = 0; i < w->n; i++)
    memcpy(w->slot + i * w->stride + w->from, w->atoms + i * w->stride + w->from,
           (size_t)(w->to - w->from) * sizeof *w->slot);
}

/* Bring what is requested into the table.  status: of this rank so far.  Collective. */
static int missing_fetch(struct shard *t, struct atom_table *table, struct comm *c,
                         struct device *device, const struct atom_request *w, int status)
{
  struct arena arena = {0};
  idx *counts = NULL, *asked = NULL, *ones = NULL;
  gidx fresh = 0;
  if (!status) status = arena_alloc(&arena, &counts, c->size, sizeof *counts);
  if (!status) status = arena_alloc(&arena, &asked, c->size, sizeof *asked);
  if (!status) status = arena_alloc(&arena, &ones, c->size, sizeof *ones);
  if (!status) fresh = request_count(t, table, w, counts);
  if (!status) status = table_grow(table, c, device, table->used + fresh, atom_bytes(t));
  if (!status) status = request_place(t, table, w, counts);
  TRY(comm_agree_met(c, status));
  TRY(c->size > 1 ? request_exchange(t, table, c, device, counts, asked, ones)
                  : host_gather(t, device, table->fetched + table->used, fresh, &table->atoms,
                                table->used));
  table->used += (idx)fresh;
  arena_free(&arena);
  return OK;
}

int table_fetch(struct shard *t, struct atom_table *table, struct comm *c, struct device *device,
                const struct atom_request *w)
{
  struct buffer held;
  int status = held_view(t, device, &held);
  if (c->size > 1) return missing_fetch(t, table, c, device, w, status);
  struct atom_request all = *w; /* earlier slots too: they are wrong once from_host is set */
  all.from = 0;
  if (t->from_host) return missing_fetch(t, table, c, device, &all, status);
  slots_number(&all);
  return status;
}

void table_release(struct atom_table *table, const struct shard *t, gidx coming)
{
  gidx missing = t->tiling.k - table->used;
  if (table->used + imin(coming, missing) <= table->max) return;
  for (idx i = 0; i < table->used; i++) table->place[table->fetched[i]] = NOT_THERE;
  table->used = 0;
}
