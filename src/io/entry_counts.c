/* SPDX-License-Identifier: BSD-3-Clause
 * Each thread scans all entries of the piece, but counts only the atoms of its share, so that these
 * counts stay in its second-level cache.  Entries name atoms in any order; counts of all atoms
 * would cause a cache miss per entry, which takes longer than scanning the entries of other
 * shares. */
#include "io/entry_counts.h"

#include "base/num.h"
#include "base/status.h"

enum { SHARE_BYTES = 1 << 20 };

int entry_counts_open(struct entry_counts *c, struct arena *arena, gidx k, int threads)
{
  gidx wanted = ceil_div(k * (gidx)sizeof *c->atoms, SHARE_BYTES);
  *c = (struct entry_counts){.k = k};
  c->shares = (int)imax(1, imin(imin(wanted, threads), MAX_COUNTERS));
  c->each = ceil_div(k, c->shares);
  for (int i = 0; i < c->shares; i++) c->twice[i].entry = -1;
  return arena_alloc(arena, &c->atoms, k, sizeof *c->atoms);
}

void entry_counts_add(struct entry_counts *c, gidx i)
{
  const struct entry_piece *p = &c->piece;
  gidx low = imin(i * c->each, c->k), row = p->row, end = p->first + p->count;
  uint64_t width = (uint64_t)(imin(low + c->each, c->k) - low);
  struct atom_count *atoms = c->atoms + low;
  if (c->twice[i].entry >= 0) return;
  for (gidx e = p->first; e < end; row++) {
    gidx row_end = imin(p->ends[row - p->row], end);
    for (; e < row_end; e++) {
      uint64_t at = (uint64_t)(p->atoms[e - p->first] - low);
      if (at >= width) continue;
      if (atoms[at].stamp == row + 1) {
        c->twice[i] = (struct entry_twice){e, row, p->atoms[e - p->first]};
        return;
      }
      atoms[at].stamp = row + 1;
      atoms[at].rows++;
    }
  }
}

int entry_counts_status(const struct entry_counts *c)
{
  const struct entry_twice *first = &c->twice[0];
  for (int i = 1; i < c->shares; i++)
    if (c->twice[i].entry >= 0 && (first->entry < 0 || c->twice[i].entry < first->entry))
      first = &c->twice[i];
  CHECK(first->entry < 0, ERR_INPUT, "row %lld has atom %d twice" ANEW, (long long)first->row,
        first->atom);
  return OK;
}
