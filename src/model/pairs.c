/* SPDX-License-Identifier: BSD-3-Clause
 * The sums over pairs are chains, in the order of atoms or of densities. */
#include "model/pairs.h"

#include "base/num.h"

/* The mean cosine of these atoms' pairs, in this order. */
static real part_mean(const struct pairs *p, const idx *atoms, idx count)
{
  real sum = 0;
  idx pairs = 0;
  for (idx n = 0; n < count; n++) {
    if (p->match[atoms[n]] < 0) continue;
    sum += (real)p->cosine[atoms[n]];
    pairs++;
  }
  return pairs ? sum / pairs : nan_canonical();
}

/* Does atom a come before b?  The larger density comes first, of equal ones the lower atom. */
static int atom_before(const struct pairs *p, idx a, idx b)
{
  return p->density[a] != p->density[b] ? p->density[a] > p->density[b] : a < b;
}

static void order_sink(const struct pairs *p, idx *order, idx at, idx count)
{
  idx atom = order[at];
  for (idx child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && atom_before(p, order[child], order[child + 1])) child++;
    if (!atom_before(p, atom, order[child])) break;
    order[at] = order[child];
  }
  order[at] = atom;
}

/* A heap sort; the last atom of the order is at the root. */
static void order_sort(const struct pairs *p, idx *order)
{
  for (idx at = p->k / 2; at-- > 0;) order_sink(p, order, at, p->k);
  for (idx last = p->k; last-- > 1;) {
    idx atom = order[0];
    order[0] = order[last];
    order[last] = atom;
    order_sink(p, order, 0, last);
  }
}

void pairs_count(struct pairs *p, idx *order)
{
  p->count = (idx)imin(p->k, p->l);
  p->low = p->high = 0;
  p->frequent = p->rare = nan_canonical();
  for (idx i = 0; i < p->k; i++) {
    order[i] = i;
    if (p->match[i] < 0) continue;
    p->low += (real)p->cosine[i] > PAIRS_LOW;
    p->high += (real)p->cosine[i] > PAIRS_HIGH;
  }
  p->mean = part_mean(p, order, p->k);
  if (!p->density) return;
  idx quarter = p->k / 4;
  order_sort(p, order);
  p->frequent = part_mean(p, order, quarter);
  p->rare = part_mean(p, order + (p->k - quarter), quarter);
}
