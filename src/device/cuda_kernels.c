/* SPDX-License-Identifier: BSD-3-Clause
 * Which constants each kernel is compiled with: one table for launchers and tests, after
 * kernels/plan.h and filter_types.h. */
#include "device/cuda_kernels.h"

#include <stdio.h>

static void define(struct kernel_recipe *r, const char *name, int value)
{
  snprintf(r->defines[r->n_defines++], DEFINE_MOST, "-D%s=%d", name, value);
}

static void define_filter(struct kernel_recipe *r, const struct kernel_shape *shape)
{
  struct filter_form form = filter_form_of(shape->wgmma, shape->d, shape->sample);
  define(r, "WGMMA", form.wgmma);
  define(r, "FRAME", form.frame);
  define(r, "SAMPLE", form.sample);
  define(r, "VECTORS", form.vectors);
  define(r, "STAGES", form.stages);
}

void kernel_recipe(enum kernel_name name, const struct kernel_shape *shape, struct kernel_recipe *r)
{
  static const struct kernel_recipe recipes[KERNELS] = {
      [KERNEL_PICK] = {.file = "pick.cu", .entry = "pick"},
      [KERNEL_PACK] = {.file = "pack.cu", .entry = "pack"},
      [KERNEL_ROUTE] = {.file = "route.cu", .entry = "route", .hot = 1},
      [KERNEL_MERGE] = {.file = "merge.cu", .entry = "merge"},
      [KERNEL_GRAM] = {.file = "gram.cu", .entry = "gram", .hot = 1},
      [KERNEL_CODES] = {.file = "codes.cu", .entry = "codes", .hot = 1},
      [KERNEL_HALVE_ATOMS] = {.file = "halve_atoms.cu", .entry = "halve_atoms"},
      [KERNEL_HALVE_ROWS] = {.file = "halve_rows.cu", .entry = "halve_rows"},
      [KERNEL_FILTER] = {.file = "filter.cu", .entry = "filter", .hot = 1},
      [KERNEL_GUESS] = {.file = "guess.cu", .entry = "guess"},
      [KERNEL_CUT] = {.file = "cut.cu", .entry = "cut"},
      [KERNEL_CHAINS] = {.file = "chains.cu", .entry = "chains", .hot = 1},
      [KERNEL_CHOOSE] = {.file = "choose.cu", .entry = "choose"},
  };
  struct route_form form = route_form_of(shape->bulk, shape->d, shape->take);
  *r = recipes[name];
  if (name == KERNEL_ROUTE || name == KERNEL_MERGE) define(r, "CAPACITY", form.capacity);
  if (name == KERNEL_GRAM || name == KERNEL_CODES) {
    define(r, "MMA", shape->mma);
    define(r, "ONE", shape->one);
  }
  if (name == KERNEL_FILTER) define_filter(r, shape);
  if (name != KERNEL_ROUTE) return;
  define(r, "BULK", form.bulk);
  define(r, "FRAMES", form.frames);
  define(r, "ATOMS_THREAD", form.atoms_thread);
  define(r, "COLUMNS", form.columns);
  define(r, "STAGES", form.stages);
}
