/* SPDX-License-Identifier: BSD-3-Clause
 * The CUDA device from inside: its state, workspaces, and how kernels are launched.
 *
 * Floor: device.  One stream computes, another copies for a second thread.  Every operation has
 * ended when it returns. */
#ifndef DEVICE_CUDA_H
#define DEVICE_CUDA_H

#include <cuda_runtime_api.h>

#include "base/memory.h"
#include "device/backend.h"
#include "device/cuda_filter.h"
#include "device/cuda_kernels.h"

/* A run of atoms with consecutive numbers, in the order in which they were put. */
struct cuda_piece {
  const float *atoms; /* [count][d][p], borrowed */
  idx count, first, slot;
};

/* A kernel as it was specialised and loaded. */
struct cuda_kernel {
  struct kernel_recipe recipe;
  cudaLibrary_t library;
  cudaKernel_t kernel;
  int shared; /* bytes of dynamic shared memory that were allowed */
};

enum { CUDA_KERNELS_MOST = 64 };

struct cuda_state {
  struct device_options options;
  int number, architecture, multiprocessors;
  int bulk;     /* as in kernels/plan.h */
  int shared;   /* bytes that a block may have */
  double clock; /* Hz */
  char name[256];
  cudaStream_t stream, copies;
  struct cuda_kernel kernels[CUDA_KERNELS_MOST];
  int n_kernels;
  struct cuda_piece *pieces; /* owned, in order of slots */
  int n_pieces, pieces_room;
  int ascending;                    /* numbers rise with slots */
  idx window;                       /* slots that are on the device at once; 0: not chosen yet */
  idx window_first, window_filled;  /* those there now */
  idx tile;                         /* atoms of a packed tile */
  idx rows_most;                    /* rows of a launch; 0: all */
  struct cuda_work packed, atom_of; /* of the window */
  struct cuda_filter filter;
  struct cuda_work staging, rows, lists, counts, excluded, out, bad, states, names;
};

/* Turn CUDA's failure into ours: ERR_MEMORY or ERR_DEVICE. */
int cuda_fail(cudaError_t error, const char *file, int line);
#define TRY_CU(call)                                                                               \
  do {                                                                                             \
    cudaError_t cu_ = (call);                                                                      \
    if (cu_) return cuda_fail(cu_, __FILE__, __LINE__);                                            \
  } while (0)

/* ERR_MEMORY with the numbers; the old content is lost. */
int cuda_reserve(struct cuda_state *s, struct cuda_work *w, gidx bytes);
void cuda_release(struct cuda_work *w);

/* The kernel, loaded if it was not (cuda_load.c); borrowed until the device is closed. */
int cuda_kernel_find(struct cuda_state *s, const struct kernel_recipe *recipe,
                     struct cuda_kernel **out);
/* What kernels of codes of so many vectors a row are specialised for. */
struct kernel_shape cuda_codes_shape(const struct cuda_state *s, idx vectors);

/* Compile or find the kernel, and launch it on the computing stream with one struct as argument. */
struct cuda_launch {
  enum kernel_name name;
  struct kernel_shape shape;
  dim3 grid, block;
  int shared; /* bytes of dynamic shared memory */
  void *arguments;
};
int cuda_launch(struct device *dev, const struct cuda_launch *launch);

/* Add to a count, which two threads may do. */
static inline void cuda_count(gidx *count, gidx bytes)
{
  __atomic_fetch_add(count, bytes, __ATOMIC_RELAXED);
}

/* Wait for the computing stream; a fault of a kernel surfaces here. */
int cuda_finish(struct cuda_state *s);

/* Operations of the table, of the same form. */
int cuda_prepare(struct device *dev);
int cuda_take(struct device *dev, struct buffer *b);
int cuda_wrap(struct device *dev, struct buffer *b);
int cuda_spare(struct device *dev, struct buffer *b);
void cuda_drop(struct device *dev, struct buffer *b);
int cuda_put(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
int cuda_get(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
int cuda_pick(struct device *dev, const struct pick_job *job);
int cuda_room(struct device *dev, gidx *bytes);
int cuda_copy_rate(struct device *dev, double *rate);
int cuda_put_tile(struct device *dev, const float *atoms, idx count, idx first);
int cuda_atoms(struct device *dev, struct buffer *view);
int cuda_route(struct device *dev, struct route_job *job);
gidx cuda_codes_state(const struct device *dev, idx m_most, real rho);
int cuda_codes(struct device *dev, const struct codes_job *job);

/* The share of the dictionary: window[..] is what is on the device (cuda_tiles.c).
 * Bring slots first .. first + window - 1, packed in tiles of so many atoms; *count: how many slots
 * there are. */
int cuda_window(struct device *dev, idx first, idx tile, idx *count);
/* For want of memory: give up an automatic filter, or halve the window; ERR_MEMORY below one tile
 * of the kernel. */
int cuda_window_halve(struct device *dev);

#endif
