/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: fetched atoms are the requested ones, whatever the table keeps.  Atoms in the table do not
 * travel again, and the table keeps no more than its limit.  A rank that owns atoms has its tiles
 * on the device, or only on the host.  This is tested on the CPU and, if there are any, on GPUs,
 * which ranks share or not.
 * RUN: np=1 2 3 4 */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "comm/buffers.h"
#include "device_how.h"
#include "encode/fetch.h"

enum { K = 301, D = 2, S = 3, ROWS = 6, REQUESTED = ROWS * S };
static idx p = 5, fetches = 100;

/* Vector v of an atom has two entries, in its own columns. */
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

/* Do the slots point to the requested atoms, on the device? */
static int slots_good(struct shard *t, const struct atom_table *table, struct device *dev,
                      const struct atom_request *w)
{
  struct buffer found = {0}, fetched;
  gidx n = (gidx)w->n * S, unit = D * p * (gidx)sizeof(float);
  struct gather_job job = {&fetched, w->slot, n, unit, &found, 0};
  int good = !buffer_alloc(dev, &found, n * unit) && !table_atoms(t, table, dev, &fetched) &&
             !device_gather(dev, &job) && !device_get(dev, &found, 0, n * unit);
  const float *at = found.host;
  for (gidx i = 0; good && i < n * D * p; i++)
    good = at[i] == value_of(w->atoms[i / (D * p)], i % (D * p));
  buffer_free(dev, &found);
  return good;
}

/* The pass in which owners change to tiles on the host, as if memory became short; -1: none. */
static int host_pass = -1;

/* Two fetches for the same rows, as two rounds make them.  Slots of the first fetch must be right
 * after the second one, too.  Returns 1 if they are, and 0 otherwise. */
static int rows_fetch(struct shard *t, struct atom_table *table, struct comm *c, struct device *dev,
                      int pass)
{
  idx atoms[REQUESTED], slot[REQUESTED];
  idx n = (c->rank + pass) % 3 == 0 ? 0 : ROWS; /* a rank may want none */
  for (idx i = 0; i < n * S; i++)
    atoms[i] = (idx)random_below(7, (uint64_t)pass, (uint64_t)(c->rank * REQUESTED + i),
                                 pass < fetches / 2 ? 20 : K);
  struct atom_request first = {atoms, slot, n, S, 0, 1}, rest = {atoms, slot, n, S, 1, S};
  struct atom_request all = {atoms, slot, n, S, 0, S};
  int status = table_fetch(t, table, c, dev, &first);
  if (pass == host_pass) {
    buffer_free(dev, &t->copy);
    t->from_host = 1;
  }
  if (!status) status = table_fetch(t, table, c, dev, &rest);
  return !status && slots_good(t, table, dev, &all);
}

static void test_fetch(struct shard *t, struct comm *c, struct device *dev, gidx max)
{
  struct atom_table table = {0};
  struct arena arena = {0};
  int good = table_init(&table, t, &arena, max, REQUESTED) == OK;
  double few = 0, before = c->bytes;
  idx largest = 0, forgotten = 0;
  for (int pass = 0; pass < fetches; pass++) {
    good &= rows_fetch(t, &table, c, dev, pass);
    if (table.used > largest) largest = table.used;
    idx had = table.used;
    table_release(&table, t, REQUESTED);
    forgotten += table.used < had;
    if (pass == fetches / 2 - 1) few = c->bytes - before;
  }
  gidx limit = max > REQUESTED ? max : REQUESTED;
  ok(good, "%s: all slots hold their atoms, %lld kept, %s", dev->kind, (long long)max,
     t->from_host ? "from the host" : "from the device");
  ok(largest <= limit && table.capacity <= limit, "no more atoms are kept than allowed");
  if (max >= K) ok(!forgotten, "no atom is forgotten if all may be kept");
  gidx once = 20 * D * p * (gidx)sizeof(float), names = 20 * (gidx)sizeof(idx) * c->size;
  gidx counts = 2 * fetches * (gidx)sizeof(idx) * c->size; /* counts, and statuses */
  if (max >= 20 + REQUESTED)
    ok(few <= (double)(once + names + counts), "20 atoms travel once: %.0f bytes", few);
  table_free(&table, dev);
  arena_free(&arena);
}

/* Route a row to long lists, and then to short ones, for which gates on a GPU have other tiles. */
static int route_tiles_change(struct device *dev)
{
  struct buffer row = {0}, lists = {0};
  int status = buffer_alloc(dev, &row, p * (gidx)sizeof(float));
  if (!status) status = buffer_alloc(dev, &lists, K * (gidx)sizeof(struct entry));
  for (idx top_k = 200; top_k > 0 && !status; top_k -= 199) {
    struct route_job job = {.rows = &row, .n = 1, .top_k = top_k, .lists = &lists};
    status = device_route(dev, &job);
  }
  buffer_free(dev, &row);
  buffer_free(dev, &lists);
  return status;
}

/* Is there a copy of the atoms on the device only if it is needed?  It is not needed if the filter
 * keeps the atoms without padding, or if this rank gives its atoms from the host. */
static int kept_once(const struct shard *t, struct device *dev, const struct how *how)
{
  struct buffer view;
  if (device_atoms(dev, &view)) return 0;
  int keeps = how->filter && p % 4 == 0;
  int copied = !keeps && !t->from_host;
  return t->held == 0 || ((view.device != NULL) == keeps && (t->copy.bytes > 0) == copied);
}

/* width: of a tile; if there is one tile, only one rank has atoms.  host_every: 1: each rank gives
 * atoms from the host; 2: every second rank does; 0: none does. */
static void test_device(struct comm *c, const struct how *how, idx width, int host_every)
{
  static const gidx limits[] = {0, REQUESTED, 20 + REQUESTED, 100, K};
  static const char *const atoms_of[] = {"the device", "the host", "either",
                                         "the device, later the host"};
  struct atom_source source = {
      .k = K, .d = D, .p = p, .name = "made atoms", .self = NULL, .read = atoms_make};
  struct device_options options = how_options(how, p, D, K);
  struct device dev = {0};
  struct shard t = {0};
  options.local_rank = c->local_rank;
  int status = comm_agree(c, device_open(&dev, &options));
  if (!status) status = comm_devices_open(c, c, &dev, 0);
  if (!status) status = shard_load(&t, c, &source, width, 0, &dev);
  t.from_host = host_every && c->rank % host_every == 0;
  claim_begin("%s, tiles of %d, atoms from %s: the requested atoms are there, and no more than "
              "allowed are kept",
              how->kind, width, atoms_of[host_pass >= 0 ? 3 : host_every]);
  ok(!status, "%s: tiles of %d: %s", how->kind, width, status ? status_message() : "loaded");
  for (int i = 0; i < LENGTH(limits) && !status; i++) {
    test_fetch(&t, c, &dev, limits[i]);
    if (i % 2) status = comm_agree(c, route_tiles_change(&dev));
  }
  ok(!status && kept_once(&t, &dev, how), "%s: no copy where the device keeps atoms as they are",
     dev.kind);
  claim_end();
  comm_devices_close(c);
  shard_free(&t, &dev);
  device_close(&dev);
}

static void test_how(struct comm *c, const struct how *how)
{
  test_device(c, how, K, 0);
  for (int host_every = 0; host_every <= 2; host_every++) test_device(c, how, 17, host_every);
  host_pass = 7;
  test_device(c, how, 17, 0);
  host_pass = -1;
}

/* With the filter a GPU keeps the atoms as they are, unless it pads their columns. */
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
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  if (is_small()) fetches = 20;
  test_how(&c, &cpu);
  if (gpu_present()) {
    test_how(&c, &how_cuda);
    test_kept(&c);
  }
  int status = done_testing();
  return comm_close(&c) || status;
}
