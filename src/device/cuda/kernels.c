/* SPDX-License-Identifier: BSD-3-Clause
 * Turns the table of kernels, and the forms of kernels/forms.h, screen_types.h and others, into the
 * -D constants of one program. */
#include "device/cuda/kernels.h"

#include <stdio.h>

static void define(struct kernel_recipe *r, const char *name, int value)
{
  snprintf(r->defines[r->n_defines++], MAX_DEFINE, "-D%s=%d", name, value);
}

static void define_route(struct kernel_recipe *r, const struct route_form *form)
{
  define(r, "BULK", form->bulk);
  define(r, "FRAMES", form->frames);
  define(r, "ATOMS_THREAD", form->atoms_thread);
  define(r, "COLUMNS", form->columns);
  define(r, "STAGES", form->stages);
}

static void define_screen(struct kernel_recipe *r, const struct kernel_shape *shape)
{
  struct screen_form form = screen_form_of(shape->wgmma, shape->d, shape->sample);
  define(r, "WGMMA", form.wgmma);
  define(r, "FRAME", form.frame);
  define(r, "SAMPLE", form.sample);
  define(r, "VECTORS", form.vectors);
  define(r, "STAGES", form.stages);
}

static void define_product(struct kernel_recipe *r, const struct kernel_shape *shape)
{
  struct product_form form =
      product_form_of(shape->deep_a, shape->deep_b, shape->narrow, shape->large);
  define(r, "MMA", shape->mma);
  define(r, "DEEP_A", form.deep_a);
  define(r, "DEEP_B", form.deep_b);
  define(r, "ROWS", form.rows);
  define(r, "COLUMNS", form.columns);
  define(r, "STAGES", form.stages);
}

static void define_triad(struct kernel_recipe *r, const struct kernel_shape *shape,
                         struct triad_form form, int teams)
{
  define(r, "TILE_ROWS", form.rows);
  define(r, "TILE_COLUMNS", form.columns);
  define(r, "ROW_QUADS", form.row_quads);
  define(r, "COLUMN_QUADS", form.column_quads);
  /* The code for the edges of matrices takes registers too. */
  define(r, "BESIDE", form.beside - (form.beside > 1 && !shape->whole));
  define(r, "DEEP_A", shape->deep_a);
  define(r, "DEEP_B", shape->deep_b);
  define(r, "WHOLE", shape->whole);
  define(r, "PARTS", shape->deep_a || shape->deep_b || teams ? form.most_parts : form.parts);
  define(r, "TEAMS", teams);
  define(r, "SLOTS", form.slots);
}

static void define_tensor(struct kernel_recipe *r, const struct kernel_shape *shape,
                          struct tensor_form form)
{
  define(r, "WGMMA", form.wgmma);
  define(r, "VECTORS", form.vectors);
  define(r, "STAGES", form.stages);
  define(r, "CLUSTER", form.cluster);
  define(r, "STORED", shape->stored);
  define(r, "DEEP_A", !shape->stored || shape->deep_a);
  define(r, "DEEP_B", !shape->stored || shape->deep_b);
}

static void define_softmax(struct kernel_recipe *r, const struct kernel_shape *shape)
{
  define(r, "HEAD_D", shape->head_d);
  define(r, "HEAD_DV", shape->head_dv);
  define(r, "CELLS", shape->cells);
  define(r, "CAPPED", shape->capped);
  define(r, "SUMS", shape->sums);
}

static void define_mixer(struct kernel_recipe *r, const struct kernel_shape *shape)
{
  define(r, "HEAD_D", shape->head_d);
  define(r, "HEAD_DV", shape->head_dv);
  define(r, "BY_COLUMN", shape->by_column);
  define(r, "COLUMNS", shape->mixer.columns);
  define(r, "THREADS", shape->mixer.threads);
  define(r, "CHUNK", shape->mixer.chunk);
}

struct kernel_shape codes_shape(int architecture, idx vectors)
{
  return (struct kernel_shape){.mma = architecture == 90, .one = codes_chunks(vectors) == 1};
}

void kernel_recipe(enum kernel_name name, const struct kernel_shape *shape, struct kernel_recipe *r)
{
#define ROW(NAME, file, hot, defines) [KERNEL_##NAME] = {#file ".cu", #file, hot, defines},
  static const struct {
    const char *file, *entry;
    int hot, defines;
  } kernels[KERNELS] = {KERNEL_TABLE(ROW)};
#undef ROW
  struct route_form form = route_form_of(shape->bulk, shape->d, shape->top_k);
  int defines = kernels[name].defines;
  *r = (struct kernel_recipe){kernels[name].file, kernels[name].entry, kernels[name].hot, 0, {""}};
  if (defines & DEFINES_LISTS) define(r, "CAPACITY", form.capacity);
  if (defines & DEFINES_ROUTE) define_route(r, &form);
  if (defines & DEFINES_CODES) define(r, "MMA", shape->mma);
  if (defines & DEFINES_CODES) define(r, "ONE", shape->one);
  if (defines & DEFINES_DESCEND) define(r, "MMA", shape->mma);
  if (defines & DEFINES_DESCEND) define(r, "STAGES", descend_stages(shape->large));
  if (defines & DEFINES_PRODUCT) define_product(r, shape);
  if (defines & DEFINES_TRIAD)
    define_triad(r, shape, triad_product_form(shape->tiles), shape->teams);
  if (defines & DEFINES_GRADIENT && !shape->whole) r->hot = 0; /* the edges may spill registers */
  if (defines & DEFINES_GRADIENT)
    define_triad(r, shape, triad_gradient_form(shape->whole), shape->whole);
  if (defines & DEFINES_SCREEN) define_screen(r, shape);
  if (defines & DEFINES_VALUE) define(r, "POSITIVE", shape->positive);
  if (defines & DEFINES_TEST) define(r, "TEST_HOOKS", shape->test_hooks);
  if (defines & DEFINES_ARROW) define(r, "ARROW_D", shape->d);
  if (defines & DEFINES_ARROW) define(r, "ARROW_K", shape->k);
  if (defines & DEFINES_TEAM) define(r, "ARROW_TEAM", shape->team);
  if (defines & DEFINES_TEAM) define(r, "ARROW_HELD", shape->held);
  if (defines & DEFINES_TEAM) define(r, "ARROW_ALONE", shape->alone);
  if (defines & DEFINES_STEP) define(r, "STEP_D", shape->d);
  if (defines & DEFINES_ROUNDS) define(r, "ARROW_ROUNDS", shape->rounds);
  if (defines & (DEFINES_TEAM | DEFINES_CHAINS)) define(r, "MMA", shape->mma);
  if (defines & DEFINES_WALK) define_softmax(r, shape);
  if (defines & DEFINES_PRECISION) define(r, "PRECISION", shape->precision);
  if (defines & DEFINES_TENSOR) define_tensor(r, shape, tensor_form_of(shape->wgmma, 0));
  if (defines & DEFINES_TURNED) define_tensor(r, shape, tensor_form_of(shape->wgmma, 1));
  if (defines & DEFINES_MIXER) define_mixer(r, shape);
  if (defines & DEFINES_FEW) define(r, "FEW", shape->few);
  if (defines & DEFINES_FEW) define(r, "STAGES", shape->few_stages);
}
