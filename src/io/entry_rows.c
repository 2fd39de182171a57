/* SPDX-License-Identifier: BSD-3-Clause
 * The rules are tested by integer operations: floats of equal sign have the order of their bit
 * patterns, and a negative difference has its sign bit set, so the errors of all entries are
 * combined by OR. */
#include "io/entry_rows.h"

#include <string.h>

#include "base/num.h"

enum { LANES = 4 };
typedef int32_t lanes __attribute__((vector_size(4 * LANES)));
/* The bits of a float without its sign, and the bits of the largest finite float. */
static const int32_t SIZE = 0x7fffffff, MOST = 0x7f7fffff;

static lanes load(const void *at)
{
  lanes v;
  memcpy(&v, at, sizeof v);
  return v;
}

static int32_t any(lanes v)
{
  return v[0] | v[1] | v[2] | v[3];
}

/* Lanes are negative if a float is not finite, or if it is negative although it must not be. */
static lanes float_wrong(const struct entry_rules *r, lanes v)
{
  lanes size = v & SIZE, wrong = MOST - size;
  return r->nonnegative ? wrong | (v & (size != 0)) : wrong;
}

/* Check four entries.  A negative lane is an error; a lane of *other that is not 0 is one too. */
static lanes entries_wrong(const struct entry_rules *r, const idx *atoms, const float *values,
                           const float *scores, lanes *other)
{
  lanes atom = load(atoms), value = load(values), score = load(scores);
  if (r->same) *other |= value ^ score;
  return atom | (r->k - 1 - (atom & SIZE)) | float_wrong(r, value) | float_wrong(r, score);
}

/* Check the order of four entries, each against the entry before it. */
static lanes order_wrong(enum entry_order order, const idx *atoms, const float *scores)
{
  lanes before = load(atoms - 1), atom = load(atoms);
  if (order == ORDER_ATOMS) return before >= atom;
  lanes a = load(scores - 1) & SIZE, b = load(scores) & SIZE, wrong = a - b;
  return order == ORDER_SCORES ? wrong : wrong | ((a == b) & (before >= atom));
}

int entry_row_is_plain(const struct entry_rules *r, const idx *atoms, const float *values,
                       const float *scores, gidx n, gidx *nonzero)
{
  lanes wrong = {0}, other = {0};
  gidx count = 0;
  if (n <= LANES) return 0;
  for (gidx i = 0; i < n; i += LANES) {
    gidx at = imin(i, n - LANES); /* the last few may be checked twice */
    wrong |= entries_wrong(r, atoms + at, values + at, scores + at, &other);
  }
  for (gidx i = 1; i < n; i += LANES) {
    gidx at = imin(i, n - LANES);
    wrong |= order_wrong(r->order, atoms + at, scores + at) & ~load(r->begins + at);
  }
  if (any(wrong) < 0 || any(other)) return 0;
  for (gidx i = 0; i < n; i++) count += values[i] != 0;
  *nonzero += count;
  return 1;
}
