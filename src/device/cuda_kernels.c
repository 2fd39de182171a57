/* SPDX-License-Identifier: BSD-3-Clause
 * Which constants each kernel is compiled with: one table for launchers and tests, after
 * kernels/plan.h. */
#include "device/cuda_kernels.h"

#include <stdio.h>

static void define(struct kernel_recipe *r, const char *name, int value)
{
  snprintf(r->defines[r->n_defines++], DEFINE_MOST, "-D%s=%d", name, value);
}

void kernel_recipe(enum kernel_name name, const struct kernel_shape *shape, struct kernel_recipe *r)
{
  static const struct kernel_recipe recipes[KERNELS] = {
      [KERNEL_PACK] = {.file = "pack.cu", .entry = "pack"},
      [KERNEL_ROUTE] = {.file = "route.cu", .entry = "route", .hot = 1},
      [KERNEL_MERGE] = {.file = "merge.cu", .entry = "merge"},
      [KERNEL_CODES] = {.file = "codes.cu", .entry = "codes", .hot = 1},
  };
  struct route_form form = route_form_of(shape->bulk, shape->d, shape->take);
  *r = recipes[name];
  if (name == KERNEL_ROUTE || name == KERNEL_MERGE) define(r, "CAPACITY", form.capacity);
  if (name == KERNEL_CODES) define(r, "MMA", shape->mma);
  if (name != KERNEL_ROUTE) return;
  define(r, "BULK", form.bulk);
  define(r, "FRAMES", form.frames);
  define(r, "ATOMS_THREAD", form.atoms_thread);
  define(r, "COLUMNS", form.columns);
  define(r, "STAGES", form.stages);
}
