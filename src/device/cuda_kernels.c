/* SPDX-License-Identifier: BSD-3-Clause
 * Which constants each kernel is compiled with: the one table for launchers and tests. */
#include "device/cuda_kernels.h"

#include <stdio.h>

#include "types.h"

struct route_cut route_cut(const struct kernel_shape *shape)
{
  struct route_cut cut = {.warps = 8, .columns = 16, .merge_warps = 4};
  cut.bulk = shape->architecture >= 90;
  cut.atoms_thread = cut.bulk ? 16 : 8;
  cut.stages = cut.bulk ? 4 : 3;
  cut.capacity = shape->take <= 32 ? 64 : (2 * shape->take + 31) / 32 * 32;
  cut.rows = 16 * cut.warps;
  cut.atoms = 16 * cut.atoms_thread;
  int stages = cut.stages * cut.columns * (cut.rows + cut.atoms) * 4;
  int scratch = cut.warps * 8 * cut.atoms_thread * WARP * 4;
  int rest = 2 * cut.stages * 8 + cut.stages * 4 + 2 * cut.rows * 4;
  cut.shared = (stages + scratch + rest + 127) / 128 * 128;
  return cut;
}

static void define(struct kernel_recipe *r, const char *name, int value)
{
  snprintf(r->defines[r->n_defines++], DEFINE_MOST, "-D%s=%d", name, value);
}

void kernel_recipe(enum kernel_name name, const struct kernel_shape *shape, struct kernel_recipe *r)
{
  struct route_cut cut = route_cut(shape);
  static const struct kernel_recipe recipes[KERNELS] = {
      [KERNEL_PACK] = {.file = "pack.cu", .entry = "pack"},
      [KERNEL_ROUTE] = {.file = "route.cu", .entry = "route", .hot = 1},
      [KERNEL_MERGE] = {.file = "merge.cu", .entry = "merge"},
  };
  *r = recipes[name];
  if (name == KERNEL_PACK) return;
  define(r, "CAPACITY", cut.capacity);
  if (name == KERNEL_MERGE) {
    define(r, "MERGE_WARPS", cut.merge_warps);
    return;
  }
  define(r, "BULK", cut.bulk);
  define(r, "ATOMS_THREAD", cut.atoms_thread);
  define(r, "COLUMNS", cut.columns);
  define(r, "STAGES", cut.stages);
  define(r, "FRAMES", shape->d > 1);
  define(r, "WARPS", cut.warps);
  define(r, "PIPE", 0);
}
