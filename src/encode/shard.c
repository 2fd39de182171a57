/* SPDX-License-Identifier: BSD-3-Clause
 * Tiles are read into one array, by the spare threads if the source allows several readers.  For
 * the cosine, slices of the dictionary are gathered and routed over all shards; no vector is
 * compared with its own atom. */
#include "encode/shard.h"

#include <math.h>
#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "device/route.h"
#include "model/identity.h"
#include "model/results.h"

enum { PIECE_BYTES = 1 << 20 }; /* a piece then stays in a thread's second-level cache */

static float *atom_at(const struct shard *t, gidx slot)
{
  return t->atoms + slot * t->d * t->p;
}

idx tile_width_default(idx k, int workers)
{
  gidx tiles = ceil_div(k, (gidx)MAX_TILE * workers) * workers;
  return tiles ? (idx)ceil_div(k, tiles) : 1;
}

void shard_init(struct shard *t, const struct comm *c, const struct atom_source *source, idx width,
                int normalize)
{
  *t = (struct shard){.tiling = {source->k, width, c->size}, .rank = c->rank};
  t->d = source->d;
  t->p = source->p;
  t->held = tiling_local(&t->tiling, c->rank);
  t->source = source;
  t->normalize = normalize;
}

/* Atoms of this rank's tile that begins in this slot. */
static idx tile_atoms(const struct shard *t, idx slot)
{
  idx left = t->tiling.k - tiling_atom(&t->tiling, t->rank, slot);
  return left < t->tiling.width ? left : t->tiling.width;
}

int shard_alloc(struct shard *t)
{
  return arena_alloc(&t->arena, &t->atoms, (gidx)t->held * t->d * t->p, sizeof *t->atoms);
}

/* The run of slots that rank `rank` of t->like hashes.  All ranks of t->like hold the same
 * slots. */
static void slots_partition(const struct shard *t, int rank, gidx *first, gidx *count)
{
  comm_partition(t->held, t->like ? t->like->size : 1, rank, first, count);
}

/* A run of atoms that one thread reads, scales and checks while they are in its cache. */
struct piece {
  idx slot, first, count; /* first: the atom in the first slot */
  int is_own, status;     /* is_own: this rank hashes it */
  uint64_t terms;
};

struct reading {
  struct shard *shard;
  struct piece *pieces;
};

/* The piece that begins in this slot.  It ends with a unit of the source; earlier if the atoms stop
 * being consecutive, or at slot `end`. */
static struct piece piece_at(const struct shard *t, gidx slot, gidx end)
{
  gidx bytes = (gidx)t->d * t->p * (gidx)sizeof(float), unit = imax(t->source->unit, 1);
  gidx most = round_up(imax(PIECE_BYTES / bytes, 1), unit), width = t->tiling.width;
  idx first = tiling_atom(&t->tiling, t->rank, (idx)slot);
  gidx run = t->tiling.workers == 1 ? end - slot : imin(width - slot % width, end - slot);
  return (struct piece){(idx)slot, first, (idx)imin(most - first % most, run), 1, OK, 0};
}

static int piece_read(const struct shard *t, struct piece *p)
{
  const struct atom_source *source = t->source;
  float *atoms = atom_at(t, p->slot);
  TRY(source->read(source->self, p->first, p->count, atoms));
  p->terms = p->is_own ? items_terms(atoms, p->count, (gidx)t->d * t->p, p->first) : 0;
  int are_unit = t->normalize && atoms_normalize(atoms, p->count, t->d, t->p);
  if (are_unit && t->d == 1) return OK;
  return atoms_check(atoms, p->count, t->d, t->p, p->first, source->name);
}

static void piece_run(void *self, gidx i)
{
  const struct reading *r = self;
  r->pieces[i].status = piece_read(r->shard, &r->pieces[i]);
  status_clear(); /* of this thread */
}

/* Read all pieces.  The first piece that failed is read again in this thread, so that this thread
 * has the message. */
static int pieces_read(const struct reading *r, gidx count)
{
  int threads = r->shard->source->is_shared ? team_spare() : 1;
  if (threads > 1) spare_run(count, piece_run, (void *)r);
  for (gidx i = 0; i < count; i++) {
    struct piece *p = &r->pieces[i];
    r->shard->key = p->first;
    if (threads == 1 || p->status) TRY(piece_read(r->shard, p));
    r->shard->terms += p->terms;
  }
  return OK;
}

/* list <- the pieces of slots begin .. end - 1, unless list is NULL.  Returns how many there
 * are. */
static gidx pieces_cut(const struct shard *t, gidx begin, gidx end, int is_own, struct piece *list)
{
  gidx count = 0;
  for (gidx slot = begin; slot < end; count++) {
    struct piece piece = piece_at(t, slot, end);
    piece.is_own = is_own;
    if (list) list[count] = piece;
    slot += piece.count;
  }
  return count;
}

/* list <- the pieces of all slots that this rank reads, unless list is NULL.  Returns how many
 * there are. */
static gidx pieces_list(const struct shard *t, struct piece *list)
{
  gidx first, end, count = 0;
  slots_partition(t, t->like ? t->like->rank : 0, &first, &end);
  end += first;
  if (t->reads_all) count += pieces_cut(t, 0, first, 0, list);
  count += pieces_cut(t, first, end, 1, list ? list + count : NULL);
  if (t->reads_all) count += pieces_cut(t, end, t->held, 0, list ? list + count : NULL);
  return count;
}

int shard_read(struct shard *t)
{
  struct reading r = {t, NULL};
  gidx count = pieces_list(t, NULL);
  t->terms = 0;
  r.pieces = malloc((size_t)count * sizeof *r.pieces + 1);
  CHECK(r.pieces, ERR_MEMORY, "cannot allocate a list of %lld pieces", (long long)count);
  pieces_list(t, r.pieces);
  int status = pieces_read(&r, count);
  free(r.pieces);
  return status;
}

/* Broadcast what this rank read to the ranks that hold the same tiles. */
static int slots_broadcast(struct shard *t, struct comm *like)
{
  struct arena arena = {0};
  gidx first, count;
  idx *counts = NULL;
  TRY(comm_agree(like, arena_alloc(&arena, &counts, like->size, sizeof *counts)));
  for (int r = 0; r < like->size; r++) {
    slots_partition(t, r, &first, &count);
    counts[r] = (idx)count;
  }
  slots_partition(t, like->rank, &first, &count);
  TRY(comm_allgather(like, atom_at(t, first), counts, (size_t)t->d * t->p * sizeof *t->atoms,
                     t->atoms));
  arena_free(&arena);
  return OK;
}

int shard_put(struct shard *t, struct comm *c, struct comm *like, int status, struct device *device)
{
  TRY(comm_agree_at(c, status, t->key));
  if (like && !t->reads_all) status = slots_broadcast(t, like);
  if (!status && device) status = shard_upload(t, device);
  return comm_agree(c, status);
}

int shard_upload(const struct shard *t, struct device *device)
{
  for (idx slot = 0; slot < t->held; slot += t->tiling.width)
    TRY(device_put_tile(device, atom_at(t, slot), tile_atoms(t, slot),
                        tiling_atom(&t->tiling, t->rank, slot)));
  return device_finish(device);
}

int shard_load(struct shard *t, struct comm *c, const struct atom_source *source, idx width,
               int normalize, struct device *device)
{
  shard_init(t, c, source, width, normalize);
  int status = shard_alloc(t);
  if (!status) status = shard_read(t);
  return shard_put(t, c, NULL, status, device);
}

void shard_free(struct shard *t, struct device *device)
{
  buffer_free(device, &t->copy);
  buffer_free(device, &t->outgoing);
  arena_free(&t->arena);
  *t = (struct shard){0};
}

/* A slice of one tile of every rank, in atom order: the vectors to route, and the atom of each. */
struct slice {
  struct buffer vectors; /* float [n][p] */
  idx *atom;             /* [n] */
  struct buffer lists;   /* struct entry [n] */
  idx *counts;           /* [size] vectors */
  idx n;
};

/* Gather atoms low .. high - 1 of tiles tile .. tile + size - 1, one tile per rank.  Collective. */
static int slice_gather(const struct shard *t, struct comm *c, idx tile, idx low, idx high,
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
  const float *mine = s->counts[c->rank] ? atom_at(t, slot) : t->atoms;
  return comm_allgather(c, mine, s->counts, (size_t)t->p * sizeof *mine, s->vectors.host);
}

/* Route the slice over this rank's tiles; *max <- the largest score, if it is larger than *max. */
static int slice_score(const struct shard *t, struct device *device, struct slice *s, float *max)
{
  struct route_job job = {.rows = &s->vectors, .n = s->n, .top_k = 1, .lists = &s->lists};
  job.excluded = (struct exclusions){s->atom, 1, 1};
  TRY(device_put(device, &s->vectors, 0, (gidx)s->n * t->p * (gidx)sizeof(float)));
  TRY(device_route(device, &job));
  TRY(device_get(device, &s->lists, 0, s->n * (gidx)sizeof(struct entry)));
  const struct entry *lists = s->lists.host;
  for (idx i = 0; i < s->n; i++) {
    float score = lists[i].atom < 0 ? 0 : fabsf(entry_score(lists[i], t->d, 0));
    if (score > *max) *max = score;
  }
  return OK;
}

/* slice_score() for scores of either sign.  A device for nonnegative codes chooses by positive
 * parts (N.2).  So -x is routed too: its scores are exactly those of x with the other sign. */
static int slice_route(const struct shard *t, struct device *device, struct slice *s, float *max)
{
  TRY(slice_score(t, device, s, max));
  if (!device->nonnegative) return OK;
  float *vectors = s->vectors.host;
  for (gidx i = 0; i < (gidx)s->n * t->p; i++) vectors[i] = -vectors[i];
  return slice_score(t, device, s, max);
}

int shard_cosine(const struct shard *t, struct comm *c, struct comm *group, struct device *device,
                 idx rows, real *cosine)
{
  int size = group->size, groups = c->size / size;
  *cosine = nan_canonical();
  if (t->tiling.k < 2) return OK;
  idx width = t->tiling.width, step = rows / (t->d * size);
  step = step < 1 ? 1 : step > width ? width : step;
  gidx vectors = (gidx)step * t->d * size, tiles = ceil_div(t->tiling.k, width);
  struct arena arena = {0};
  struct slice s = {0};
  real *all = NULL;
  int status = buffer_alloc(device, &s.vectors, vectors * t->p * (gidx)sizeof(float));
  if (!status) status = arena_alloc(&arena, &s.atom, vectors, sizeof *s.atom);
  if (!status) status = buffer_alloc(device, &s.lists, vectors * (gidx)sizeof(struct entry));
  if (!status) status = arena_alloc(&arena, &s.counts, size, sizeof *s.counts);
  if (!status) status = arena_alloc(&arena, &all, c->size, sizeof *all);
  TRY(comm_agree(c, status));
  float max = 0;
  gidx slice = 0;
  for (gidx tile = 0; tile < tiles; tile += size)
    for (idx low = 0; low < width; low += step) {
      idx high = width - low < step ? width : low + step;
      if (slice++ % groups != c->rank / size) continue;
      TRY(slice_gather(t, group, (idx)tile, low, high, &s));
      if (s.n == 0) break;
      if (!status) status = slice_route(t, device, &s, &max);
    }
  TRY(comm_agree(c, status));
  TRY(comm_allgather_real(c, max, all));
  *cosine = 0;
  for (int r = 0; r < c->size; r++) *cosine = all[r] > *cosine ? all[r] : *cosine;
  buffer_free(device, &s.vectors);
  buffer_free(device, &s.lists);
  arena_free(&arena);
  return OK;
}
