/* SPDX-License-Identifier: BSD-3-Clause
 * A device that computes for one rank: how it is opened, its memory, and what it counts.
 *
 * Floor: device.  Knows kernels, model and base; no MPI, no files.
 *
 * What a device computes is declared beside this header, one header for each family of operations:
 *     route.h  routing rows over a dictionary      dense.h    large dense matrices
 *     encoder.h codes of rows by imported encoders
 *     codes.h  codes of rows on their supports     joint.h    the Schur complement of all rows
 *     arrow.h  arrow systems                       lanczos.h  Lanczos steps with its parts
 *     preprocess.h rows as they come, on a GPU         refit.h  the rows of atoms and their moves
 *     normal.h the normal equations of all atoms   steps.h    the steps of all atoms, on a GPU
 *     triad.h  products and gradients in training
 *     attention.h  attention of queries over keys and values
 *     attribution.h what these contribute to scores
 * operations.c and attention.c check the arguments and call the row of the backend's table
 * (backend.h); a backend without that row gives ERR_DEVICE.  Every operation has the bits of its
 * reference in src/model, on any backend, for any thread count and variant.
 * Nothing here is collective.  One thread computes; others may call device_put, and what
 * preprocess.h allows, meanwhile. */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <fenv.h>
#include <string.h>

#include "base/types.h"
#include "device/buffer.h"
#include "device/counts.h"

/* `auto` takes a GPU for a job of so many multiply-adds in all, ranks together: what 16 cores do
 * while a GPU is being started. */
#define DEVICE_BREAK_EVEN 2.5e11

/* Sets of the CPU's loops that --cpu-variant asks for, as the table of variants.c has them. */
#define CPU_VARIANTS "auto|baseline|avx2|avx512vl|avx512"

struct device_options {
  idx p, d;            /* columns, vectors a frame */
  idx max_atoms;       /* atoms that will be put on this device */
  int nonnegative;     /* codes are at least 0 (N.5n), and atoms are chosen for that (N.2); d = 1 */
  int threads;         /* >= 1 */
  const char *variant; /* of the CPU, one of CPU_VARIANTS */
  const char *kind;    /* "auto", "cpu" or "cuda"; NULL: cpu */
  double work;         /* multiply-adds of the whole job, for `auto` */
  /* What is known of jobs to come, for a GPU to prepare and to plan its memory; 0: not known. */
  idx top_k;           /* entries of a route_job */
  idx route_rows;      /* rows of a route_job, at most */
  idx support;         /* max_m of codes_job; 0: none */
  idx codes_rows;      /* rows of a codes_job without state, at most */
  int encoder;         /* 1: there will be an encoder_job, of route_rows rows at most */
  int preprocess;      /* 1: rows will be taken in (preprocess.h) */
  int local_rank;      /* on this node: GPU local_rank modulo those there */
  const char *kernels; /* folder to read kernels from instead of those built in; NULL: none */
  const char *filter;  /* certified filter: "auto", "on" or "off"; NULL: off */
  const struct device_test *test; /* borrowed while the device is open; NULL outside tests */
};

/* What a test asks of the certified filter, and of the matrix unit; zeros are right.  On a GPU
 * kernels that are compiled for tests (kernels/test_hooks.h) read `bound` and `threshold`. */
struct device_test {
  real bound;     /* the part of every bound that is left out */
  real threshold; /* GPU: the part that is added to every threshold estimate */
  int mma;        /* GPU: use mma.sync where there is better */
  int distrust;   /* GPU: the trial of the matrix unit fails */
  int columns;    /* GPU: of exact scores of atoms, added at a time; a multiple of 32.  Short atoms
                   * then have the sizes of the sample kept, too, as long ones have */
  int band;       /* GPU: rows of a product that are narrowed at a time */
};

/* Of a GPU, for comm: its number on the node, its identity, the stream for exchanges with other
 * GPUs, which go on beside what it computes. */
struct device_gpu {
  int number;
  unsigned char id[16];
  void *exchanges;
};

struct device {
  const struct backend *backend; /* borrowed */
  void *state;                   /* owned; only the backend looks into it */
  const char *kind;              /* what runs: "cpu" or "cuda" */
  char variant[60];              /* its instruction set, or the GPU's name; "" once it is closed */
  idx d;                         /* vectors a frame */
  int nonnegative;               /* as in the options */
  idx atoms, max_atoms;          /* put so far, and at most */
  struct device_counts counts;
  struct screen_counts filter; /* zeros where it is off */
  struct device_gpu gpu;       /* zeros on the CPU */
  /* A dry device computes nothing: { .is_dry = 1 }, or what device_open_dry() gives.  Buffers cost
   * it no memory, it counts what they would take. */
  int is_dry;
  /* Bytes of the buffers asked for so far, also of a device that is not dry.  On the CPU both sides
   * are one, the larger of them. */
  gidx planned_host, planned_device;
};

/* text[capacity] <- the version of CUDA, as "13.0"; "none" in a build without. */
void device_cuda_library(char *text, size_t capacity);

/* ERR_USAGE for an unknown variant, ERR_DEVICE for one that this processor lacks and for `cuda`
 * where there is no GPU.  `auto` without a GPU is the CPU; the log says why. */
int device_open(struct device *dev, const struct device_options *options);
/* Make what takes device_open() of these options long, the context of a GPU, ahead of it and from
 * any thread.  Failures are left for it to tell. */
void device_warm(const struct device_options *options);
/* A dry device of the kind that device_open() would choose if a GPU were present.  *forms <- bytes
 * that the real one keeps of max_atoms atoms, beside the atoms themselves: exact on the CPU; an
 * estimate on a GPU, and for a variant that this processor lacks. */
void device_open_dry(struct device *dev, const struct device_options *options, gidx *forms);
void device_close(struct device *dev);
/* Is this kind auto, on a machine without a GPU?  A forecast for it is then one for the CPU. */
int device_lacks_gpu(const char *kind, int local_rank);
/* *bytes <- the memory of the GPU that device_open() would choose, in equal parts for the ranks of
 * this node that get it; INT64_MAX where it would choose none. */
int device_memory(const struct device_options *options, int local_size, gidx *bytes);

static inline int device_is_gpu(const struct device *dev)
{
  return dev->kind && strcmp(dev->kind, "cuda") == 0;
}

/* ERR_DEVICE unless this processor has a hardware fused multiply-add, which codes and residuals on
 * the CPU need; ERR_INTERNAL unless every thread keeps subnormal products. */
int device_check_fma(void);
int device_check_subnormals(int threads);
/* Threads of a host program may flush subnormal numbers, as in callbacks of JAX, or round
 * otherwise, and so do those that they start.  callers[threads] <- how each does; then they
 * compute as others do, until they get that back. */
void device_rounding_take(fenv_t *callers, int threads);
void device_rounding_give(const fenv_t *callers, int threads);

/* Terms of (N.1) a second that this device cannot exceed, two instructions each: on the CPU the
 * best register-only loop of the variant on one thread, measured for so many seconds; on a GPU from
 * clock and multiprocessors. */
double device_peak(const struct device *dev, double seconds);

/* Bytes a second, read and written, of copies inside a GPU's memory; 0 on the CPU. */
int device_copy_rate(struct device *dev, double *rate);

/* Wait for operations that return before they have ended, which their headers name. */
int device_finish(struct device *dev);
/* Of a GPU alone: it is the calling thread's from here on, and what it is told to compute and to
 * take in begins when all that is on this stream of the process so far has ended. */
int device_follow(struct device *dev, void *stream);
/* Of a GPU alone: what is put on gpu.exchanges from here on begins when all that it was told to
 * compute so far has ended. */
int device_exchange(struct device *dev);
/* What was put there so far is exchange `turn`; *is_done <- 0 while it runs, for turns that are
 * fewer than DEVICE_EXCHANGES old. */
enum { DEVICE_EXCHANGES = 4 };
int device_exchange_mark(struct device *dev, gidx turn);
int device_exchanged(struct device *dev, gidx turn, int *is_done);
/* What the device is told to compute from here on begins when that exchange has ended. */
int device_exchange_follow(struct device *dev, gidx turn);

#endif
