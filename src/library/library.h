/* SPDX-License-Identifier: BSD-3-Clause
 * libsagitta: supports and codes of rows inside another program, with the bits of `sagitta encode`.
 *
 * Floor: library.  This header includes no other of ours; scripts/python/sagitta/library.py has it
 * in ctypes.
 *
 * There is no MPI, no signal handler, no output and no exit here.  The only files are the cached
 * kernels of a GPU (doc/environment.md).  Functions return 0 or an exit code of doc/design.md, with
 * the text of sagitta_message().  All state is in handles.  A handle may be used by one thread at a
 * time; several handles may compute in parallel.  CUDA is opened only if a handle asks for a
 * GPU. */
#ifndef LIBRARY_LIBRARY_H
#define LIBRARY_LIBRARY_H

#include <stdint.h>

#define SAGITTA_API __attribute__((visibility("default")))

/* Increased with every change of a struct or function of this header. */
enum { SAGITTA_ABI = 2 };

/* How rows are described.  Arrays are borrowed until sagitta_close() and must not change. */
struct sagitta_options {
  int32_t abi;           /* SAGITTA_ABI */
  int32_t k, p;          /* atoms, columns */
  const float *atoms;    /* [k][p], of unit norm */
  const double *mean;    /* [p] subtracted from rows; NULL: none */
  int32_t top_s, rounds; /* without an encoder; top_s <= k, rounds <= top_s */
  int32_t nonnegative;   /* solved codes are at least 0 */
  double rho;
  int32_t threads;              /* at least 1 */
  const char *variant, *filter; /* as --cpu-variant and --filter; NULL: auto */
  const char *device;           /* cpu, or cuda: a GPU, which takes no encoder; NULL: cpu */
  int32_t gpu;                  /* number of the GPU, as CUDA counts in this process */

  /* The encoder of a dictionary.h5 (doc/formats.md, /encoder). */
  const char *encoder; /* its kind: relu, topk, jumprelu, batchtopk or active; NULL: none */
  int32_t top;         /* of topk */
  int32_t centered, rescaled;
  int32_t solves;         /* codes are solved on its supports; 0: its own codes; not for active */
  const float *weights;   /* [k][p]; not for active */
  const float *bias;      /* [k]; not for active */
  const float *threshold; /* [k] of jumprelu and batchtopk */
  const float *norm;      /* [k]; NULL: 1 */
  int32_t relative;       /* for active, as are floor, n_cuts and cuts */
  double floor;
  int32_t n_cuts;
  const float *cuts; /* [n_cuts] */
};

/* Row i has entries start[i] .. start[i + 1] - 1, in the order in which `sagitta encode` writes
 * them. */
struct sagitta_codes {
  int64_t n;            /* rows */
  const int64_t *start; /* [n + 1] */
  const int32_t *atoms; /* [entries], as are score and codes */
  const float *score;   /* by which the atom was chosen */
  const float *codes;
};

struct sagitta; /* a handle */

SAGITTA_API int sagitta_abi(void);
/* The message of this thread's last failed call; valid until its next call. */
SAGITTA_API const char *sagitta_message(void);

SAGITTA_API int sagitta_open(const struct sagitta_options *options, struct sagitta **handle);
/* *codes <- the codes of x[n][p]; they belong to the handle, and are valid until its next call. */
SAGITTA_API int sagitta_encode(struct sagitta *handle, const float *x, int64_t n,
                               struct sagitta_codes *codes);
/* atoms[n][top_s], codes[n][top_s] <- the supports and codes of x[n][p], in the order in which
 * atoms are chosen.  All arrays are in the memory of the handle's device; x is not changed.
 * stream: a cudaStream_t of a GPU, whose work so far is waited for.  The GPU becomes the current
 * one of the calling thread.  Results are complete on return.  Not with an encoder. */
SAGITTA_API int sagitta_support(struct sagitta *handle, const float *x, int64_t n, void *stream,
                                int32_t *atoms, float *codes);
/* bytes[2] <- bytes copied to and from the GPU of a handle so far; 0 on a CPU. */
SAGITTA_API void sagitta_copied(const struct sagitta *handle, int64_t *bytes);
SAGITTA_API void sagitta_close(struct sagitta *handle); /* NULL is allowed */

#endif
