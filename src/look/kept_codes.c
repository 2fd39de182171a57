/* SPDX-License-Identifier: BSD-3-Clause
 * Entry e of the arrays belongs to row e / s.  Scores are not kept: they are read as 0. */
#include "look/kept_codes.h"

#include <string.h>

#include "base/status.h"

static int block_write(void *self, const struct support_block *b)
{
  struct kept_codes *k = self;
  gidx at = b->first * k->s, count = (gidx)b->n * k->s;
  memcpy(k->atoms + at, b->atoms, (size_t)count * sizeof *k->atoms);
  memcpy(k->codes + at, b->codes, (size_t)count * sizeof *k->codes);
  return OK;
}

static int starts_read(void *self, gidx first, gidx count, gidx *out)
{
  const struct kept_codes *k = self;
  for (gidx i = 0; i <= count; i++) out[i] = (first + i) * k->s;
  return OK;
}

static int entries_read(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  const struct kept_codes *k = self;
  memcpy(atoms, k->atoms + first, (size_t)count * sizeof *atoms);
  if (score) memset(score, 0, (size_t)count * sizeof *score);
  if (codes) memcpy(codes, k->codes + first, (size_t)count * sizeof *codes);
  return OK;
}

int kept_codes_open(struct kept_codes *k, gidx n, idx s, idx atoms)
{
  *k = (struct kept_codes){.n = n, .s = s, .sink = {k, block_write}};
  k->source = (struct support_source){.n = n,
                                      .entries = n * s,
                                      .k = atoms,
                                      .d = 1,
                                      .has_codes = 1,
                                      .name = "codes",
                                      .self = k,
                                      .starts = starts_read,
                                      .read = entries_read};
  TRY(arena_alloc(&k->arena, &k->atoms, n * s, sizeof *k->atoms));
  return arena_alloc(&k->arena, &k->codes, n * s, sizeof *k->codes);
}

void kept_codes_close(struct kept_codes *k)
{
  arena_free(&k->arena);
  *k = (struct kept_codes){0};
}
