/* SPDX-License-Identifier: BSD-3-Clause
 * Loading kernels: what a job is likely to launch side by side when the device is opened, because
 * the first job on a machine compiles them; all else at its first launch. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/cuda.h"

static int kernel_add(struct cuda_state *s, const struct kernel_recipe *recipe,
                      const struct kernel_image *image)
{
  CHECK(s->n_kernels < CUDA_KERNELS_MOST, ERR_INTERNAL, "more than %d kernels", CUDA_KERNELS_MOST);
  struct cuda_kernel *k = &s->kernels[s->n_kernels];
  *k = (struct cuda_kernel){.recipe = *recipe};
  TRY_CU(cudaLibraryLoadData(&k->library, image->bytes, NULL, NULL, 0, NULL, NULL, 0));
  cudaError_t error = cudaLibraryGetKernel(&k->kernel, k->library, recipe->entry);
  if (error) cudaLibraryUnload(k->library);
  TRY_CU(error);
  s->n_kernels++;
  return OK;
}

int cuda_kernel_find(struct cuda_state *s, const struct kernel_recipe *recipe,
                     struct cuda_kernel **out)
{
  for (int i = 0; i < s->n_kernels; i++) {
    *out = &s->kernels[i];
    if (!memcmp(&(*out)->recipe, recipe, sizeof *recipe)) return OK;
  }
  struct kernel_image image;
  TRY(kernel_load(recipe, s->architecture, s->options.kernels, &image));
  int status = kernel_add(s, recipe, &image);
  free(image.bytes);
  if (!status) *out = &s->kernels[s->n_kernels - 1];
  return status;
}

/* Kernels that the job will launch, or is likely to. */
struct likely {
  struct kernel_recipe recipes[KERNELS + 2];
  int count;
};

static void likely_add(struct likely *list, enum kernel_name name, const struct kernel_shape *shape)
{
  kernel_recipe(name, shape, &list->recipes[list->count++]);
}

/* Those that take long to compile stand first. */
static void likely_list(const struct cuda_state *s, struct likely *list)
{
  static const enum kernel_name filter[] = {KERNEL_CUT,    KERNEL_CHAINS,      KERNEL_HALVE_ROWS,
                                            KERNEL_CHOOSE, KERNEL_HALVE_ATOMS, KERNEL_GUESS};
  const struct device_options *o = &s->options;
  struct kernel_shape shape = cuda_codes_shape(s, o->support * o->d);
  shape.bulk = s->bulk;
  shape.wgmma = s->filter.wgmma;
  shape.d = o->d;
  shape.take = o->take;
  if (o->support) likely_add(list, KERNEL_CODES, &shape);
  if (o->support && !shape.one) likely_add(list, KERNEL_GRAM, &shape);
  likely_add(list, KERNEL_ROUTE, &shape);
  for (shape.sample = 0; s->filter.is_on && shape.sample < 2; shape.sample++)
    likely_add(list, KERNEL_FILTER, &shape);
  for (int i = 0; s->filter.is_on && i < LENGTH(filter); i++) likely_add(list, filter[i], &shape);
  struct kernel_shape probe = {.wgmma = s->filter.wgmma, .sample = 1, .d = 1};
  if (s->filter.is_on && o->d > 1) likely_add(list, KERNEL_FILTER, &probe);
  likely_add(list, KERNEL_MERGE, &shape);
  likely_add(list, KERNEL_PACK, &shape);
}

int cuda_prepare(struct device *dev)
{
  struct cuda_state *s = dev->state;
  struct likely list = {.count = 0};
  struct kernel_image images[LENGTH(list.recipes)] = {0};
  if (s->options.take == 0) return OK;
  likely_list(s, &list);
#pragma omp parallel for num_threads(s->options.threads) schedule(dynamic, 1)
  for (int i = 0; i < list.count; i++)
    if (kernel_load(&list.recipes[i], s->architecture, s->options.kernels, &images[i]))
      status_clear(); /* its launch tries again and says why */
  int status = OK;
  for (int i = 0; i < list.count; i++) {
    if (!status && images[i].bytes) status = kernel_add(s, &list.recipes[i], &images[i]);
    free(images[i].bytes);
  }
  return status;
}
