/* SPDX-License-Identifier: BSD-3-Clause
 * Every rank reads each slice, and routes it over its shard.  Then the lists of all ranks are
 * merged. */
#include "look/compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/num.h"
#include "base/status.h"
#include "device/route.h"
#include "encode/shard.h"
#include "model/identity.h"

enum { SLICE = 1024 }; /* atoms */

/* One direction: the atoms of `own` are routed over the shards of the other dictionary. */
struct pass {
  struct comm *c;
  const struct compare_task *task;
  const struct atom_source *own;
  struct device device;
  struct shard shard;
  struct buffer atoms, lists; /* float [SLICE][p]; struct entry [SLICE] */
  struct entry *all;          /* [size][SLICE] */
  idx *counts;                /* [size] */
  struct arena arena;
};

static int inputs_check(const struct compare_task *t)
{
  const struct atom_source *a = t->atoms[0], *b = t->atoms[1];
  for (int i = 0; i < 2; i++)
    CHECK(t->atoms[i]->d == 1, ERR_INPUT,
          "'%s' has frames of %d vectors: compare takes atoms that are one vector each",
          t->atoms[i]->name, t->atoms[i]->d);
  const char *mend = a->k == b->p || b->k == a->p
                         ? "is one transposed?  An atom is a row: save that one as atoms.T"
                         : "give two dictionaries of the same activations";
  CHECK(a->p == b->p, ERR_INPUT, "'%s' has atoms of %d columns, '%s' of %d: %s", a->name, a->p,
        b->name, b->p, mend);
  return OK;
}

static int slice_read(const struct pass *w, idx first, idx n)
{
  const struct atom_source *own = w->own;
  float *atoms = w->atoms.host;
  TRY(own->read(own->self, first, n, atoms));
  if (w->task->normalize) atoms_normalize(atoms, n, 1, own->p);
  return atoms_check(atoms, n, 1, own->p, first, own->name);
}

static int slice_route(struct pass *w, idx n)
{
  struct route_job job = {.rows = &w->atoms, .n = n, .top_k = 1, .lists = &w->lists};
  TRY(device_put(&w->device, &w->atoms, 0, (gidx)n * w->own->p * (gidx)sizeof(float)));
  TRY(device_route(&w->device, &job));
  CHECK(job.bad.row < 0, ERR_INTERNAL, "atoms of norm 1 have a cosine that is not finite");
  return device_get(&w->device, &w->lists, 0, n * (gidx)sizeof(struct entry));
}

/* Find the nearest atoms of atoms first .. first + n - 1.  Collective. */
static int slice_find(struct pass *w, idx first, idx n, struct matches *out)
{
  TRY(comm_agree_at(w->c, slice_read(w, first, n), first));
  TRY(comm_agree(w->c, slice_route(w, n)));
  for (int r = 0; r < w->c->size; r++) w->counts[r] = n;
  TRY(comm_allgather(w->c, w->lists.host, w->counts, sizeof(struct entry), w->all));
  for (idx i = 0; i < n; i++) {
    struct entry best;
    lists_merge(w->all + i, w->c->size, n, 1, &best);
    out->nearest[first + i] = best.atom;
    out->cosine[first + i] = entry_score(best, 1, 0);
  }
  return OK;
}

static int device_begin(struct pass *w, const struct tiling *tiling)
{
  const struct compare_task *t = w->task;
  const struct device_options options = {.p = w->own->p,
                                         .d = 1,
                                         .max_atoms = tiling_local(tiling, w->c->rank),
                                         .nonnegative = t->nonnegative,
                                         .threads = t->threads,
                                         .variant = t->variant,
                                         .top_k = 1,
                                         .route_rows = SLICE,
                                         .filter = "auto"};
  TRY(device_open(&w->device, &options));
  TRY(buffer_alloc(&w->device, &w->atoms, (gidx)SLICE * w->own->p * (gidx)sizeof(float)));
  TRY(buffer_alloc(&w->device, &w->lists, SLICE * (gidx)sizeof(struct entry)));
  TRY(arena_alloc(&w->arena, &w->all, (gidx)SLICE * w->c->size, sizeof *w->all));
  return arena_alloc(&w->arena, &w->counts, w->c->size, sizeof *w->counts);
}

/* Run one direction.  other: the dictionary of the shards; *hash <- its hash.  Collective. */
static int pass_run(struct pass *w, const struct atom_source *other, struct matches *out,
                    uint64_t *hash)
{
  struct comm *c = w->c;
  struct tiling tiling = {other->k, tile_width_default(other->k, c->size), c->size};
  TRY(comm_agree(c, device_begin(w, &tiling)));
  TRY(shard_load(&w->shard, c, other, tiling.width, w->task->normalize, &w->device));
  gidx terms = (gidx)w->shard.terms;
  TRY(comm_sum(c, &terms, 1));
  *hash = content_hash((uint64_t)terms, other->k, 1, other->p);
  for (idx first = 0; first < w->own->k; first += SLICE)
    TRY(slice_find(w, first, w->own->k - first < SLICE ? w->own->k - first : SLICE, out));
  buffer_free(&w->device, &w->atoms);
  buffer_free(&w->device, &w->lists);
  shard_free(&w->shard, &w->device);
  device_close(&w->device);
  arena_free(&w->arena);
  return OK;
}

static int result_alloc(const struct compare_task *t, struct compare_result *r)
{
  for (int i = 0; i < 2; i++) {
    struct matches *p = &r->of[i];
    p->k = t->atoms[i]->k;
    TRY(arena_alloc(&r->arena, &p->nearest, p->k, sizeof *p->nearest));
    TRY(arena_alloc(&r->arena, &p->cosine, p->k, sizeof *p->cosine));
  }
  return OK;
}

static uint64_t matches_print(const struct matches *p)
{
  return fingerprint(p->nearest, p->k, sizeof *p->nearest, 0) +
         3 * fingerprint(p->cosine, p->k, sizeof *p->cosine, 0);
}

int compare_dictionaries(struct comm *c, const struct compare_task *t, struct compare_result *r)
{
  struct pass *w = NULL;
  memset(r, 0, sizeof *r);
  int status = inputs_check(t);
  if (!status) status = result_alloc(t, r);
  if (!status) status = struct_alloc(&w, sizeof *w);
  TRY(comm_agree(c, status));
  for (int i = 0; i < 2; i++) {
    *w = (struct pass){.c = c, .task = t, .own = t->atoms[i]};
    TRY(pass_run(w, t->atoms[1 - i], &r->of[i], &r->hash[1 - i]));
    matches_count(&r->of[i], t->above);
  }
  free(w);
  r->mutual = matches_mutual(&r->of[0], &r->of[1], t->above);
  r->fingerprint = matches_print(&r->of[0]) + 7 * matches_print(&r->of[1]);
  return OK;
}

void compare_free(struct compare_result *r)
{
  arena_free(&r->arena);
}
