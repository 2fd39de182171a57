/* SPDX-License-Identifier: BSD-3-Clause
 * A worker's device and what it computes: exact routing over its tiles, codes of rows, arrow
 * systems.
 *
 * Floor: device.  Knows kernels, model and base; no MPI, no files.
 *
 * Every operation gives the bits of its reference in model/route.h, model/codes.h and
 * model/arrow.h, on either device, for any tile width, block size, thread count and variant.
 * Nothing here is collective.  One thread computes; another may put meanwhile. */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "base/types.h"
#include "model/arrow.h"
#include "model/codes.h"
#include "model/route.h"

/* `auto` takes a GPU for a job of so many multiply-adds in all, ranks together: what 16 cores do
 * while a GPU is being started. */
#define DEVICE_BREAK_EVEN 2.5e11

struct device_options {
  idx p, d;            /* columns, vectors a frame */
  idx atoms_most;      /* atoms that will be put on this device */
  int threads;         /* >= 1 */
  const char *variant; /* of the CPU: "auto", "baseline", "avx2", "avx512vl" or "avx512" */
  const char *kind;    /* "auto", "cpu" or "cuda"; NULL: cpu */
  double work;         /* multiply-adds of the whole job, for `auto` */
  idx take;            /* entries of a route_job, as far as that is known, for a GPU to prepare */
  idx support;         /* and m_most of codes_job; 0: none */
  int local_rank;      /* on this node: GPU local_rank modulo those there */
  const char *kernels; /* folder to read kernels from instead of those built in; NULL: none */
  const char *filter;  /* certified filter: "auto", "on" or "off"; NULL: off */
  /* For tests; zeros are right.  The part of every bound that is left out, what is added to every
   * guess, use of mma.sync where there is better, a matrix unit that is not trusted. */
  real filter_less, filter_high;
  int filter_mma, filter_distrust;
};

/* What was done for this device so far. */
struct device_counts {
  gidx kernels;  /* launched */
  gidx put, got; /* bytes copied to and from the device */
};

/* What the certified filter did so far (doc/certified.md): rows by the path that they took, and the
 * candidates of the certified ones. */
enum filter_path {
  FILTER_CERTIFIED,
  FILTER_LIST,  /* exact path: too many candidates */
  FILTER_SCORE, /* scores may overflow */
  FILTER_GUESS, /* GPU: the guess was too high */
  FILTER_SMALL, /* GPU: zeros, or hardly more */
  FILTER_PATHS
};
/* Its stages; a CPU has no sample, and has its conversion and cutting within the product. */
enum filter_stage {
  FILTER_CONVERT,
  FILTER_SAMPLE,
  FILTER_PRODUCT,
  FILTER_CUT,
  FILTER_CHAIN,
  FILTER_LEFT,  /* rows on the exact path */
  FILTER_ATOMS, /* GPU: conversion of the dictionary, once a window */
  FILTER_STAGES
};
extern const char *const filter_stage_names[FILTER_STAGES];
struct filter_counts {
  gidx rows[FILTER_PATHS];
  gidx candidates, most;         /* in all, and of one row */
  double seconds[FILTER_STAGES]; /* CPU: of all threads together */
};

/* Of a GPU, for comm: its number on the node, its identity, the stream that computes. */
struct device_gpu {
  int number;
  unsigned char id[16];
  void *stream;
};

struct device {
  const struct backend *backend; /* borrowed */
  void *state;                   /* owned */
  const char *kind;              /* what runs: "cpu" or "cuda" */
  const char *variant;           /* its instruction set, or the GPU's name, for the log */
  idx atoms, atoms_most;         /* put so far, and at most */
  struct device_counts counts;
  struct filter_counts filter; /* zeros where it is off */
  struct device_gpu gpu;       /* zeros on the CPU */
};

/* ERR_USAGE for an unknown variant, ERR_DEVICE for one that this processor lacks and for `cuda`
 * where there is no GPU.  `auto` without a GPU is the CPU; the log says why. */
int device_open(struct device *dev, const struct device_options *options);
void device_close(struct device *dev);

/* ERR_DEVICE unless this processor has a hardware fused multiply-add (codes and residuals on the
 * CPU need it), ERR_INTERNAL unless every thread keeps subnormal products. */
int device_check_fma(void);
int device_check_subnormals(int threads);

/* Memory on both sides: host for the CPU, device for what the device computes on.  On the CPU both
 * are the same.  device_put and device_get are the only copies. */
struct buffer {
  void *host, *device;
  gidx bytes;
  int owned; /* the host side */
};

/* Zeroed on both sides; the host side of a GPU's is page-locked.  ERR_MEMORY with the numbers. */
int device_take(struct device *dev, struct buffer *b, gidx bytes);
/* The same around memory of the caller, which stays until device_drop; not copied. */
int device_wrap(struct device *dev, struct buffer *b, void *host, gidx bytes);
/* As device_wrap, but not zeroed, and ERR_MEMORY rather than that anything else, the dictionary's
 * window or an automatic filter, has to do with less. */
int device_spare(struct device *dev, struct buffer *b, void *host, gidx bytes);
/* For the device alone: on a GPU there is no host side. */
int device_hold(struct device *dev, struct buffer *b, gidx bytes);
/* The same on a CPU device, where it needs no drop. */
static inline struct buffer host_buffer(void *host)
{
  return (struct buffer){.host = host, .device = host};
}
/* Safe on a zeroed buffer. */
void device_drop(struct device *dev, struct buffer *b);
/* Copy bytes at .. at + bytes - 1 to the device, or from it. */
int device_put(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
int device_get(struct device *dev, const struct buffer *b, gidx at, gidx bytes);

/* Items at .. at + n - 1 of `to` <- those of `from` that are named, or its first n (names NULL), on
 * the device side; an item has `unit` bytes, a multiple of 4.  from is not to. */
struct pick_job {
  const struct buffer *from;
  const idx *names; /* [n] host */
  gidx n, unit;
  struct buffer *to;
  gidx at;
};
int device_pick(struct device *dev, const struct pick_job *job);

/* *bytes <- what device_spare() gives now; 0 or less: nothing.  On the CPU there is no limit. */
int device_room(struct device *dev, gidx *bytes);

/* *idle <- 0 while something runs on the stream of a GPU. */
int device_idle(struct device *dev, int *idle);

/* Add count atoms[count][d][p] with global numbers first .. first + count - 1 to the device's share
 * of the dictionary.  They stay where they are until the device is closed: one that cannot hold
 * them all brings them again.  ERR_MEMORY; ERR_INTERNAL beyond atoms_most. */
int device_put_tile(struct device *dev, const float *atoms, idx count, idx first);

/* *view <- the atoms put so far, as they were put and in that order, on the device side, until the
 * next call that takes memory or routes; zeroed where the device does not keep them so. */
int device_atoms(struct device *dev, struct buffer *view);

/* Route n rows over all atoms put so far (N.1 to N.3r).  Buffers are read and written on the device
 * side. */
struct route_job {
  const struct buffer *rows; /* [n][p] float, finite */
  idx n;
  idx take;                   /* entries a row, 1 .. TOP_S_MOST */
  struct exclusions excluded; /* atoms not to be chosen; count 0: none */
  struct buffer *lists;       /* [n][take] struct entry, written */
  struct bad_score bad;       /* written: the lowest score that is not finite, or row -1 */
  int scores_only;            /* for measuring, GPU alone: choose nothing, lists are rubbish */
};
int device_route(struct device *dev, struct route_job *job);

/* Solve the codes of n rows on their supports, or go on from the codes of shorter supports.
 *
 * Entries before m_old were solved by an earlier call with the same state, rows and slots; entries
 * m_old .. m_new - 1 are added.  state has [n] blocks of codes_state(device, m_most, rho) bytes
 * each, kept by the caller between the rounds of a block of rows; NULL when m_old is 0 and nothing
 * follows.  Buffers are read and written on the device side. */
struct codes_job {
  idx n;
  idx m_old, m_new, m_most; /* support atoms a row */
  real rho;
  idx first;                  /* this job's rows begin at row first of rows and of residual */
  const struct buffer *rows;  /* [..][p] float: the rows themselves, not residuals */
  const struct buffer *atoms; /* [..][d][p] float: table of atoms */
  const struct buffer *slot;  /* [n][m_most] idx: place in the table of each support atom */
  struct buffer *state;
  struct buffer *residual; /* [..][p] float, by unrounded codes; NULL: not wanted */
  struct buffer *codes;    /* [n][m_new][d] float, rounded once; NULL: not wanted */
  struct buffer *quality;  /* [n] struct row_quality, from the rounded codes; needs codes; NULL */
};
gidx codes_state(const struct device *dev, idx m_most, real rho);
int device_codes(struct device *dev, const struct codes_job *job);

/* Solve arrow systems (N.7 to N.15): any number, each with its own d, k and n, each by itself; on a
 * CPU device.  The
 * threads share systems, and the rows of long ones.  ERR_DEVICE without fused multiply-add,
 * ERR_INPUT when d or k is beyond model/arrow.h's limits, ERR_MEMORY. */
struct arrow_item {
  struct arrow_system system;   /* borrowed arrays */
  struct arrow_start start;     /* zeroed: a fresh system */
  real *step_t;                 /* [n][d], written */
  real *step_b;                 /* [k], written */
  struct arrow_outcome outcome; /* written */
};
struct arrow_job {
  struct arrow_options options;
  struct arrow_item *items;
  gidx count;
};
int device_arrow(struct device *dev, struct arrow_job *job);

/* Terms of (N.1) a second that this device cannot exceed, two instructions each: on the CPU the
 * best register-only loop of the variant on one thread, measured for so many seconds; on a GPU from
 * clock and multiprocessors. */
double device_peak(const struct device *dev, double seconds);

/* Bytes a second, read and written, of copies inside a GPU's memory; 0 on the CPU. */
int device_copy_rate(struct device *dev, double *rate);

#endif
