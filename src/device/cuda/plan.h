/* SPDX-License-Identifier: BSD-3-Clause
 * What the memory of a GPU is used for: the one place that decides it, from sizes.
 *
 * Floor: device.  Host arithmetic alone: needs neither CUDA nor a GPU.
 *
 * Where memory is short, first the rows of a launch are halved, then an automatic filter is given
 * up, then the window of the dictionary is halved.  No choice changes a bit of a result. */
#ifndef DEVICE_CUDA_PLAN_H
#define DEVICE_CUDA_PLAN_H

#include "base/types.h"
#include "dense_types.h"
#include "screen_types.h"

struct device_options;

enum { PLAN_LAUNCH_ROWS = 1 << 19 }; /* at most: what kernels count fits 31 bits */
enum { PLAN_TRIAL_BYTES = 4 << 20 }; /* at most, of the trial of the matrix unit */

enum plan_filter { PLAN_FILTER_OFF, PLAN_FILTER_AUTOMATIC, PLAN_FILTER_WANTED };

/* What is known when the dictionary comes.  Numbers of the jobs are 0 where they are not known. */
struct plan_sizes {
  idx p, d, max_atoms;
  int bulk, wgmma, multiprocessors; /* as in kernels/forms.h and screen_types.h */
  enum plan_filter filter;
  idx top_k, route_rows; /* entries and rows of a route job */
  idx support;           /* atoms that a row of it may exclude, and of a row of codes */
  int nonnegative;       /* these are (N.5n) */
  idx codes_rows;        /* rows of a codes job without states of its caller */
  int encoder;           /* there will be an encoder_job; d = 1 */
};

/* A ledger in bytes; `total` is their sum, or more for the trial of the matrix unit, which takes
 * place, and frees its memory, before a launch needs any. */
struct cuda_plan {
  int screen;                    /* the certified filter is used */
  idx tile;                      /* atoms of a packed tile */
  idx window;                    /* atoms on the device at a time */
  idx rows;                      /* of a launch of route, a multiple of ROUTE_ROWS */
  idx codes_rows;                /* of codes at a time */
  int rows_cut, codes_cut;       /* these are fewer than the jobs have, for want of memory */
  gidx packed, atom_of, staging; /* the window for the direct kernels, and how it comes there */
  gidx frames, f16;              /* the window for the filter: f32 frames and fp16 tiles */
  gidx lists;                    /* of all rows, where windows are merged */
  gidx exact, screen_work;       /* of a launch: direct kernels, the filter's kernels */
  gidx states;                   /* of codes */
  gidx encoder;                  /* of a launch of an encoder's kernels, beside its rows */
  gidx total;
};

/* The sizes that options say; the GPU's own numbers and the filter are zeros. */
struct plan_sizes plan_sizes_of(const struct device_options *o);

/* Row `forms_bytes` of the table: where no memory is short, the window for both ways of routing,
 * a copy of the atoms for codes unless the filter has their frames as they were put, and what a
 * launch of an encoder takes.  The GPU
 * is taken to have bulk copies and wgmma, and the filter to be used unless it is off. */
int plan_forms_bytes(const struct device_options *o, gidx *bytes);

/* *plan <- the best one of at most `free` bytes.  ERR_MEMORY where not even the smallest fits. */
int plan_make(const struct plan_sizes *z, gidx free, struct cuda_plan *plan);

/* A filter that is not used any more gives its memory back. */
void plan_drop_filter(const struct plan_sizes *z, struct cuda_plan *plan);

/* What of a route job the memory of a launch depends on. */
struct plan_route {
  idx n, top_k;
  idx slots;    /* atoms of the window */
  idx excluded; /* atoms that a row may exclude */
};
/* Bytes of a launch of `rows` rows: by the direct kernels, and what the filter takes beside. */
gidx plan_exact_bytes(const struct plan_sizes *z, const struct plan_route *r, idx rows);
gidx plan_screen_bytes(const struct plan_sizes *z, const struct plan_route *r, idx rows);
/* How many rows of a job a launch may have within the plan; at least ROUTE_ROWS. */
idx plan_route_rows(const struct plan_sizes *z, const struct cuda_plan *plan,
                    const struct plan_route *r);

/* How many rows of an encoder_job a launch may have within the plan; one at least. */
idx plan_encoder_rows(const struct cuda_plan *plan);
/* Place the work arrays of such a launch, but for its values, from `base` on; returns their bytes.
 * base NULL: only count.  a has stride and route.n; entries: see plan_encoder_entries(). */
gidx plan_encoder_layout(struct encoder_args *a, gidx entries, char *base);
/* Entries that are placed at a time: those of one row at least. */
gidx plan_encoder_entries(idx stride, idx rows);

/* Bytes of a row's state of codes. */
gidx plan_state_bytes(idx vectors, real rho, int nonnegative);

/* How many rows of codes may have states of so many bytes at a time, at least one; spare: bytes
 * that are free beside the plan. */
idx plan_codes_rows(const struct cuda_plan *plan, gidx state_bytes, idx n, gidx spare);

/* What dense work on matrices of n rows takes: columns of a factor, put aside. */
gidx plan_dense_work(idx n);
/* Row `dense_bytes` of the table. */
gidx plan_dense_bytes(int threads, idx panel, idx n);

/* What the assembly of S takes beside S: of all batches, of one, and row `joint_bytes` of the
 * table, their sum.  Their pieces are aligned. */
struct joint;
enum { PLAN_JOINT_ALIGNED = 256, PLAN_JOINT_PIECES = 16 };
gidx plan_joint_resident(const struct joint *j);
gidx plan_joint_batch(const struct joint *j, idx longest, gidx capacity);
gidx plan_joint_bytes(const struct joint *j, idx longest, gidx capacity);

/* Arrow systems come in lots of so many bytes, or of one system that is larger; so many lots are on
 * the device at a time.  A system beyond PLAN_ARROW_LARGEST bytes stays on the host. */
enum { PLAN_ARROW_LOTS = 3, PLAN_ARROW_LOT = 24 << 20, PLAN_ARROW_LARGEST = 1 << 30 };
/* Row `arrow_bytes` of the table. */
gidx plan_arrow_bytes(gidx largest);

/* How the filter samples so many frames, and how long the lists of a row are (doc/certified.md). */
struct plan_lists {
  idx sampled;   /* the first frames of the order; 0: too few for a sample */
  int peaks_row; /* sampled sizes of a row; 0: the sample is too small for so many entries */
  int sizes_row; /* all sizes of a row, which are kept; 0: the product makes them again */
  int peak_rank; /* which of them gives the threshold estimate, from 1 */
  int capacity;  /* of a list */
};
struct plan_lists plan_lists_of(int wgmma, idx d, idx p, idx top_k, idx frames);
/* Pairs that so many rows may have to rescore. */
int plan_pairs(idx rows, idx top_k);

/* Place the work arrays of the filter's kernels one after another from `base` on; returns their
 * bytes.  base NULL: only count.  a has row_tiles, peaks_row, sizes_row, capacity and
 * pairs_capacity. */
gidx plan_screen_layout(struct screen_args *a, char *base);

#endif
