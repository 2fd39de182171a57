/* SPDX-License-Identifier: BSD-3-Clause
 * Fetching: each atom not yet in the table is asked of its owner once; requests and replies are two
 * exchanges.  Replies go from the owner's device to the table: between GPUs that are joined they
 * touch no host. */
#include "stage/tiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "model/results.h"

static size_t atom_bytes(const struct tiles *t)
{
  return (size_t)t->d * (size_t)t->p * sizeof *t->atoms;
}

static float *atom_at(const struct tiles *t, float *array, gidx slot)
{
  return array + slot * t->d * t->p;
}

idx tile_choose(idx k, int workers)
{
  gidx rounds = ((gidx)k + (gidx)TILE_MOST * workers - 1) / ((gidx)TILE_MOST * workers);
  gidx tiles = rounds * workers;
  return tiles ? (idx)((k + tiles - 1) / tiles) : 1;
}

void tiles_init(struct tiles *t, const struct comm *c, const struct atom_source *source, idx width,
                int normalize)
{
  *t = (struct tiles){.tiling = {source->k, width, c->size}, .rank = c->rank};
  t->d = source->d;
  t->p = source->p;
  t->held = tiling_held(&t->tiling, c->rank);
  t->source = source;
  t->normalize = normalize;
}

/* Atoms of the own tile that begins in this slot. */
static idx tile_atoms(const struct tiles *t, idx slot)
{
  idx left = t->tiling.k - tiling_atom(&t->tiling, t->rank, slot);
  return left < t->tiling.width ? left : t->tiling.width;
}

int tiles_read(void *tiles)
{
  struct tiles *t = tiles;
  const struct atom_source *source = t->source;
  TRY(arena_take(&t->arena, &t->atoms, (gidx)t->held * t->d * t->p, sizeof *t->atoms));
  for (idx slot = 0; slot < t->held; slot += t->tiling.width) {
    idx first = tiling_atom(&t->tiling, t->rank, slot), count = tile_atoms(t, slot);
    float *tile = atom_at(t, t->atoms, slot);
    t->key = first;
    TRY(source->read(source->self, first, count, tile));
    if (t->normalize) atoms_normalize(tile, count, t->d, t->p);
    TRY(atoms_check(tile, count, t->d, t->p, first, source->name));
  }
  return OK;
}

int tiles_put(struct tiles *t, struct comm *c, int status, struct device *device)
{
  TRY(comm_agree_at(c, status, t->key));
  for (idx slot = 0; slot < t->held && !status; slot += t->tiling.width)
    status = device_put_tile(device, atom_at(t, t->atoms, slot), tile_atoms(t, slot),
                             tiling_atom(&t->tiling, t->rank, slot));
  return comm_agree(c, status);
}

int tiles_load(struct tiles *t, struct comm *c, const struct atom_source *source, idx width,
               int normalize, struct device *device)
{
  tiles_init(t, c, source, width, normalize);
  return tiles_put(t, c, tiles_read(t), device);
}

void tiles_free(struct tiles *t, struct device *device)
{
  device_drop(device, &t->own);
  device_drop(device, &t->outgoing);
  arena_free(&t->arena);
  *t = (struct tiles){0};
}

int table_init(struct atom_table *table, const struct tiles *t, gidx most)
{
  *table = (struct atom_table){.most = most};
  table->place = malloc((size_t)t->tiling.k * sizeof *table->place);
  CHECK(table->place, ERR_MEMORY, "cannot allocate the places of %d atoms", t->tiling.k);
  for (idx a = 0; a < t->tiling.k; a++) table->place[a] = -1;
  return OK;
}

void table_free(struct atom_table *table, struct device *device)
{
  device_drop(device, &table->atoms);
  free(table->place);
  free(table->fetched);
  *table = (struct atom_table){0};
}

/* What travels between joined GPUs needs no host side. */
static int travel_take(const struct comm *c, struct device *device, struct buffer *b, gidx bytes)
{
  return c->gpus ? device_hold(device, b, bytes) : device_take(device, b, bytes);
}

/* Let the table hold count atoms, keeping what is there. */
static int table_grow(struct atom_table *table, const struct comm *c, struct device *device,
                      gidx count, gidx unit)
{
  if (count <= table->room) return OK;
  gidx room = 2 * count, spare;
  TRY(device_room(device, &spare));
  if (room > table->most) room = table->most;
  if (room > count && room * unit > spare) room = table->most = count; /* no more than it must */
  if (room < count) room = count;
  struct buffer old = table->atoms;
  struct pick_job keep = {.from = &old, .n = table->used, .unit = unit, .to = &table->atoms};
  TRY(travel_take(c, device, &table->atoms, room * unit));
  TRY(device_pick(device, &keep));
  device_drop(device, &old);
  idx *fetched = realloc(table->fetched, (size_t)room * sizeof *fetched);
  CHECK(fetched, ERR_MEMORY, "cannot allocate a table of %lld atoms", (long long)room);
  table->fetched = fetched;
  table->room = room;
  return OK;
}

/* counts[size] <- atoms that are wanted and not in the table, by owner; they are marked.  Returns
 * how many. */
static gidx wanted_count(const struct tiles *t, struct atom_table *table, const struct wanted *w,
                         idx *counts)
{
  gidx fresh = 0;
  for (int r = 0; r < t->tiling.workers; r++) counts[r] = 0;
  for (gidx i = 0; i < w->n; i++)
    for (idx j = w->from; j < w->to; j++) {
      idx atom = w->atoms[i * w->stride + j];
      if (table->place[atom] != -1) continue;
      table->place[atom] = -2;
      counts[tiling_owner(&t->tiling, atom)]++;
      fresh++;
    }
  return fresh;
}

/* Each atom that is missing gets its place, listed by owner, and each entry its slot. */
static int wanted_list(const struct tiles *t, struct atom_table *table, const struct wanted *w,
                       const idx *counts)
{
  int size = t->tiling.workers;
  idx *next = malloc((size_t)size * sizeof *next);
  CHECK(next, ERR_MEMORY, "cannot allocate %d offsets", size);
  next[0] = table->used;
  for (int r = 1; r < size; r++) next[r] = next[r - 1] + counts[r - 1];
  for (gidx i = 0; i < w->n; i++)
    for (idx j = w->from; j < w->to; j++) {
      idx atom = w->atoms[i * w->stride + j], *place = &table->place[atom];
      if (*place == -2) {
        *place = next[tiling_owner(&t->tiling, atom)]++;
        table->fetched[*place] = atom;
      }
      w->slot[i * w->stride + j] = *place;
    }
  free(next);
  return OK;
}

/* A copy of own tiles on the device, if nothing else has to do with less for it. */
static int own_copy(struct tiles *t, struct device *device)
{
  gidx bytes = t->held * (gidx)atom_bytes(t);
  int status = device_spare(device, &t->own, t->atoms, bytes);
  if (status == ERR_MEMORY) {
    t->from_host = 1;
    t->own = (struct buffer){0};
    status_clear();
    log_rank("memory of GPU %d is short: atoms for codes come from the host", device->gpu.number);
    return OK;
  }
  TRY(status);
  return device_put(device, &t->own, 0, bytes);
}

/* *own <- own tiles on the device as they were read; zeroed with from_host, which this may set. */
static int own_find(struct tiles *t, struct device *device, struct buffer *own)
{
  *own = (struct buffer){0};
  if (t->from_host || t->held == 0) return OK;
  TRY(device_atoms(device, own));
  if (own->device) return OK;
  if (!t->own.bytes) TRY(own_copy(t, device));
  *own = t->own;
  return OK;
}

/* Own atoms by the slots that are named, from item `at` of a buffer with a host side on. */
static int host_pick(const struct tiles *t, struct device *device, const idx *names, gidx count,
                     struct buffer *to, gidx at)
{
  gidx unit = (gidx)atom_bytes(t);
  for (gidx i = 0; i < count; i++)
    memcpy((char *)to->host + (at + i) * unit, atom_at(t, t->atoms, names[i]), (size_t)unit);
  return device_put(device, to, at * unit, count * unit);
}

/* Room for the atoms that others ask for, and some more where memory is not short. */
static int outgoing_take(struct tiles *t, const struct comm *c, struct device *device, gidx bytes)
{
  gidx room;
  device_drop(device, &t->outgoing);
  TRY(device_room(device, &room));
  if (bytes + bytes / 4 <= room) bytes += bytes / 4;
  return t->from_host ? device_take(device, &t->outgoing, bytes)
                      : travel_take(c, device, &t->outgoing, bytes);
}

/* The atoms that others ask of this rank, ready to go out. */
static int asked_pick(struct tiles *t, const struct comm *c, struct device *device,
                      const idx *names, gidx count)
{
  gidx unit = (gidx)atom_bytes(t), bytes = count * unit;
  struct buffer own, *out = &t->outgoing;
  struct pick_job job = {&own, names, count, unit, out, 0};
  if (bytes > out->bytes) TRY(outgoing_take(t, c, device, bytes));
  TRY(own_find(t, device, &own));
  if (!t->from_host) return device_pick(device, &job);
  if (!out->host) TRY(outgoing_take(t, c, device, bytes));
  return host_pick(t, device, names, count, out, 0);
}

/* A view of a buffer from byte `at` on. */
static struct buffer buffer_from(const struct buffer *b, gidx at)
{
  struct buffer view = {.bytes = b->bytes - at};
  if (b->host) view.host = (char *)b->host + at;
  if (b->device) view.device = (char *)b->device + at;
  return view;
}

/* Ask the owners, reply to others, receive at the end of the table. */
static int wanted_bring(struct tiles *t, struct atom_table *table, struct comm *c,
                        struct device *device, const idx *counts, idx *asked, idx *ones)
{
  for (int r = 0; r < c->size; r++) ones[r] = 1;
  TRY(comm_exchange(c, counts, ones, asked, ones, sizeof *counts));
  gidx asked_all = 0, at = table->used * (gidx)atom_bytes(t);
  for (int r = 0; r < c->size; r++) asked_all += asked[r];
  struct arena arena = {0};
  idx *names = NULL;
  TRY(comm_agree(c, arena_take(&arena, &names, asked_all, sizeof *names)));
  TRY(comm_exchange(c, table->fetched + table->used, counts, names, asked, sizeof *names));
  for (gidx i = 0; i < asked_all; i++) names[i] = tiling_slot(&t->tiling, names[i]);
  int status = asked_pick(t, c, device, names, asked_all);
  arena_free(&arena);
  TRY(comm_agree(c, status));
  struct buffer end = buffer_from(&table->atoms, at);
  return comm_exchange_buffer(c, device, &t->outgoing, asked, &end, counts, atom_bytes(t), 0);
}

int tiles_fetched(const struct tiles *t, const struct atom_table *table, struct device *device,
                  struct buffer *atoms)
{
  *atoms = table->atoms;
  if (t->tiling.workers > 1 || t->from_host) return OK;
  TRY(device_atoms(device, atoms));
  if (!atoms->device) *atoms = t->own;
  CHECK(atoms->device || t->held == 0, ERR_INTERNAL, "the fetched atoms are gone");
  return OK;
}

/* A single rank's tiles are the table, if they are on the device; an atom's number is its slot. */
static void slots_own(const struct wanted *w)
{
  for (gidx i = 0; i < w->n; i++)
    memcpy(w->slot + i * w->stride + w->from, w->atoms + i * w->stride + w->from,
           (size_t)(w->to - w->from) * sizeof *w->slot);
}

/* What is wanted into the table.  status: of this rank so far. */
static int table_fetch(struct tiles *t, struct atom_table *table, struct comm *c,
                       struct device *device, const struct wanted *w, int status)
{
  struct arena arena = {0};
  idx *counts = NULL, *asked = NULL, *ones = NULL;
  gidx fresh = 0;
  if (!status) status = arena_take(&arena, &counts, c->size, sizeof *counts);
  if (!status) status = arena_take(&arena, &asked, c->size, sizeof *asked);
  if (!status) status = arena_take(&arena, &ones, c->size, sizeof *ones);
  if (!status) fresh = wanted_count(t, table, w, counts);
  if (!status) status = table_grow(table, c, device, table->used + fresh, (gidx)atom_bytes(t));
  if (!status) status = wanted_list(t, table, w, counts);
  TRY(comm_agree(c, status));
  TRY(c->size > 1
          ? wanted_bring(t, table, c, device, counts, asked, ones)
          : host_pick(t, device, table->fetched + table->used, fresh, &table->atoms, table->used));
  table->used += (idx)fresh;
  arena_free(&arena);
  return OK;
}

int tiles_fetch(struct tiles *t, struct atom_table *table, struct comm *c, struct device *device,
                const struct wanted *w)
{
  struct buffer own;
  int status = own_find(t, device, &own);
  if (c->size > 1) return table_fetch(t, table, c, device, w, status);
  struct wanted all = *w; /* with slots of earlier calls, which from_host, if new, makes wrong */
  all.from = 0;
  if (t->from_host) return table_fetch(t, table, c, device, &all, status);
  slots_own(&all);
  return status;
}

void table_leave(struct atom_table *table, const struct tiles *t, gidx coming)
{
  gidx missing = t->tiling.k - table->used;
  if (table->used + (coming < missing ? coming : missing) <= table->most) return;
  for (idx i = 0; i < table->used; i++) table->place[table->fetched[i]] = -1;
  table->used = 0;
}

/* A slice of one tile of every rank, in atom order: the vectors to route and the atom of each. */
struct slice {
  struct buffer vectors; /* float [n][p] */
  idx *atom;             /* [n] */
  struct buffer lists;   /* struct entry [n] */
  idx *counts;           /* [size] vectors */
  idx n;
};

static int slice_gather(const struct tiles *t, struct comm *c, idx tile, idx low, idx high,
                        struct slice *s)
{
  s->n = 0;
  for (int r = 0; r < c->size; r++) {
    gidx first = (gidx)(tile + r) * t->tiling.width;
    gidx left = t->tiling.k - first - low, width = high - low;
    s->counts[r] = (idx)(left <= 0 ? 0 : left < width ? left : width) * t->d;
    for (idx v = 0; v < s->counts[r]; v++) s->atom[s->n++] = (idx)(first + low + v / t->d);
  }
  idx slot = (idx)((gidx)(tile / c->size) * t->tiling.width + low);
  const float *mine = s->counts[c->rank] ? atom_at(t, t->atoms, slot) : t->atoms;
  return comm_gather_all(c, mine, s->counts, (size_t)t->p * sizeof *mine, s->vectors.host);
}

/* Route the slice over own tiles, each vector's own atom excluded; raise *most. */
static int slice_route(const struct tiles *t, struct device *device, struct slice *s, float *most)
{
  struct route_job job = {.rows = &s->vectors, .n = s->n, .take = 1, .lists = &s->lists};
  job.excluded = (struct exclusions){s->atom, 1, 1};
  TRY(device_put(device, &s->vectors, 0, (gidx)s->n * t->p * (gidx)sizeof(float)));
  TRY(device_route(device, &job));
  TRY(device_get(device, &s->lists, 0, s->n * (gidx)sizeof(struct entry)));
  const struct entry *lists = s->lists.host;
  for (idx i = 0; i < s->n; i++) {
    float score = lists[i].atom < 0 ? 0 : fabsf(entry_score(lists[i], t->d));
    if (score > *most) *most = score;
  }
  return OK;
}

int tiles_cosine(const struct tiles *t, struct comm *c, struct device *device, idx rows,
                 real *cosine)
{
  *cosine = canonical_nan();
  if (t->tiling.k < 2) return OK;
  idx width = t->tiling.width, step = rows / (t->d * c->size);
  step = step < 1 ? 1 : step > width ? width : step;
  gidx vectors = (gidx)step * t->d * c->size, tiles = ((gidx)t->tiling.k + width - 1) / width;
  struct arena arena = {0};
  struct slice s = {0};
  real *all = NULL;
  int status = device_take(device, &s.vectors, vectors * t->p * (gidx)sizeof(float));
  if (!status) status = arena_take(&arena, &s.atom, vectors, sizeof *s.atom);
  if (!status) status = device_take(device, &s.lists, vectors * (gidx)sizeof(struct entry));
  if (!status) status = arena_take(&arena, &s.counts, c->size, sizeof *s.counts);
  if (!status) status = arena_take(&arena, &all, c->size, sizeof *all);
  TRY(comm_agree(c, status));
  float most = 0;
  for (gidx tile = 0; tile < tiles; tile += c->size)
    for (idx low = 0; low < width; low += step) {
      idx high = width - low < step ? width : low + step;
      TRY(slice_gather(t, c, (idx)tile, low, high, &s));
      if (s.n == 0) break;
      if (!status) status = slice_route(t, device, &s, &most);
    }
  TRY(comm_agree(c, status));
  TRY(comm_collect_real(c, most, all));
  *cosine = 0;
  for (int r = 0; r < c->size; r++) *cosine = all[r] > *cosine ? all[r] : *cosine;
  device_drop(device, &s.vectors);
  device_drop(device, &s.lists);
  arena_free(&arena);
  return OK;
}
