/* SPDX-License-Identifier: BSD-3-Clause
 * A comparison has the hash of the dictionary that it is about.  It must be the hash of these
 * atoms. */
#include "io/stable_atoms.h"

#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "io/stability.h"
#include "model/identity.h"

enum { NAME = 4096 };

/* best[k] <- the larger of best[k] and the cosines of one comparison. */
static int comparison_add(const struct atom_source *source, uint64_t hash, const char *name,
                          struct arena *arena, float *best)
{
  float *cosine;
  uint64_t dictionary;
  TRY(stability_read(name, source->k, arena, &cosine, &dictionary));
  CHECK(dictionary == hash, ERR_INPUT,
        "'%s' compares another dictionary than '%s': give this one to `compare` as the first one",
        name, source->name);
  for (idx i = 0; i < source->k; i++)
    if (cosine[i] > best[i]) best[i] = cosine[i];
  return OK;
}

int stable_atoms_compare(const struct atom_source *source, const float *atoms, const char *names,
                         struct arena *arena, float *best)
{
  CHECK(source->d == 1, ERR_INPUT, "'%s' has frames of %d vectors, which `compare` does not take",
        source->name, source->d);
  for (idx i = 0; i < source->k; i++) best[i] = 0; /* the value of an atom without a pair */
  uint64_t hash =
      content_hash(items_terms(atoms, source->k, source->p, 0), source->k, 1, source->p);
  for (const char *at = names, *end; *at; at = *end ? end + 1 : end) {
    char name[NAME];
    end = at + strcspn(at, "\n");
    CHECK(end - at < NAME, ERR_INPUT, "the name '%.40s...' is too long", at);
    memcpy(name, at, (size_t)(end - at));
    name[end - at] = 0;
    TRY(comparison_add(source, hash, name, arena, best));
  }
  return OK;
}

int stable_atoms_take(struct stable_atoms *s, const struct atom_source *source, float *atoms,
                      const float *stability, real least, struct arena *arena)
{
  float most = -1;
  size_t bytes = (size_t)source->p * sizeof *atoms;
  *s = (struct stable_atoms){.atoms = atoms, .p = source->p};
  TRY(arena_alloc(arena, &s->number, source->k, sizeof *s->number));
  for (idx i = 0; i < source->k; i++) {
    if (stability[i] > most) most = stability[i];
    if ((real)stability[i] < least) continue;
    memmove(atoms + (gidx)s->count * s->p, atoms + (gidx)i * s->p, bytes);
    s->number[s->count++] = i;
  }
  CHECK(s->count, ERR_INPUT,
        "no atom of '%s' has a pair with a cosine of %g or more: the largest "
        "is %g",
        source->name, least, (double)most);
  log_info("stable  atoms=%d of=%d cosine=%g", s->count, source->k, least);
  return OK;
}

static int kept_read(void *self, idx first, idx count, float *out)
{
  const struct stable_atoms *s = self;
  memcpy(out, s->atoms + (gidx)first * s->p, (size_t)count * (size_t)s->p * sizeof *out);
  return OK;
}

struct atom_source stable_atoms_source(struct stable_atoms *s, const struct atom_source *whole)
{
  return (struct atom_source){
      .k = s->count, .d = 1, .p = s->p, .name = whole->name, .self = s, .read = kept_read};
}

void stable_atoms_json(const struct stable_atoms *s, struct json *j)
{
  if (!s->count) return;
  json_array(j, "numbers");
  for (idx i = 0; i < s->count; i++) json_long(j, NULL, s->number[i]);
  json_end(j);
}
