/* SPDX-License-Identifier: BSD-3-Clause
 * A device that computes for one rank: how it is opened, its memory, and its counters.
 *
 * Floor: device.  Knows kernels, model and base; no MPI, no files.
 *
 * The operations of a device are declared in the headers of this folder, one for each family:
 *     route.h  routing rows over a dictionary      dense.h    large dense matrices
 *     encoder.h codes of rows by an encoder
 *     codes.h  codes of rows on their supports     joint.h    the Schur complement S of all rows
 *     arrow.h  arrow systems                       lanczos.h  Lanczos steps with parts of S
 *     preprocess.h rows as read, on a GPU          refit.h    the rows of atoms and their moves
 *     normal.h the normal equations of all atoms   steps.h    the steps of all atoms, on a GPU
 *     triad.h  products and gradients in training  tensor.h   the matrix unit of a GPU
 *     train.h  the other parts of a training step  mixer.h    gated delta nets
 *     attention.h  attention of queries over keys and values
 *     attribution.h what positions and heads contribute to scores
 * The .c files of this folder check the arguments and call the function in the backend's table.
 * backend.h says what happens if the table lacks the function.  Every operation has the bits of
 * its reference in src/model, on any backend, for any thread count and variant; tensor.h says what
 * holds for the matrix unit.
 * Nothing here is collective.  One thread at a time may call operations, which use `threads`
 * threads.  Meanwhile other threads may call device_put() and the functions that preprocess.h
 * names. */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <fenv.h>
#include <string.h>

#include "base/types.h"
#include "device/buffer.h"
#include "device/counts.h"

/* `auto` takes a GPU for a job of at least this many multiply-adds, all ranks together.  16 cores
 * do about this many in the time that a GPU takes to start. */
#define DEVICE_BREAK_EVEN 2.5e11

/* Instruction sets that --cpu-variant accepts; variants.c has the table. */
#define CPU_VARIANTS "auto|baseline|avx2|avx512vl|avx512"

struct device_options {
  idx p, d;            /* columns, vectors per frame */
  idx max_atoms;       /* the most atoms that will be put on this device */
  int nonnegative;     /* 1: codes are >= 0 (N.5n), and atoms are chosen accordingly (N.2); d = 1 */
  int threads;         /* >= 1 */
  const char *variant; /* of the CPU, one of CPU_VARIANTS */
  const char *kind;    /* "auto", "cpu" or "cuda"; NULL: cpu */
  double work;         /* multiply-adds of the whole job, for `auto` */
  /* Sizes of the jobs to come, from which a GPU prepares and plans its memory; 0: not known. */
  idx top_k;           /* entries of a route_job */
  idx route_rows;      /* rows of a route_job, at most */
  idx support;         /* max_m of codes_job; 0: none */
  idx codes_rows;      /* rows of a codes_job without state, at most */
  int encoder;         /* 1: encoder_jobs will come, of at most route_rows rows */
  int preprocess;      /* 1: preprocess.h will be used */
  int local_rank;      /* number of this rank on its node; its GPU: local_rank mod number of GPUs */
  const char *kernels; /* folder of kernels to use in place of those built in; NULL: none */
  const char *filter;  /* certified filter: "auto", "on" or "off"; NULL: off */
  const struct device_test *test; /* borrowed while the device is open; NULL outside tests */
};

/* Faults and limits that tests set; zeros change nothing.  On a GPU, kernels that are compiled for
 * tests (kernels/test_hooks.h) read `bound` and `threshold`. */
struct device_test {
  real bound;     /* the fraction of every bound of the filter that is left out */
  real threshold; /* GPU: the fraction that is added to every threshold estimate */
  int mma;        /* GPU: use mma.sync also where the GPU has a faster instruction */
  int distrust;   /* GPU: the trial of the matrix unit fails */
  int columns;    /* GPU: exact scores are summed over this many columns at a time; a multiple of
                   * 32.  For vectors the filter then keeps the sizes of its sample, for any
                   * number of columns (doc/certified.md) */
  int band;       /* GPU: rows of a product that are rounded to bf16 or f16 at a time */
};

/* A GPU as comm needs it: its number on the node, its identity, and the stream for exchanges with
 * other GPUs.  Exchanges run at the same time as computations. */
struct device_gpu {
  int number;
  unsigned char id[16];
  void *exchanges;
};

struct device {
  const struct backend *backend; /* borrowed */
  void *state;                   /* owned; only the backend looks into it */
  const char *kind;              /* what runs: "cpu" or "cuda" */
  char variant[60];              /* instruction set, or the GPU's name; "" after device_close() */
  idx d;                         /* vectors per frame */
  int nonnegative;               /* as in the options */
  idx atoms, max_atoms;          /* atoms put so far, and their limit */
  struct device_counts counts;
  struct screen_counts filter; /* zeros while the filter is off */
  struct device_gpu gpu;       /* zeros on the CPU */
  /* 1: the device computes nothing, and its buffers take no memory; it counts the bytes that they
   * would take.  Made by { .is_dry = 1 } or device_open_dry(). */
  int is_dry;
  /* Bytes of all buffers asked for so far, whether or not the device is dry.  A CPU has one memory
   * for both sides, so there the larger number counts. */
  gidx planned_host, planned_device;
};

/* text[capacity] <- the version of CUDA, such as "13.0"; "none" in a build without CUDA. */
void device_cuda_library(char *text, size_t capacity);

/* ERR_USAGE for an unknown variant; ERR_DEVICE for a variant that this processor lacks, and for
 * `cuda` if there is no GPU.  `auto` opens the CPU if the work is small, or if there is no GPU;
 * then the debug log says why no GPU is used. */
int device_open(struct device *dev, const struct device_options *options);
/* Create the context of the GPU that device_open() would take with these options, because this
 * takes long.  Any thread may call it before device_open().  Failures are left to device_open(),
 * which reports them. */
void device_warm(const struct device_options *options);
/* Open a dry device of the kind that device_open() would choose if a GPU were present.  *forms <-
 * the bytes in which the real device keeps max_atoms atoms in forms of its own, such as panels or
 * tiles.  The caller's atoms are not counted.  The number is exact on the CPU, and an estimate on a
 * GPU or for a variant that this processor lacks. */
void device_open_dry(struct device *dev, const struct device_options *options, gidx *forms);
void device_close(struct device *dev);
/* 1 if the kind is `auto` and this machine has no GPU: a forecast for `auto` is then for the
 * CPU. */
int device_lacks_gpu(const char *kind, int local_rank);
/* *bytes <- the memory of the GPU that device_open() would choose, divided by the number of ranks
 * of this node that use this GPU; INT64_MAX if device_open() would choose none. */
int device_memory(const struct device_options *options, int local_size, gidx *bytes);

static inline int device_is_gpu(const struct device *dev)
{
  return dev->kind && strcmp(dev->kind, "cuda") == 0;
}

/* device_check_fma(): ERR_DEVICE unless this processor has a hardware fused multiply-add, which
 * most operations on the CPU need.  device_check_subnormals(): ERR_INTERNAL unless every thread
 * keeps subnormal operands and products. */
int device_check_fma(void);
int device_check_subnormals(int threads);
/* The threads of a host program, and the threads that they start, may flush subnormal numbers (as
 * in callbacks of JAX) or round in another mode.  take: callers[threads] <- the floating-point
 * environment of each thread; all threads then get the default one.  give: every thread gets its
 * own environment back. */
void device_rounding_take(fenv_t *callers, int threads);
void device_rounding_give(const fenv_t *callers, int threads);

/* An upper bound on the terms of (N.1) that this device computes per second; a term is two
 * instructions.  On the CPU it is measured on one thread: the variant's loop without memory
 * accesses runs again and again for `seconds`, and the fastest run counts.  On a GPU it follows
 * from the clock and the number of multiprocessors. */
double device_peak(const struct device *dev, double seconds);

/* *rate <- bytes read and written per second by copies inside a GPU's memory; 0 on the CPU. */
int device_copy_rate(struct device *dev, double *rate);

/* Wait for the operations that return before they have ended; their headers name them. */
int device_finish(struct device *dev);
/* The calling thread uses the GPU from here on.  Later computations, device_put() and
 * preprocess_run() start after all work that is now on `stream`, a stream of this process.  On a
 * CPU, this and the functions below do nothing, except that device_exchanged() sets *is_done to
 * 1. */
int device_follow(struct device *dev, void *stream);
/* Later work on the stream gpu.exchanges starts after all computations so far. */
int device_exchange(struct device *dev);
/* device_exchange_mark(): the work that is now on gpu.exchanges becomes exchange number `turn`.
 * device_exchanged(): *is_done <- 0 while exchange `turn` still runs, then 1.  Only the last
 * DEVICE_EXCHANGES turns are kept. */
enum { DEVICE_EXCHANGES = 4 };
int device_exchange_mark(struct device *dev, gidx turn);
int device_exchanged(struct device *dev, gidx turn, int *is_done);
/* Later computations of the device start after exchange `turn` has ended. */
int device_exchange_follow(struct device *dev, gidx turn);

#endif
