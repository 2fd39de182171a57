/* SPDX-License-Identifier: BSD-3-Clause
 * The kernels as texts, how each is specialised, and their compiled images.
 *
 * Floor: device.  Needs NVRTC, but no driver and no GPU. */
#ifndef DEVICE_CUDA_KERNELS_H
#define DEVICE_CUDA_KERNELS_H

#include "base/types.h"
#include "filter_types.h"

/* Files of the folder kernels, built in; the last has no name. */
struct kernel_text {
  const char *name, *text;
};
extern const struct kernel_text kernel_texts[];

enum kernel_name {
  KERNEL_PICK,
  KERNEL_PACK,
  KERNEL_ROUTE,
  KERNEL_MERGE,
  KERNEL_GRAM,
  KERNEL_CODES,
  KERNEL_HALVE_ATOMS,
  KERNEL_HALVE_ROWS,
  KERNEL_FILTER,
  KERNEL_GUESS,
  KERNEL_CUT,
  KERNEL_CHAINS,
  KERNEL_CHOOSE,
  KERNELS
};

/* What a kernel is specialised for. */
struct kernel_shape {
  int bulk;          /* of route_form_of() */
  int mma;           /* of codes: the GPU has tensor instructions for f64 that are chains of fma */
  int one;           /* of codes: a row has at most WARP vectors */
  int wgmma, sample; /* of filter_form_of() */
  idx d, take;
};

enum { DEFINES_MOST = 12, DEFINE_MOST = 40 };
struct kernel_recipe {
  const char *file, *entry;
  int hot; /* must not spill registers */
  int n_defines;
  char defines[DEFINES_MOST][DEFINE_MOST]; /* -DNAME=VALUE */
};
void kernel_recipe(enum kernel_name name, const struct kernel_shape *shape,
                   struct kernel_recipe *recipe);

struct kernel_image {
  void *bytes; /* owned: free() */
  size_t size;
};

/* Compile for an architecture (90 is sm_90a); the texts are those of `folder`, or built in where
 * that is NULL.  *log (owned by the caller; may be NULL) receives what the compiler said about
 * registers.  ERR_INTERNAL with its errors. */
int kernel_compile(const struct kernel_recipe *recipe, int architecture, const char *folder,
                   struct kernel_image *image, char **log);

/* The same from the cache on disk, which it fills; a damaged entry is made again. */
int kernel_load(const struct kernel_recipe *recipe, int architecture, const char *folder,
                struct kernel_image *image);

/* Entries of the cache: the image that belongs to a key, under $XDG_CACHE_HOME/sagitta or
 * ~/.cache/sagitta.  1 when found whole. */
int cache_find(const char *key, struct kernel_image *image);
/* Failures are only logged: a cache is not needed. */
void cache_store(const char *key, const struct kernel_image *image);

#endif
