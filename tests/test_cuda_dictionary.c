/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: atoms that are put on a GPU arrive there unchanged, with their numbers (indices), in tiles
 * of any length, whether threads or CUDA copy them. */
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/team.h"
#include "device_how.h"

enum { P = 768, MOST = 15000, FIRST = 1000 };
static float *atoms; /* [MOST][P] */

/* Draw atoms that are all nearly orthogonal. */
static void atoms_fill(void)
{
  for (gidx i = 0; i < MOST * P; i++) atoms[i] = (float)random_normal(3, 1, (uint64_t)i);
}

/* Put the atoms on the device in tiles, whose widths are those of `widths` in turn.  numbers[] <-
 * the numbers of the atoms; they have gaps between tiles. */
static int tiles_put(struct device *dev, const idx *widths, int count, idx *numbers)
{
  int status = OK, tile = 0;
  for (idx at = 0, n; at < MOST && !status; at += n, tile++) {
    n = (idx)imin(widths[tile % count], MOST - at);
    for (idx i = 0; i < n; i++) numbers[at + i] = at + i + FIRST * tile;
    status = device_put_tile(dev, atoms + (gidx)at * P, n, at + FIRST * tile);
  }
  return status;
}

/* The number of atoms that differ on the device; -1: an error. */
static gidx atoms_wrong(struct device *dev)
{
  struct buffer view, copy = {0};
  gidx bytes = (gidx)MOST * P * (gidx)sizeof *atoms, wrong = 0;
  struct gather_job job = {&view, NULL, 0, P * (gidx)sizeof *atoms, &copy, 0};
  idx *names = malloc(MOST * sizeof *names);
  for (idx i = 0; i < MOST; i++) names[i] = i;
  job.names = names;
  job.n = MOST;
  int status = device_atoms(dev, &view);
  if (!status) status = buffer_alloc(dev, &copy, bytes);
  if (!status) status = device_gather(dev, &job);
  if (!status) status = device_get(dev, &copy, 0, bytes);
  const float *got = copy.host;
  for (gidx a = 0; a < MOST && !status; a++)
    wrong += memcmp(got + a * P, atoms + a * P, P * sizeof *atoms) != 0;
  buffer_free(dev, &copy);
  free(names);
  return status ? -1 : wrong;
}

/* Route some of the atoms as rows.  Returns the number of rows whose best atom has another number
 * than expected; -1: an error. */
static gidx numbers_wrong(struct device *dev, const idx *numbers)
{
  enum { ROWS = 300 };
  struct buffer rows = {0}, lists = {0};
  struct route_job job = {.rows = &rows, .n = ROWS, .top_k = 1, .lists = &lists};
  gidx wrong = 0;
  int status = buffer_alloc(dev, &rows, ROWS * P * (gidx)sizeof *atoms);
  if (!status) status = buffer_alloc(dev, &lists, ROWS * (gidx)sizeof(struct entry));
  float *x = rows.host;
  for (gidx i = 0; i < ROWS && !status; i++)
    memcpy(x + i * P, atoms + i * (MOST / ROWS) * P, P * sizeof *x);
  if (!status) status = device_put(dev, &rows, 0, rows.bytes);
  if (!status) status = device_route(dev, &job);
  if (!status) status = device_get(dev, &lists, 0, lists.bytes);
  const struct entry *found = lists.host;
  for (gidx i = 0; i < ROWS && !status; i++) wrong += found[i].atom != numbers[i * (MOST / ROWS)];
  buffer_free(dev, &rows);
  buffer_free(dev, &lists);
  return status ? -1 : wrong;
}

static void dictionary_check(int threads, const char *filter, const idx *widths, int count)
{
  const struct how how = {.kind = "cuda", .variant = "auto", .threads = 1, .filter = filter};
  struct device_options options = how_options(&how, P, 1, MOST);
  struct device dev = {0};
  idx *numbers = malloc(MOST * sizeof *numbers);
  options.threads = threads;
  int status = device_open(&dev, &options);
  if (!status) status = tiles_put(&dev, widths, count, numbers);
  gidx atoms_differ = status ? -1 : strcmp(filter, "on") ? 0 : atoms_wrong(&dev);
  gidx numbers_differ = status ? -1 : numbers_wrong(&dev, numbers);
  ok(!status && !atoms_differ && !numbers_differ,
     "%d threads, filter %s, tiles of %d: %lld atoms, %lld numbers differ %s", threads, filter,
     widths[0], (long long)atoms_differ, (long long)numbers_differ, status_message());
  status_clear();
  device_close(&dev);
  free(numbers);
}

int main(void)
{
  static const idx even[] = {4096}, all[] = {MOST}, odd[] = {1, 2731, 5000, 17};
  static const int threads[] = {1, 3, 16};
  if (!gpu_present()) return done_testing();
  atoms = malloc((size_t)MOST * P * sizeof *atoms);
  atoms_fill();
  for (int i = 0; i < LENGTH(threads); i++) {
    claim_begin("the device holds the atoms and numbers that %d threads put there", threads[i]);
    for (int filter = 0; filter < 2; filter++) {
      dictionary_check(threads[i], filter ? "on" : "off", even, 1);
      dictionary_check(threads[i], filter ? "on" : "off", all, 1);
      dictionary_check(threads[i], filter ? "on" : "off", odd, LENGTH(odd));
    }
    claim_end();
  }
  free(atoms);
  return done_testing();
}
