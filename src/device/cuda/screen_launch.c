/* SPDX-License-Identifier: BSD-3-Clause
 * Grids and blocks follow the heads of the kernels. */
#include "device/cuda/screen_launch.h"

#include <math.h>

#include "base/num.h"
#include "device/cuda/load.h"

struct screen_step cuda_screen_step(int architecture)
{
  int hopper = architecture / 10 == 9, group = hopper ? 16 : 8;
  return (struct screen_step){group, (group + 1) * (hopper ? 0x1p-25 : 0x1p-23) + 0x1p-23};
}

double cuda_screen_gamma(int architecture, gidx terms)
{
  struct screen_step step = cuda_screen_step(architecture);
  double sum = (double)ceil_div(terms, step.group) * (2 * step.loss);
  return sum < 0.5 ? sum / (1 - sum) : INFINITY;
}

int cuda_screen_launch(struct device *dev, enum kernel_name name, struct screen_args *a, gidx rows,
                       gidx shared)
{
  struct cuda_launch launch = {.name = name,
                               .shape = {.test_hooks = cuda_test_hooks(dev->state)},
                               .grid = {(unsigned)ceil_div(rows, SCREEN_ROW_WARPS), 1, 1},
                               .shared = (int)shared * SCREEN_ROW_WARPS,
                               .arguments = a};
  launch.block = (dim3){SCREEN_ROW_WARPS * WARP, 1, 1};
  return cuda_launch(dev, &launch);
}

int cuda_screen_product(struct device *dev, struct screen_args *a, int sample)
{
  struct cuda_state *s = dev->state;
  struct kernel_shape shape = {
      .wgmma = s->sizes.wgmma, .sample = sample, .positive = a->positive, .d = a->d};
  struct screen_form form = screen_form_of(shape.wgmma, shape.d, sample);
  int pairs = a->row_tiles * a->atom_tiles;
  a->blocks = (int)imin(pairs, s->sizes.multiprocessors);
  struct cuda_launch launch = {.name = KERNEL_SCREEN,
                               .shape = shape,
                               .grid = {(unsigned)a->blocks, 1, 1},
                               .block = {(unsigned)screen_threads(form.wgmma), 1, 1},
                               .shared = screen_shared_bytes(form.vectors, form.stages),
                               .arguments = a};
  return cuda_launch(dev, &launch);
}

int cuda_screen_to_f16(struct device *dev, struct to_f16_args *a)
{
  struct cuda_launch launch = {.name = KERNEL_TO_F16_ATOMS,
                               .grid = {(unsigned)ceil_div(a->padded, SCREEN_ROW_WARPS), 1, 1},
                               .block = {SCREEN_ROW_WARPS * WARP, 1, 1},
                               .arguments = a};
  return cuda_launch(dev, &launch);
}
