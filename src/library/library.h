/* SPDX-License-Identifier: BSD-3-Clause
 * libsagitta: supports and codes of rows inside another program, with the bits of `sagitta encode`.
 *
 * Floor: library.  This header includes no other header of Sagitta.  The Python package has its
 * structs and functions in ctypes: scripts/python/sagitta/library.py.
 *
 * The library uses no MPI, installs no signal handler, prints nothing and never exits.  The only
 * files are the cached kernels of a GPU (doc/environment.md).  sagitta_open(), sagitta_encode() and
 * sagitta_support() return 0 or an exit code of doc/design.md; sagitta_message() then has the text.
 * The text belongs to the calling thread; all other state is in handles.  One thread at a time may
 * use a handle; several handles may compute in parallel.  CUDA is opened only if a handle asks for
 * a GPU. */
#ifndef LIBRARY_LIBRARY_H
#define LIBRARY_LIBRARY_H

#include <stdint.h>

#define SAGITTA_API __attribute__((visibility("default")))

/* Every change of a struct or function of this header increases this number. */
enum { SAGITTA_ABI = 2 };

/* How rows are encoded.  Arrays are borrowed until sagitta_close() and must not change. */
struct sagitta_options {
  int32_t abi;           /* SAGITTA_ABI */
  int32_t k, p;          /* atoms, columns */
  const float *atoms;    /* [k][p], of unit norm */
  const double *mean;    /* [p] subtracted from rows; NULL: none */
  int32_t top_s, rounds; /* without an encoder; top_s: 1 to min(k, 256), rounds: 1 to top_s */
  int32_t nonnegative;   /* solved codes are at least 0 */
  double rho;            /* ridge penalty of solved codes; 0 with an encoder's own codes */
  int32_t threads;       /* at least 1 */
  const char *variant, *filter; /* as --cpu-variant and --filter; NULL: auto */
  const char *device;           /* cpu; or cuda, which does not go with an encoder; NULL: cpu */
  int32_t gpu;                  /* with cuda: number of the GPU, as CUDA counts in this process */

  /* The encoder of a dictionary.h5 (doc/formats.md, /encoder). */
  const char *encoder; /* its kind: relu, topk, jumprelu, batchtopk or active; NULL: none */
  int32_t top;         /* of topk: largest number of codes of a row */
  /* centered: 1: the encoder takes rows less the mean; 0: rows as they are.  rescaled: 1: `norm`
   * multiplies the scores; 0: it multiplies the codes. */
  int32_t centered, rescaled;
  int32_t solves;         /* 1: codes are solved on its supports; 0, as for active: its own codes */
  const float *weights;   /* [k][p]; not for active */
  const float *bias;      /* [k]; not for active */
  const float *threshold; /* [k] of jumprelu and batchtopk; otherwise NULL */
  const float *norm;      /* [k] norms of the decoder's rows; NULL: all are 1 */
  int32_t relative;       /* 1: active atoms have scores divided by a norm (N.51) */
  double floor;           /* if relative: added to the squared norm */
  int32_t n_cuts;
  const float *cuts; /* [n_cuts] thresholds of active atoms (N.55) */
};

/* Row i has entries start[i] .. start[i + 1] - 1, in the order in which `sagitta encode` writes
 * them. */
struct sagitta_codes {
  int64_t n;            /* rows */
  const int64_t *start; /* [n + 1] */
  const int32_t *atoms; /* [start[n]] */
  const float *score;   /* [start[n]] by which the atom was chosen */
  const float *codes;   /* [start[n]] */
};

struct sagitta; /* a handle */

SAGITTA_API int sagitta_abi(void);
/* The message of this thread's last call that returned an exit code; "": the code was 0.  Valid
 * until the next such call. */
SAGITTA_API const char *sagitta_message(void);

/* *handle <- a new handle; NULL after a failure.  The options are copied, but not their arrays. */
SAGITTA_API int sagitta_open(const struct sagitta_options *options, struct sagitta **handle);
/* *codes <- the codes of x[n][p].  The arrays belong to the handle, and are valid until its next
 * call.  Not for a handle of a GPU. */
SAGITTA_API int sagitta_encode(struct sagitta *handle, const float *x, int64_t n,
                               struct sagitta_codes *codes);
/* atoms[n][top_s], codes[n][top_s] <- the supports and codes of x[n][p], in the order in which
 * atoms are chosen.  Not with an encoder.  All arrays are in the memory of the handle's device; x
 * is not changed.  stream: with a GPU, a cudaStream_t; the computation starts after all work that
 * is now on it.  The GPU becomes the calling thread's current one.  Results are complete on
 * return. */
SAGITTA_API int sagitta_support(struct sagitta *handle, const float *x, int64_t n, void *stream,
                                int32_t *atoms, float *codes);
/* bytes[2] <- bytes copied so far to and from the GPU of a handle; zeros on a CPU. */
SAGITTA_API void sagitta_copied(const struct sagitta *handle, int64_t *bytes);
SAGITTA_API void sagitta_close(struct sagitta *handle); /* NULL is allowed */

#endif
