/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: fetched atoms are those that were wanted, whatever the table keeps; what it keeps does not
 * travel again, and is no more than it may be.
 * RUN: np=1 2 3 */
#include <math.h>

#include "base/order.h"
#include "base/status.h"
#include "stage/tiles.h"
#include "tap.h"

enum { K = 301, D = 2, P = 5, S = 3, ROWS = 6, FETCHES = 200, WANTED = ROWS * S };

/* Vector v of an atom has two entries, in columns of its own. */
static float value_of(gidx atom, gidx i)
{
  gidx vector = i / P, column = i % P - 2 * vector;
  return column == 0 ? cosf(0.01f * (float)atom) : column == 1 ? sinf(0.01f * (float)atom) : 0;
}

static int atoms_make(void *self, idx first, idx count, float *out)
{
  (void)self;
  for (gidx a = 0; a < count; a++)
    for (gidx i = 0; i < D * P; i++) out[a * D * P + i] = value_of(first + a, i);
  return OK;
}

/* Do the slots hold the atoms that were wanted?  A single rank's table is its tiles. */
static int slots_good(const struct atom_table *table, const struct wanted *w)
{
  const float *at = table->atoms.host;
  for (gidx i = 0; i < (gidx)w->n * S; i++)
    for (gidx j = 0; j < D * P; j++)
      if (i % S >= w->from && i % S < w->to &&
          at[(gidx)w->slot[i] * D * P + j] != value_of(w->atoms[i], j))
        return 0;
  return 1;
}

/* Two fetches for the same rows, as two rounds make them; the second leaves the slots of the first
 * as they are.  1 if all is well. */
static int rows_fetch(struct tiles *t, struct atom_table *table, struct comm *c, struct device *dev,
                      int turn)
{
  idx atoms[WANTED], slot[WANTED];
  idx n = (c->rank + turn) % 3 == 0 ? 0 : ROWS; /* a rank may want none */
  for (idx i = 0; i < n * S; i++)
    atoms[i] = (idx)random_below(7, (uint64_t)turn, (uint64_t)(c->rank * WANTED + i),
                                 turn < FETCHES / 2 ? 20 : K);
  struct wanted first = {atoms, slot, n, S, 0, 1}, rest = {atoms, slot, n, S, 1, S};
  struct wanted all = {atoms, slot, n, S, 0, S};
  int status = tiles_fetch(t, table, c, dev, &first) || tiles_fetch(t, table, c, dev, &rest);
  return !status && slots_good(table, &all);
}

static void test_fetch(struct tiles *t, struct comm *c, struct device *dev, gidx most)
{
  struct atom_table table = {0};
  int good = table_init(&table, t, most) == OK;
  double few = 0, before = c->bytes;
  idx largest = 0, forgotten = 0;
  for (int turn = 0; turn < FETCHES; turn++) {
    good &= rows_fetch(t, &table, c, dev, turn);
    if (table.used > largest) largest = table.used;
    idx had = table.used;
    table_leave(&table, t, WANTED);
    forgotten += table.used < had;
    if (turn == FETCHES / 2 - 1) few = c->bytes - before;
  }
  gidx limit = most > WANTED ? most : WANTED;
  ok(good, "all slots hold their atoms, %lld kept", (long long)most);
  ok(largest <= limit && table.room <= limit, "no more are kept");
  ok(most < K || !forgotten, "none is forgotten where all may be kept");
  gidx once = 20 * D * P * (gidx)sizeof(float), names = 20 * (gidx)sizeof(idx) * c->size;
  gidx counts = FETCHES * (gidx)sizeof(idx) * c->size;
  if (most >= 20 + WANTED)
    ok(few <= (double)(once + names + counts), "20 atoms travel once: %.0f bytes", few);
  table_free(&table, dev);
}

int main(void)
{
  static const gidx mosts[] = {0, WANTED, 20 + WANTED, 100, K};
  struct atom_source source = {K, D, P, "made atoms", NULL, atoms_make};
  struct device_options options = {.p = P, .d = D, .atoms_most = K, .threads = 1};
  options.kind = "cpu";
  options.variant = "auto";
  struct comm c;
  struct device dev = {0};
  struct tiles t = {0};
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  int status = comm_watch(&c, 60);
  if (!status) status = device_open(&dev, &options);
  if (!status) status = tiles_load(&t, &c, &source, 17, 0, &dev);
  ok(!status, "tiles: %s", status ? status_message() : "loaded");
  for (int i = 0; i < LENGTH(mosts) && !status; i++) test_fetch(&t, &c, &dev, mosts[i]);
  tiles_free(&t);
  device_close(&dev);
  ok(comm_close(&c) == OK, "close");
  return done_testing();
}
