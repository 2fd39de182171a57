/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: fetched atoms are those that were wanted, whatever the table keeps; what it keeps does not
 * travel again, and is no more than it may be; whether owners have their tiles on the device or on
 * the host alone.  On the CPU and, where there is one, on GPUs, shared or one a rank.
 * RUN: np=1 2 3 4 */
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "device_how.h"
#include "stage/tiles.h"

enum { K = 301, D = 2, S = 3, ROWS = 6, WANTED = ROWS * S };
static idx p = 5, fetches = 100;

/* Vector v of an atom has two entries, in columns of its own. */
static float value_of(gidx atom, gidx i)
{
  gidx vector = i / p, column = i % p - 2 * vector;
  return column == 0 ? cosf(0.01f * (float)atom) : column == 1 ? sinf(0.01f * (float)atom) : 0;
}

static int atoms_make(void *self, idx first, idx count, float *out)
{
  (void)self;
  for (gidx a = 0; a < count; a++)
    for (gidx i = 0; i < D * p; i++) out[a * D * p + i] = value_of(first + a, i);
  return OK;
}

/* Do the slots point to the atoms that were wanted, on the device side? */
static int slots_good(struct tiles *t, const struct atom_table *table, struct device *dev,
                      const struct wanted *w)
{
  struct buffer found = {0}, fetched;
  gidx n = (gidx)w->n * S, unit = D * p * (gidx)sizeof(float);
  struct pick_job job = {&fetched, w->slot, n, unit, &found, 0};
  int good = !device_take(dev, &found, n * unit) && !tiles_fetched(t, table, dev, &fetched) &&
             !device_pick(dev, &job) && !device_get(dev, &found, 0, n * unit);
  const float *at = found.host;
  for (gidx i = 0; good && i < n * D * p; i++)
    good = at[i] == value_of(w->atoms[i / (D * p)], i % (D * p));
  device_drop(dev, &found);
  return good;
}

/* A turn in whose middle owners turn to the host, because memory has become short; -1: none. */
static int host_turn = -1;

/* Two fetches for the same rows, as two rounds make them; slots of the first are right after the
 * second too.  1 if all is well. */
static int rows_fetch(struct tiles *t, struct atom_table *table, struct comm *c, struct device *dev,
                      int turn)
{
  idx atoms[WANTED], slot[WANTED];
  idx n = (c->rank + turn) % 3 == 0 ? 0 : ROWS; /* a rank may want none */
  for (idx i = 0; i < n * S; i++)
    atoms[i] = (idx)random_below(7, (uint64_t)turn, (uint64_t)(c->rank * WANTED + i),
                                 turn < fetches / 2 ? 20 : K);
  struct wanted first = {atoms, slot, n, S, 0, 1}, rest = {atoms, slot, n, S, 1, S};
  struct wanted all = {atoms, slot, n, S, 0, S};
  int status = tiles_fetch(t, table, c, dev, &first);
  if (turn == host_turn) {
    device_drop(dev, &t->own);
    t->from_host = 1;
  }
  if (!status) status = tiles_fetch(t, table, c, dev, &rest);
  return !status && slots_good(t, table, dev, &all);
}

static void test_fetch(struct tiles *t, struct comm *c, struct device *dev, gidx most)
{
  struct atom_table table = {0};
  int good = table_init(&table, t, most) == OK;
  double few = 0, before = c->bytes;
  idx largest = 0, forgotten = 0;
  for (int turn = 0; turn < fetches; turn++) {
    good &= rows_fetch(t, &table, c, dev, turn);
    if (table.used > largest) largest = table.used;
    idx had = table.used;
    table_leave(&table, t, WANTED);
    forgotten += table.used < had;
    if (turn == fetches / 2 - 1) few = c->bytes - before;
  }
  gidx limit = most > WANTED ? most : WANTED;
  ok(good, "%s: all slots hold their atoms, %lld kept, %s", dev->kind, (long long)most,
     t->from_host ? "from the host" : "from the device");
  ok(largest <= limit && table.room <= limit, "no more are kept");
  ok(most < K || !forgotten, "none is forgotten where all may be kept");
  gidx once = 20 * D * p * (gidx)sizeof(float), names = 20 * (gidx)sizeof(idx) * c->size;
  gidx counts = fetches * (gidx)sizeof(idx) * c->size;
  if (most >= 20 + WANTED)
    ok(few <= (double)(once + names + counts), "20 atoms travel once: %.0f bytes", few);
  table_free(&table, dev);
}

/* Route a row for long lists, then for short ones, which gates on a GPU have other tiles for. */
static int tiles_change(struct device *dev)
{
  struct buffer row = {0}, lists = {0};
  int status = device_take(dev, &row, p * (gidx)sizeof(float));
  if (!status) status = device_take(dev, &lists, K * (gidx)sizeof(struct entry));
  for (idx take = 200; take > 0 && !status; take -= 199) {
    struct route_job job = {.rows = &row, .n = 1, .take = take, .lists = &lists};
    status = device_route(dev, &job);
  }
  device_drop(dev, &row);
  device_drop(dev, &lists);
  return status;
}

/* A copy only where it is needed: not with the filter, unless columns are padded there. */
static int kept_once(const struct tiles *t, struct device *dev, const struct how *how)
{
  struct buffer view;
  if (device_atoms(dev, &view)) return 0;
  int keeps = how->filter && p % 4 == 0;
  int copied = !keeps && !t->from_host;
  return t->held == 0 || ((view.device != NULL) == keeps && (t->own.bytes > 0) == copied);
}

/* width: of a tile; with one tile all but one rank have no atoms.  host_every: each rank, or every
 * second one, gives atoms from the host; 0: none does. */
static void test_device(struct comm *c, const struct how *how, idx width, int host_every)
{
  static const gidx mosts[] = {0, WANTED, 20 + WANTED, 100, K};
  struct atom_source source = {K, D, p, "made atoms", NULL, atoms_make};
  struct device_options options = how_options(how, p, D, K);
  struct device dev = {0};
  struct tiles t = {0};
  options.local_rank = c->local_rank;
  int status = comm_agree(c, device_open(&dev, &options));
  if (!status) status = comm_devices(c, &dev);
  if (!status) status = tiles_load(&t, c, &source, width, 0, &dev);
  t.from_host = host_every && c->rank % host_every == 0;
  ok(!status, "%s: tiles of %d: %s", how->kind, width, status ? status_message() : "loaded");
  for (int i = 0; i < LENGTH(mosts) && !status; i++) {
    test_fetch(&t, c, &dev, mosts[i]);
    if (i % 2) status = comm_agree(c, tiles_change(&dev));
  }
  ok(!status && kept_once(&t, &dev, how), "%s: no copy where the device keeps atoms as they are",
     dev.kind);
  comm_devices_close(c);
  tiles_free(&t, &dev);
  device_close(&dev);
}

static void test_how(struct comm *c, const struct how *how)
{
  test_device(c, how, K, 0);
  for (int host_every = 0; host_every <= 2; host_every++) test_device(c, how, 17, host_every);
  host_turn = 7;
  test_device(c, how, 17, 0);
  host_turn = -1;
}

/* With the filter a GPU keeps the atoms as they are, unless their columns are padded there. */
static void test_kept(struct comm *c)
{
  struct how kept = how_cuda;
  kept.filter = "on";
  for (p = 5; p <= 8; p += 3) test_device(c, &kept, 17, 0);
  p = 5;
}

int main(void)
{
  static const struct how cpu = {.kind = "cpu", .variant = "auto", .threads = 1};
  const char *small = getenv("SMALL"); /* for tools that slow everything */
  struct comm c;
  if (comm_open(&c) || comm_watch(&c, 60)) return 1;
  tap_rank = c.rank;
  if (small && *small) fetches = 20;
  test_how(&c, &cpu);
  if (gpu_present()) {
    test_how(&c, &how_cuda);
    test_kept(&c);
  }
  int status = done_testing();
  return comm_close(&c) || status;
}
