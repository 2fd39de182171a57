/* SPDX-License-Identifier: BSD-3-Clause
 * Readers follow the order of the file.  If their work is uneven, owners are dealt round robin, in
 * order of falling work. */
#include "solve/order.h"

#include <stdlib.h>

gidx batch_end(const struct systems_shape *s, gidx first, gidx rows, gidx max)
{
  gidx end = first + 1;
  while (end < s->count && end - first < max && s->row[end + 1] - s->row[first] <= rows) end++;
  return end;
}

double system_work(const struct systems_shape *s, gidx a)
{
  double n = (double)(s->row[a + 1] - s->row[a]), d = s->d[a], k = s->k[a];
  return n * d * (d * d / 6 + k * d / 2 + k * k / 2 + 4 * k + 4) + k * k * k / 6 + 1;
}

static int work_compare(const void *a, const void *b)
{
  const struct work_order *x = a, *y = b;
  if (x->work != y->work) return x->work < y->work ? 1 : -1;
  return (x->system > y->system) - (x->system < y->system);
}

/* Returns whether no reader has more than MOST times an even share of the work. */
static int is_even(const struct system_batch *b, const struct work_order *order, int ranks)
{
  static const double MOST = 1.1;
  double all = 0, own = 0, largest = 0;
  for (gidx i = 0; i < b->end - b->first; i++) {
    if (i && b->reader[i] != b->reader[i - 1]) own = 0;
    own += order[i].work;
    all += order[i].work;
    if (own > largest) largest = own;
  }
  return largest * ranks <= MOST * all;
}

void batch_deal(const struct systems_shape *s, int ranks, struct system_batch *b,
                struct work_order *order)
{
  gidx count = b->end - b->first, before = 0;
  double total = (double)systems_reals(s, b->first, b->end) + 1;
  for (gidx i = 0; i < count; i++) {
    gidx a = b->first + i;
    b->owner[i] = b->reader[i] = (int)((double)before / total * ranks);
    before += systems_reals(s, a, a + 1);
    order[i] = (struct work_order){system_work(s, a), a};
  }
  b->stays = is_even(b, order, ranks);
  if (b->stays) return;
  qsort(order, (size_t)count, sizeof *order, work_compare);
  for (gidx i = 0; i < count; i++) b->owner[order[i].system - b->first] = (int)(i % ranks);
}

void batch_part(const struct system_batch *b, int rank, gidx *first, gidx *end)
{
  gidx i = 0, count = b->end - b->first;
  while (i < count && b->reader[i] < rank) i++;
  *first = b->first + i;
  while (i < count && b->reader[i] == rank) i++;
  *end = b->first + i;
}
