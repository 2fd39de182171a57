/* SPDX-License-Identifier: BSD-3-Clause
 * How the memory of a GPU is used.  plan.c decides this from sizes alone.
 *
 * Floor: device.  Arithmetic on the host: needs neither CUDA nor a GPU.
 *
 * If memory is short, first the rows of a launch or of codes are halved, then an automatic filter
 * is given up, then the window (the part of the dictionary on the GPU at a time) is halved.  No
 * choice changes a bit of a result. */
#ifndef DEVICE_CUDA_PLAN_H
#define DEVICE_CUDA_PLAN_H

#include "base/types.h"
#include "dense_types.h"
#include "screen_types.h"

struct device_options;

enum { PLAN_LAUNCH_ROWS = 1 << 19 }; /* limit of a launch, so that counters fit 31 bits */
enum { PLAN_TRIAL_BYTES = 4 << 20 }; /* limit of the trial of the matrix unit */

enum plan_filter { PLAN_FILTER_OFF, PLAN_FILTER_AUTOMATIC, PLAN_FILTER_WANTED };

/* What is known when the dictionary comes.  Sizes of jobs are 0 if they are not known. */
struct plan_sizes {
  idx p, d, max_atoms;
  int bulk, wgmma, multiprocessors; /* as in kernels/forms.h and screen_types.h */
  enum plan_filter filter;
  idx top_k, route_rows; /* entries and rows of a route_job */
  idx support;           /* the most atoms that a row excludes, and that a row of codes has */
  int nonnegative;       /* 1: codes are those of (N.5n) */
  idx codes_rows;        /* rows of a codes_job whose caller keeps no states */
  int encoder;           /* 1: an encoder_job will come; d = 1 */
};

/* Members of type idx are numbers of atoms or rows, those of type gidx are bytes.  `total` is the
 * sum of all bytes.  With the filter, a launch counts at least the bytes of the trial of the matrix
 * unit, which frees its memory before any launch. */
struct cuda_plan {
  int screen;                    /* 1: the certified filter is used */
  idx tile;                      /* atoms of a packed tile */
  idx window;                    /* atoms on the device at a time */
  idx rows;                      /* rows of a launch of route, a multiple of ROUTE_ROWS */
  idx codes_rows;                /* rows of codes at a time */
  int rows_cut, codes_cut;       /* 1: fewer than the jobs have, since memory is short */
  gidx packed, atom_of, staging; /* the window for the direct kernels, and its staging area */
  gidx frames, f16;              /* the window for the filter: f32 frames and fp16 tiles */
  gidx lists;                    /* lists of all rows, if there are several windows */
  gidx exact, screen_work;       /* a launch: the direct kernels; the filter's kernels */
  gidx states;                   /* states of codes */
  gidx encoder;                  /* a launch of an encoder's kernels, without its rows */
  gidx total;
};

/* The sizes that follow from options.  Facts about the GPU, and the filter, are zeros. */
struct plan_sizes plan_sizes_of(const struct device_options *o);

/* Operation `forms_bytes` of the table.  The bytes are those of the window for both ways of
 * routing, of a copy of the atoms for codes, and of a launch of an encoder.  No copy is counted if
 * the filter has the frames as they were put.  Assumes that memory is not short, a GPU with bulk
 * copies and wgmma, and that the filter is used unless it is off. */
int plan_forms_bytes(const struct device_options *o, gidx *bytes);

/* *plan <- the best plan of at most `free` bytes.  ERR_MEMORY if even the smallest does not fit. */
int plan_make(const struct plan_sizes *z, gidx free, struct cuda_plan *plan);

/* Take the filter out of the plan, because it is no longer used. */
void plan_drop_filter(const struct plan_sizes *z, struct cuda_plan *plan);

/* The numbers of a route_job on which the memory of a launch depends. */
struct plan_route {
  idx n, top_k;
  idx slots;    /* atoms of the window */
  idx excluded; /* atoms that a row excludes, at most */
};
/* Bytes of a launch of `rows` rows: for the direct kernels; in addition, for the filter. */
gidx plan_exact_bytes(const struct plan_sizes *z, const struct plan_route *r, idx rows);
gidx plan_screen_bytes(const struct plan_sizes *z, const struct plan_route *r, idx rows);
/* The most rows of a job that a launch within the plan may have; at least ROUTE_ROWS. */
idx plan_route_rows(const struct plan_sizes *z, const struct cuda_plan *plan,
                    const struct plan_route *r);

/* The most rows of an encoder_job that a launch within the plan may have; at least one. */
idx plan_encoder_rows(const struct cuda_plan *plan);
/* Lay out the work arrays of a launch of an encoder, without its values, from `base` on; returns
 * their bytes.  base NULL: only count.  a has stride and route.n; entries: see
 * plan_encoder_entries(). */
gidx plan_encoder_layout(struct encoder_args *a, gidx entries, char *base);
/* The number of entries that are placed at a time; all entries of one row fit. */
gidx plan_encoder_entries(idx stride, idx rows);

/* Bytes of the state of a row of codes. */
gidx plan_state_bytes(idx vectors, real rho, int nonnegative);

/* How many of n rows of codes may have states of `state_bytes` at a time; at least one.  spare: the
 * free bytes outside of the plan. */
idx plan_codes_rows(const struct cuda_plan *plan, gidx state_bytes, idx n, gidx spare);

/* Bytes of workspace for dense matrices of n rows, for columns of a factor that are set aside. */
gidx plan_dense_work(idx n);
/* Operation `dense_bytes` of the table. */
gidx plan_dense_bytes(int threads, idx panel, idx n);

/* Bytes for the assembly of S, without S: for the arrays that all batches share; for one batch; for
 * both together (operation `joint_bytes` of the table).  Arrays are aligned to
 * PLAN_JOINT_ALIGNED. */
struct joint;
enum { PLAN_JOINT_ALIGNED = 256, PLAN_JOINT_PIECES = 16 };
gidx plan_joint_resident(const struct joint *j);
gidx plan_joint_batch(const struct joint *j, idx longest, gidx capacity);
gidx plan_joint_bytes(const struct joint *j, idx longest, gidx capacity);

/* Arrow systems are solved in sub-batches of PLAN_ARROW_LOT bytes, or of one system that is larger;
 * PLAN_ARROW_LOTS of them are on the device at a time.  A system of more than PLAN_ARROW_LARGEST
 * bytes is left to the CPU. */
enum { PLAN_ARROW_LOTS = 3, PLAN_ARROW_LOT = 24 << 20, PLAN_ARROW_LARGEST = 1 << 30 };
/* Operation `arrow_bytes` of the table. */
gidx plan_arrow_bytes(gidx largest);

/* How the filter samples `frames` frames, and the length of a row's list (doc/certified.md).  A
 * size is the magnitude of a score; for frames it is the root of the gate. */
struct plan_lists {
  idx sampled;   /* frames in the sample, the first ones of the order; 0: too few for a sample */
  int peaks_row; /* sampled sizes per row; 0: the sample is too small for so many entries */
  int sizes_row; /* all sizes per row, which are kept; 0: the product computes them again */
  int peak_rank; /* the rank, from 1, of the size that gives the threshold estimate */
  int capacity;  /* of a list */
};
struct plan_lists plan_lists_of(int wgmma, idx d, idx p, idx top_k, idx frames);
/* Space for pairs to rescore, for `rows` rows. */
int plan_pairs(idx rows, idx top_k);

/* Lay out the work arrays of the filter's kernels from `base` on; returns their bytes.  base NULL:
 * only count.  a has row_tiles, peaks_row, sizes_row, capacity and pairs_capacity. */
gidx plan_screen_layout(struct screen_args *a, char *base);

#endif
