/* SPDX-License-Identifier: BSD-3-Clause
 * Internals of the CUDA device: the state that its files share.
 *
 * Floor: device.  Streams: `stream` computes; `copies` serves device_put and preprocess_run; `sums`
 * serves preprocess_sums; `exchanges` is for exchanges with other GPUs (comm).  Dense matrices have
 * one more, for panels; each sub-batch of arrow systems has streams of its own.  Operations have
 * ended when they return, except put_tile, place, and those whose headers say otherwise; later work
 * on the stream waits for them.
 *
 * Each file calls only files below it in this list, and each header includes only headers below it:
 *
 *     open                  life cycle, table of operations
 *     route                 a job of routing: windows of the dictionary, launches of rows
 *     screen    codes       a launch with the certified filter; codes of rows
 *     encoder               supports of rows by an imported encoder
 *     attention             attention of many sequences
 *     mixer                 gated delta nets of many sequences
 *     preprocess            rows as they are read
 *     normal                the normal equations of all atoms, and their descent
 *     joint                 the matrix S of all rows
 *     dense                 large dense matrices
 *     train                 the other parts of a training step
 *     train_batch train_nested  codes of whole batches; nested widths, bias before the encoder
 *     train_codes           codes of rows
 *     triad                 products, gradients and steps of training
 *     tensor    tensor_map  the same on the matrix unit; maps of matrices for bulk copies
 *     arrow                 arrow systems of a job, and those that the CPU solves
 *     arrow_subbatch        a sub-batch of systems, from host to host
 *     arrow_size            the form of a system, and its memory in a sub-batch
 *     steps                 the steps of all atoms
 *     screen_window         the filter's form of the window; whether the filter is used
 *     screen_probe          the trial of the matrix unit
 *     screen_launch exact   the filter's kernels; a launch of the direct kernels
 *     dictionary            the window: the part of the dictionary that is on the device
 *     upload                copies of large host arrays
 *     memory                buffers, copies, workspaces, and carrying out the plan
 *     load                  kernels on the device, and their launch
 *     cuda                  this state, failures
 *     jit cache kernels plan    without a GPU: compile, keep and name kernels; plan the memory */
#ifndef DEVICE_CUDA_CUDA_H
#define DEVICE_CUDA_CUDA_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "device/backend.h"
#include "device/cuda/kernels.h"
#include "device/cuda/plan.h"

/* A run of atoms with consecutive global numbers, as put by one call.  slot: its first slot
 * (dictionary.h). */
struct cuda_piece {
  const float *atoms; /* [count][d][p], borrowed */
  idx count, first, slot;
};

/* A kernel, specialised and loaded. */
struct cuda_kernel {
  struct kernel_recipe recipe;
  cudaLibrary_t library;
  cudaKernel_t kernel;
  int shared; /* the largest dynamic shared memory of its launches so far, in bytes */
};

enum { MAX_CUDA_KERNELS = 2048 }; /* systems of mixed shapes need many */

/* Device memory that grows on demand. */
struct cuda_work {
  void *at;
  gidx bytes;
};

/* All workspaces.  The plan counts all of them except the last three. */
struct cuda_works {
  struct cuda_work packed, atom_of, staging; /* the window, see struct cuda_plan */
  struct cuda_work frames, f16, norms;       /* the window for the filter */
  struct cuda_work rows, lists, counts, bad; /* a launch of the direct kernels */
  struct cuda_work excluded;                 /* a launch of either kind */
  struct cuda_work screen_rows, screen;      /* a launch of the filter's kernels */
  struct cuda_work values, encoder;          /* a launch of an encoder, which also uses `rows` */
  struct cuda_work out;                      /* lists of all rows for one window */
  struct cuda_work states;                   /* states of codes */
  struct cuda_work names;                    /* names of a gather job */
  struct cuda_work triad;                    /* products and gradients whose `work` is NULL */
  struct cuda_work scaled;                   /* rows of frames times their powers of two */
};
enum { CUDA_WORKS = sizeof(struct cuda_works) / sizeof(struct cuda_work) };

/* The certified filter (doc/certified.md). */
struct cuda_screen {
  int is_on, is_automatic; /* automatic: turned off when it does not pay */
  int is_tried;            /* the trial of the matrix unit ran; if it failed, is_on = 0 */
  double gamma;            /* (C.8) */
  idx first, filled;       /* the first slot in the fp16 tiles; the number of slots in them */
  idx turn;                /* stride that gives the order of slots in the tiles */
  cudaEvent_t marks[SCREEN_LEFT + 1]; /* between the stages */
};

/* Page-locked memory through which large arrays are copied (upload.c). */
struct cuda_upload {
  void *part[4];
  cudaEvent_t sent[4]; /* the copy from this part to the GPU has ended */
  int turn;            /* the part that was used last */
};

/* Page-locked memory of the caller, with its host and device addresses. */
struct cuda_pin {
  const char *host, *device;
  gidx bytes;
};
enum { CUDA_PINS = 16 };

struct cuda_arrow; /* arrow.c */

struct cuda_state {
  struct device_options options;
  int number, architecture;
  int shared, shared_all; /* bytes of shared memory: per block, and per multiprocessor */
  double clock;           /* Hz */
  char name[256];
  cudaStream_t stream, copies, sums, exchanges;
  cudaEvent_t computed;                    /* exchanges wait for it */
  cudaEvent_t exchanged[DEVICE_EXCHANGES]; /* one for each recent turn */
  pthread_mutex_t loading;                 /* for loads of kernels: several threads launch */
  struct cuda_kernel kernels[MAX_CUDA_KERNELS];
  int n_kernels;
  struct plan_sizes sizes;
  struct cuda_plan plan;     /* window = 0: not made yet, since there is no dictionary */
  int shortages;             /* times that the plan was made again after a failed allocation */
  struct cuda_piece *pieces; /* owned, in order of slots */
  int n_pieces, pieces_capacity;
  int ascending;                   /* 1: global numbers ascend with slots */
  idx tile;                        /* atoms per packed tile; 0: nothing is packed */
  idx window_first, window_filled; /* first slot of the window; number of slots on the device */
  struct cuda_screen screen;
  struct cuda_upload upload;
  struct cuda_pin pins[CUDA_PINS];
  int n_pins;
  struct cuda_arrow *arrow; /* owned; NULL: no systems so far */
  void *map_encode;         /* used by tensor_map.c; NULL: not needed so far */
  union {
    struct cuda_works work;
    struct cuda_work works[CUDA_WORKS];
  };
};

/* Turn a failure of CUDA into ERR_MEMORY or ERR_DEVICE. */
int cuda_fail(cudaError_t error, const char *file, int line);
#define TRY_CU(call)                                                                               \
  do {                                                                                             \
    cudaError_t cu_ = (call);                                                                      \
    if (cu_) return cuda_fail(cu_, __FILE__, __LINE__);                                            \
  } while (0)

/* Wait for the computing stream; reports faults of kernels. */
int cuda_finish(struct cuda_state *s);

/* Add to a counter; several threads may do so at once. */
static inline void cuda_count(gidx *count, gidx bytes)
{
  __atomic_fetch_add(count, bytes, __ATOMIC_RELAXED);
}

#endif
