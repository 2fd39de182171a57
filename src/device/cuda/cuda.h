/* SPDX-License-Identifier: BSD-3-Clause
 * The CUDA device from inside: the state that its files share.
 *
 * Floor: device.  One stream computes, another copies for a second thread and takes rows in, one
 * more sums their columns for a third, and one exchanges arrays with other GPUs (comm); dense work
 * has one for its panels, which the first one waits for.  Every operation has ended when it
 * returns, but for tiles that are put, place and steps of training: what comes after them on the
 * stream waits.
 *
 * Each file calls those below it alone, and each header includes only what is below it:
 *
 *     open                  life cycle, table of operations
 *     route                 a job: windows of the dictionary, launches of rows
 *     screen    codes       a launch by the certified filter; codes of rows
 *     encoder               supports of rows by an imported encoder
 *     attention             attention of many sequences
 *     mixer                 gated delta nets of many sequences
 *     preprocess                rows as they come
 *     normal                the normal equations of all atoms, and their descent
 *     joint                 the matrix S of all rows
 *     dense                 large dense matrices
 *     train                 what steps of training do beside codes
 *     train_batch train_nested  codes of whole batches; nested widths, and a bias before
 *     train_codes           codes of rows
 *     triad                 products, gradients and steps of training
 *     tensor    tensor_map  the same by the matrix unit; maps of matrices for bulk copies
 *     arrow                 arrow systems, and those that the CPU solves
 *     arrow_subbatch             a sub-batch of systems, from host to host
 *     arrow_size            in which form a system is solved, and what it takes of a lot
 *     steps                 the steps of all atoms
 *     screen_window         the filter's form of the window, whether it is used
 *     screen_probe          the matrix unit on trial
 *     screen_launch exact   the filter's kernels; a launch by the direct kernels
 *     dictionary            the window of the dictionary that is on the device
 *     upload                large arrays of the host
 *     memory                buffers, copies, workspaces, and what the plan says
 *     load                  kernels on the device, and their launch
 *     cuda                  this state, failures
 *     jit cache kernels plan    without a GPU: compiling, keeping, naming; the plan of memory */
#ifndef DEVICE_CUDA_CUDA_H
#define DEVICE_CUDA_CUDA_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "device/backend.h"
#include "device/cuda/kernels.h"
#include "device/cuda/plan.h"

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

enum { MAX_CUDA_KERNELS = 2048 }; /* systems of mixed shapes need many */

/* Memory of the device that grows when asked. */
struct cuda_work {
  void *at;
  gidx bytes;
};

/* Every workspace; all of them are in the plan's ledger, but for the last three. */
struct cuda_works {
  struct cuda_work packed, atom_of, staging; /* the window, see struct cuda_plan */
  struct cuda_work frames, f16, norms;       /* the same for the filter */
  struct cuda_work rows, lists, counts, bad; /* a launch of the direct kernels */
  struct cuda_work excluded;                 /* of a launch, in either way */
  struct cuda_work screen_rows, screen;      /* a launch of the filter's kernels */
  struct cuda_work values, encoder;          /* a launch of an encoder's kernels, beside `rows` */
  struct cuda_work out;                      /* lists of all rows, of one window */
  struct cuda_work states;                   /* of codes */
  struct cuda_work names;                    /* of what is gathered */
  struct cuda_work triad;                    /* of products and gradients that bring none */
  struct cuda_work scaled;                   /* rows of frames, where one has a power of two */
};
enum { CUDA_WORKS = sizeof(struct cuda_works) / sizeof(struct cuda_work) };

/* The certified filter (doc/certified.md). */
struct cuda_screen {
  int is_on, is_automatic;            /* automatic: off again where it does not pay */
  int is_tried;                       /* the matrix unit; where it failed the filter is off */
  double gamma;                       /* (C.8) */
  idx first, filled;                  /* slots that are fp16 tiles now */
  idx turn;                           /* their order */
  cudaEvent_t marks[SCREEN_LEFT + 1]; /* around the stages */
};

/* Page-locked memory through which large arrays go (upload.c). */
struct cuda_upload {
  void *part[4];
  cudaEvent_t sent[4]; /* what a part had has left it */
  int turn;
};

/* Memory of the caller that is page-locked, as host and device see it. */
struct cuda_pin {
  const char *host, *device;
  gidx bytes;
};
enum { CUDA_PINS = 16 };

struct cuda_arrow; /* arrow.c */

struct cuda_state {
  struct device_options options;
  int number, architecture;
  int shared, shared_all; /* bytes that a block may have, and all blocks of a multiprocessor */
  double clock;           /* Hz */
  char name[256];
  cudaStream_t stream, copies, sums, exchanges;
  cudaEvent_t computed;                    /* what exchanges wait for */
  cudaEvent_t exchanged[DEVICE_EXCHANGES]; /* turn by turn */
  pthread_mutex_t loading;                 /* of kernels, which several threads launch */
  struct cuda_kernel kernels[MAX_CUDA_KERNELS];
  int n_kernels;
  struct plan_sizes sizes;
  struct cuda_plan plan;     /* window 0: not made yet, the dictionary has not come */
  int shortages;             /* how often memory failed that the plan had counted on */
  struct cuda_piece *pieces; /* owned, in order of slots */
  int n_pieces, pieces_capacity;
  int ascending;                   /* numbers rise with slots */
  idx tile;                        /* atoms of a packed tile now; 0: nothing is there */
  idx window_first, window_filled; /* slots that are on the device now */
  struct cuda_screen screen;
  struct cuda_upload upload;
  struct cuda_pin pins[CUDA_PINS];
  int n_pins;
  struct cuda_arrow *arrow; /* owned; NULL: there were no systems yet */
  void *map_encode;         /* of tensor_map.c, once it was wanted */
  union {
    struct cuda_works work;
    struct cuda_work works[CUDA_WORKS];
  };
};

/* Turn CUDA's failure into ours: ERR_MEMORY or ERR_DEVICE. */
int cuda_fail(cudaError_t error, const char *file, int line);
#define TRY_CU(call)                                                                               \
  do {                                                                                             \
    cudaError_t cu_ = (call);                                                                      \
    if (cu_) return cuda_fail(cu_, __FILE__, __LINE__);                                            \
  } while (0)

/* Wait for the computing stream; a fault of a kernel surfaces here. */
int cuda_finish(struct cuda_state *s);

/* Add to a count, which two threads may do. */
static inline void cuda_count(gidx *count, gidx bytes)
{
  __atomic_fetch_add(count, bytes, __ATOMIC_RELAXED);
}

#endif
