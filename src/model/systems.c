/* SPDX-License-Identifier: BSD-3-Clause
 * Every addition of the prefix sums is checked, since the sizes may come from a hostile file. */
#include "model/systems.h"

#include "base/status.h"

int systems_alloc(struct systems_shape *s, gidx count, struct arena *arena)
{
  gidx **sums[] = {&s->row, &s->h, &s->b, &s->g, &s->c, &s->border};
  s->count = count;
  TRY(arena_alloc(arena, &s->d, count, sizeof *s->d));
  TRY(arena_alloc(arena, &s->k, count, sizeof *s->k));
  for (int i = 0; i < LENGTH(sums); i++) TRY(arena_alloc(arena, sums[i], count + 1, sizeof(gidx)));
  return OK;
}

/* *next <- last + a b; returns 1 on overflow. */
static int sum_add(gidx last, gidx a, gidx b, gidx *next)
{
  gidx product;
  return __builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(last, product, next);
}

int systems_measure_one(struct systems_shape *s, gidx a, const char *name)
{
  gidx n = s->row[a + 1] - s->row[a], d = s->d[a], k = s->k[a];
  CHECK(s->row[a + 1] >= s->row[a], ERR_INPUT,
        "the offsets of '%s' fall from %lld to %lld at system %lld" ANEW, name,
        (long long)s->row[a], (long long)s->row[a + 1], (long long)a);
  CHECK(d >= 1 && d <= ARROW_MAX_D, ERR_INPUT,
        "system %lld of '%s' has row blocks of %lld, 1 to %d are possible", (long long)a, name,
        (long long)d, ARROW_MAX_D);
  CHECK(k >= 0 && k <= ARROW_MAX_BORDER, ERR_INPUT,
        "system %lld of '%s' has a border of %lld, 0 to %d are possible", (long long)a, name,
        (long long)k, ARROW_MAX_BORDER);
  int over = sum_add(s->h[a], n, d * d, &s->h[a + 1]) | sum_add(s->b[a], n, d * k, &s->b[a + 1]) |
             sum_add(s->g[a], n, d, &s->g[a + 1]) | sum_add(s->c[a], k, k, &s->c[a + 1]) |
             sum_add(s->border[a], k, 1, &s->border[a + 1]);
  CHECK(!over && s->h[a + 1] < INT64_MAX / 64 && s->b[a + 1] < INT64_MAX / 64, ERR_INPUT,
        "systems 0 to %lld of '%s' have more numbers than can be counted: %lld rows" ANEW,
        (long long)a, name, (long long)s->row[a + 1]);
  return OK;
}

int systems_measure(struct systems_shape *s, const char *name)
{
  CHECK(s->row[0] == 0, ERR_INPUT, "the systems of '%s' begin at row %lld, not 0", name,
        (long long)s->row[0]);
  for (gidx a = 0; a < s->count; a++) TRY(systems_measure_one(s, a, name));
  return OK;
}

gidx systems_reals(const struct systems_shape *s, gidx first, gidx end)
{
  return s->h[end] - s->h[first] + (s->b[end] - s->b[first]) + (s->g[end] - s->g[first]) +
         (s->c[end] - s->c[first]) + (s->border[end] - s->border[first]);
}

gidx systems_piece(const struct systems_shape *s, gidx first, gidx end)
{
  enum { REALS = 1 << 20 };
  gidx at = first + 1;
  while (at < end && at - first < SYSTEMS_PIECE && systems_reals(s, first, at + 1) <= REALS) at++;
  return at;
}

struct systems_block systems_block_at(const struct systems_shape *s, gidx first, gidx end, real *at)
{
  struct systems_block b = {.first = first, .count = end - first, .h = at};
  b.b = b.h + (s->h[end] - s->h[first]);
  b.g = b.b + (s->b[end] - s->b[first]);
  b.c = b.g + (s->g[end] - s->g[first]);
  b.g_b = b.c + (s->c[end] - s->c[first]);
  return b;
}
