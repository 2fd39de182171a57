/* SPDX-License-Identifier: BSD-3-Clause
 * Offsets are read and checked first, then entries in pieces, and then the values row by row. */
#include "model/supports.h"

#include <math.h>

#include "base/status.h"

enum { PIECE = 1 << 18 }; /* entries read at a time */
enum { BLOCK_ROWS = 4096, BLOCK_ENTRIES = 1 << 22 };

void supports_free(struct supports *s)
{
  arena_free(&s->arena);
  *s = (struct supports){0};
}

/* start[n + 1] <- where the rows begin in the source. */
static int starts_load(struct supports *s, const struct support_source *source, gidx *start)
{
  gidx n = s->view.n, first = s->first;
  TRY(source->starts(source->self, first, n, start));
  CHECK(first > 0 || start[0] == 0, ERR_INPUT, "the first row of '%s' begins at entry %lld, not 0",
        source->name, (long long)start[0]);
  CHECK(start[0] >= 0, ERR_INPUT, "row %lld of '%s' begins at entry %lld" ANEW, (long long)first,
        source->name, (long long)start[0]);
  for (gidx i = 0; i < n; i++) {
    CHECK(start[i + 1] >= start[i], ERR_INPUT,
          "row %lld of '%s': offsets fall from %lld to %lld" ANEW, (long long)(first + i),
          source->name, (long long)start[i], (long long)start[i + 1]);
    gidx length = start[i + 1] - start[i];
    s->longest = length > s->longest ? length : s->longest;
  }
  CHECK(start[n] <= source->entries, ERR_INPUT, "row %lld of '%s' ends at entry %lld of %lld" ANEW,
        (long long)(first + n - 1), source->name, (long long)start[n], (long long)source->entries);
  CHECK(first + n < source->n || start[n] == source->entries, ERR_INPUT,
        "the rows of '%s' end at entry %lld of %lld" ANEW, source->name, (long long)start[n],
        (long long)source->entries);
  return OK;
}

/* Check the entries of row i. */
static int row_check(const struct supports *s, const struct support_source *source, gidx i)
{
  gidx *stamp = s->stamp;
  long long row = s->first + i;
  for (gidx e = s->view.start[i]; e < s->view.start[i + 1]; e++) {
    idx atom = s->view.atoms[e];
    CHECK(atom >= 0 && atom < source->k, ERR_INPUT,
          "row %lld of '%s': atom %d is not in 0 .. %d" ANEW, row, source->name, atom,
          source->k - 1);
    CHECK(stamp[atom] != i + 1, ERR_INPUT, "row %lld of '%s' has atom %d twice" ANEW, row,
          source->name, atom);
    stamp[atom] = i + 1;
    if (!s->codes) continue;
    for (idx m = 0; m < source->d; m++)
      CHECK(isfinite(s->codes[e * source->d + m]), ERR_INPUT,
            "row %lld of '%s': the code of atom %d is %g" ANEW, row, source->name, atom,
            (double)s->codes[e * source->d + m]);
    CHECK(isfinite(s->score[e]), ERR_INPUT, "row %lld of '%s': the score of atom %d is %g" ANEW,
          row, source->name, atom, (double)s->score[e]);
  }
  return OK;
}

int supports_alloc_rows(struct supports *s, gidx n, idx k)
{
  TRY(arena_alloc(&s->arena, &s->view.start, n + 1, sizeof *s->view.start));
  return arena_alloc(&s->arena, &s->stamp, k, sizeof *s->stamp);
}

int supports_alloc_entries(struct supports *s, gidx entries, idx d, int with_codes)
{
  TRY(arena_alloc(&s->arena, &s->view.atoms, entries, sizeof *s->view.atoms));
  if (!with_codes) return OK;
  TRY(arena_alloc(&s->arena, &s->score, entries, sizeof *s->score));
  return arena_alloc(&s->arena, &s->codes, entries * d, sizeof *s->codes);
}

/* Read count entries, from entry `begin` of the source. */
static int entries_load(struct supports *s, const struct support_source *source, gidx begin,
                        gidx count, int with_codes)
{
  TRY(supports_alloc_entries(s, count, source->d, with_codes));
  idx *atoms = (idx *)s->view.atoms;
  for (gidx e = 0; e < count; e += PIECE) {
    gidx n = count - e < PIECE ? count - e : PIECE;
    TRY(source->read(source->self, begin + e, n, atoms + e, with_codes ? s->score + e : NULL,
                     with_codes ? s->codes + e * source->d : NULL));
  }
  return OK;
}

int supports_load(struct supports *s, const struct support_source *source, gidx first, gidx n,
                  int with_codes)
{
  *s = (struct supports){.view = {.n = n, .k = source->k}, .first = first};
  TRY(supports_alloc_rows(s, n, source->k));
  gidx *start = (gidx *)s->view.start;
  TRY(starts_load(s, source, start));
  gidx begin = start[0];
  for (gidx i = 0; i <= n; i++) start[i] -= begin;
  TRY(entries_load(s, source, begin, start[n], with_codes));
  for (gidx i = 0; i < n; i++) TRY(row_check(s, source, i));
  return OK;
}

int supports_block(const struct support_source *s, gidx first, gidx n, gidx *count, gidx *begin)
{
  gidx end;
  *count = n < BLOCK_ROWS ? n : BLOCK_ROWS;
  TRY(s->starts(s->self, first, 0, begin));
  for (;; *count = (*count + 1) / 2) {
    TRY(s->starts(s->self, first + *count, 0, &end));
    if (*count == 1 || end - *begin <= BLOCK_ENTRIES) return OK;
  }
}

int supports_check_length(const struct supports *s, gidx length, const char *name)
{
  for (gidx i = 0; i < s->view.n; i++) {
    gidx found = s->view.start[i + 1] - s->view.start[i];
    CHECK(found == length, ERR_INPUT,
          "row %lld of '%s' has %lld atoms, the first row has %lld: encode with one number for all "
          "rows",
          (long long)(s->first + i), name, (long long)found, (long long)length);
  }
  return OK;
}

int supports_check_order(const struct supports *s, const struct support_source *source)
{
  if (!source->is_unscored || source->d > 1) return OK;
  for (gidx i = 0; i < s->view.n; i++)
    for (gidx e = s->view.start[i] + 1; e < s->view.start[i + 1]; e++)
      CHECK(s->view.atoms[e - 1] < s->view.atoms[e], ERR_INPUT,
            "row %lld of '%s' has atom %d behind atom %d, and no scores for that: sort its rows, "
            "in SciPy by m.sort_indices()",
            (long long)(s->first + i), source->name, s->view.atoms[e], s->view.atoms[e - 1]);
  return OK;
}
