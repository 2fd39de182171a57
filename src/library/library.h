/* SPDX-License-Identifier: BSD-3-Clause
 * libsagitta: supports and codes of rows in the process that has them, with the bits of `sagitta
 * encode`.
 *
 * Floor: library.  This header stands alone; scripts/python/sagitta/library.py says it in ctypes.
 *
 * There is no MPI, no signal handler, no output and no exit here, and no file but the kernels that
 * a GPU's are kept in (doc/environment.md).  Functions return 0 or an exit code of doc/design.md,
 * with the text of sagitta_message().  All state is in handles: each is one thread's at a time, and
 * several may compute side by side.  CUDA is opened where a handle asks for a GPU. */
#ifndef LIBRARY_LIBRARY_H
#define LIBRARY_LIBRARY_H

#include <stdint.h>

#define SAGITTA_API __attribute__((visibility("default")))

/* It changes with every struct and function of this header. */
enum { SAGITTA_ABI = 2 };

/* How rows are described.  Arrays are borrowed until sagitta_close() and must not change. */
struct sagitta_options {
  int32_t abi;           /* SAGITTA_ABI */
  int32_t k, p;          /* atoms, columns */
  const float *atoms;    /* [k][p], of length 1 */
  const double *mean;    /* [p] subtracted from rows; NULL: none */
  int32_t top_s, rounds; /* without an encoder; top_s at most k, rounds at most top_s */
  int32_t nonnegative;   /* codes that are solved are at least 0 */
  double rho;
  int32_t threads;              /* at least 1 */
  const char *variant, *filter; /* as --cpu-variant and --filter; NULL: auto */
  const char *device;           /* cpu, or cuda: a GPU, without an encoder; NULL: cpu */
  int32_t gpu;                  /* its number, as CUDA counts in this process */

  /* That of a dictionary.h5 (doc/formats.md, /encoder). */
  const char *encoder; /* its kind: relu, topk, jumprelu, batchtopk or active; NULL: none */
  int32_t top;         /* of topk */
  int32_t centered, rescaled;
  int32_t solves;         /* codes are solved on its supports, not its own; not of active */
  const float *weights;   /* [k][p]; not of active */
  const float *bias;      /* [k]; the same */
  const float *threshold; /* [k] of jumprelu and batchtopk */
  const float *norm;      /* [k]; NULL: 1 */
  int32_t relative;       /* of active, as are the next */
  double floor;
  int32_t n_cuts;
  const float *cuts; /* [n_cuts] */
};

/* Row i has entries start[i] .. start[i + 1] - 1, in the order in which `sagitta encode`
 * writes them. */
struct sagitta_codes {
  int64_t n;            /* rows */
  const int64_t *start; /* [n + 1] */
  const int32_t *atoms; /* of each entry, as are the next */
  const float *score;   /* the one that chose the atom */
  const float *codes;
};

struct sagitta; /* a handle */

SAGITTA_API int sagitta_abi(void);
/* Of this thread's last call that failed; valid until its next call. */
SAGITTA_API const char *sagitta_message(void);

SAGITTA_API int sagitta_open(const struct sagitta_options *options, struct sagitta **handle);
/* *codes <- those of x[n][p], which belong to the handle until its next call. */
SAGITTA_API int sagitta_encode(struct sagitta *handle, const float *x, int64_t n,
                               struct sagitta_codes *codes);
/* atoms[n][top_s], codes[n][top_s] <- those of x[n][p], in the order in which atoms are chosen.
 * All are in the memory of the handle's device, and x stays as it is.  stream: a cudaStream_t of a
 * GPU; what is on it so far ends first.  The GPU becomes that of the calling thread.  Results are
 * there on return.  Without an encoder. */
SAGITTA_API int sagitta_support(struct sagitta *handle, const float *x, int64_t n, void *stream,
                                int32_t *atoms, float *codes);
/* bytes[2] <- copied to the GPU of a handle, and from it, so far; 0 of a CPU. */
SAGITTA_API void sagitta_copied(const struct sagitta *handle, int64_t *bytes);
SAGITTA_API void sagitta_close(struct sagitta *handle); /* NULL is none */

#endif
