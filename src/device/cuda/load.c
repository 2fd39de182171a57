/* SPDX-License-Identifier: BSD-3-Clause
 * Kernels that a job is likely to launch are loaded when the device is opened.  Several threads do
 * this, because the first job on a machine compiles them.  Other kernels are loaded later, at the
 * latest by their first launch. */
#include "device/cuda/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/cuda/jit.h"
#include "device/cuda/screen_window.h"

static int kernel_add(struct cuda_state *s, const struct kernel_recipe *recipe,
                      const struct kernel_image *image)
{
  CHECK(s->n_kernels < MAX_CUDA_KERNELS, ERR_INTERNAL, "more than %d kernels", MAX_CUDA_KERNELS);
  struct cuda_kernel *k = &s->kernels[s->n_kernels];
  *k = (struct cuda_kernel){.recipe = *recipe};
  TRY_CU(cudaLibraryLoadData(&k->library, image->bytes, NULL, NULL, 0, NULL, NULL, 0));
  cudaError_t error = cudaLibraryGetKernel(&k->kernel, k->library, recipe->entry);
  if (error) cudaLibraryUnload(k->library);
  TRY_CU(error);
  s->n_kernels++;
  return OK;
}

/* The kernel, borrowed until the device is closed; NULL if it is not loaded. */
static struct cuda_kernel *kernel_loaded(struct cuda_state *s, const struct kernel_recipe *recipe)
{
  for (int i = 0; i < s->n_kernels; i++)
    if (!memcmp(&s->kernels[i].recipe, recipe, sizeof *recipe)) return &s->kernels[i];
  return NULL;
}

/* *out <- the kernel, loaded if necessary. */
static int kernel_find(struct cuda_state *s, const struct kernel_recipe *recipe,
                       struct cuda_kernel **out)
{
  *out = kernel_loaded(s, recipe);
  if (*out) return OK;
  struct kernel_image image;
  TRY(kernel_image_get(recipe, s->architecture, s->options.kernels, &image));
  int status = kernel_add(s, recipe, &image);
  free(image.bytes);
  if (!status) *out = &s->kernels[s->n_kernels - 1];
  return status;
}

/* A launch in CUDA's form. */
struct ready {
  struct cuda_kernel *kernel;
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config;
};

enum { CLUSTER_PORTABLE = 8 }; /* blocks that every GPU of 9.0 allows in a cluster */

/* Find the kernel, compiled and loaded if necessary, and set the attributes that the launch
 * needs. */
static int launch_prepare(struct device *dev, const struct cuda_launch *l, struct ready *r)
{
  struct cuda_state *s = dev->state;
  struct kernel_recipe recipe;
  kernel_recipe(l->name, &l->shape, &recipe);
  TRY(kernel_find(s, &recipe, &r->kernel));
  struct cuda_kernel *k = r->kernel;
  const void *function = (const void *)k->kernel;
  if (l->shared > k->shared)
    TRY_CU(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, l->shared));
  if (l->is_dense && !k->shared)
    TRY_CU(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                cudaSharedmemCarveoutMaxShared));
  k->shared = l->shared > k->shared ? l->shared : k->shared;
  if (l->cluster > CLUSTER_PORTABLE)
    TRY_CU(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  r->config = (cudaLaunchConfig_t){.gridDim = l->grid,
                                   .blockDim = l->block,
                                   .dynamicSmemBytes = (size_t)l->shared,
                                   .stream = l->stream ? l->stream : s->stream,
                                   .attrs = r->attributes};
  if (l->cluster > 1)
    r->attributes[r->config.numAttrs++] = (cudaLaunchAttribute){
        .id = cudaLaunchAttributeClusterDimension, .val.clusterDim = {(unsigned)l->cluster, 1, 1}};
  if (l->is_early)
    r->attributes[r->config.numAttrs++] =
        (cudaLaunchAttribute){.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                              .val.programmaticStreamSerializationAllowed = 1};
  return OK;
}

int cuda_launch(struct device *dev, const struct cuda_launch *l)
{
  struct cuda_state *s = dev->state;
  struct ready r;
  void *arguments[] = {l->arguments};
  pthread_mutex_lock(&s->loading);
  int status = launch_prepare(dev, l, &r);
  pthread_mutex_unlock(&s->loading);
  TRY(status);
  TRY_CU(cudaLaunchKernelExC(&r.config, (const void *)r.kernel->kernel, arguments));
  cuda_count(&dev->counts.kernels, 1);
  return OK;
}

int cuda_clusters(struct device *dev, const struct cuda_launch *l, int *clusters)
{
  struct ready r;
  TRY(launch_prepare(dev, l, &r));
  if (cudaOccupancyMaxActiveClusters(clusters, (const void *)r.kernel->kernel, &r.config)) {
    cudaGetLastError();
    *clusters = 0;
  }
  return OK;
}

/* Kernels that jobs will launch, or will probably launch. */
struct likely {
  struct kernel_recipe recipes[KERNELS + 2];
  int count;
};

static void likely_add(struct likely *list, enum kernel_name name, const struct kernel_shape *shape)
{
  kernel_recipe(name, shape, &list->recipes[list->count++]);
}

/* Kernels that take long to compile come first. */
static void likely_list(const struct cuda_state *s, struct likely *list)
{
  static const enum kernel_name screen[] = {KERNEL_PRUNE,        KERNEL_RESCORE,
                                            KERNEL_TO_F16_ROWS,  KERNEL_SELECT_TOPK,
                                            KERNEL_TO_F16_ATOMS, KERNEL_THRESHOLD};
  static const enum kernel_name encoder[] = {KERNEL_ENCODER_SCORES, KERNEL_ENCODER_COUNT,
                                             KERNEL_ENCODER_SCATTER, KERNEL_ENCODER_ORDER,
                                             KERNEL_NORMAL_STARTS};
  const struct device_options *o = &s->options;
  struct kernel_shape shape = codes_shape(s->architecture, o->support * o->d);
  shape.bulk = s->sizes.bulk;
  shape.wgmma = s->sizes.wgmma;
  shape.test_hooks = cuda_test_hooks(s);
  shape.positive = o->nonnegative;
  shape.d = o->d;
  shape.top_k = o->top_k;
  if (o->support) likely_add(list, o->nonnegative ? KERNEL_NONNEGATIVE : KERNEL_CODES, &shape);
  if (o->support && !shape.one) likely_add(list, KERNEL_GRAM, &shape);
  for (int i = 0; o->encoder && i < LENGTH(encoder); i++) likely_add(list, encoder[i], &shape);
  likely_add(list, KERNEL_ROUTE, &shape);
  for (shape.sample = 0; s->screen.is_on && shape.sample < 2; shape.sample++)
    likely_add(list, KERNEL_SCREEN, &shape);
  for (int i = 0; s->screen.is_on && i < LENGTH(screen); i++) likely_add(list, screen[i], &shape);
  struct kernel_shape probe = {.wgmma = s->sizes.wgmma, .sample = 1, .d = 1};
  if (s->screen.is_on && (o->d > 1 || o->nonnegative)) likely_add(list, KERNEL_SCREEN, &probe);
  likely_add(list, KERNEL_MERGE, &shape);
  likely_add(list, KERNEL_PACK, &shape);
  if (o->preprocess) likely_add(list, KERNEL_PREPROCESS, &shape);
  if (o->preprocess) likely_add(list, KERNEL_COLUMN_SUMS, &shape);
}

int cuda_load(struct device *dev, const struct kernel_recipe *recipes, int count)
{
  struct cuda_state *s = dev->state;
  struct kernel_image *images = calloc((size_t)count + 1, sizeof *images);
  CHECK(images, ERR_MEMORY, "cannot allocate a list of %d kernels", count);
#pragma omp parallel for num_threads(s->options.threads) schedule(dynamic, 1)
  for (int i = 0; i < count; i++)
    if (!kernel_loaded(s, &recipes[i]) &&
        kernel_image_get(&recipes[i], s->architecture, s->options.kernels, &images[i]))
      status_clear(); /* the launch tries again, and reports why */
  int status = OK;
  for (int i = 0; i < count; i++) {
    if (!status && images[i].bytes) status = kernel_add(s, &recipes[i], &images[i]);
    free(images[i].bytes);
  }
  free(images);
  return status;
}

int cuda_prepare(struct device *dev)
{
  struct cuda_state *s = dev->state;
  struct likely list = {.count = 0};
  if (s->options.top_k == 0) return OK;
  likely_list(s, &list);
  TRY(cuda_load(dev, list.recipes, list.count));
  /* Without an encoder the job waits for the dictionary now, so the trial takes no additional
   * time. */
  return s->options.encoder ? OK : cuda_screen_try(dev);
}
