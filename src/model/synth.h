/* SPDX-License-Identifier: BSD-3-Clause
 * Synthetic data: rows from a planted dictionary and sparse codes, and the trigonometric fixture.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Everything is a pure function of the seed and the global index of an atom or row, so any part can
 * be generated anywhere and in any order.  Only the fixture depends on the C library, by sin and
 * cos. */
#ifndef MODEL_SYNTH_H
#define MODEL_SYNTH_H

#include "base/types.h"

/* Streams of random numbers (base/rng.h) of `seed` and `synth`, one per purpose. */
enum random_stream {
  STREAM_DRAW = 1, /* the order in which `seed` visits rows */
  STREAM_ATOM,
  STREAM_START,
  STREAM_SUPPORT,
  STREAM_CODE,
  STREAM_NOISE,
  STREAM_COUNT /* a further try for a purpose adds a multiple of this to its stream */
};

/* Rows that are sums of s planted atoms and noise,
 *     x_i = fl32( sum_j sum_m code_ijm d_jm  +  noise * normal ),
 * summed in f64 over (j, m) in order. */
struct planted {
  uint64_t seed;
  idx k, d, p, s;
  real noise; /* standard deviation in a column; atoms have norm 1, codes are 1/2 .. 3/2 in size */
  int zipf;   /* atom a is drawn with a probability of about 1 / (a + 1) times a constant; 0: all
               * are equally likely */
};

/* Number of reals of work space for the functions below. */
gidx planted_work(const struct planted *g);

/* out[d][p] <- a planted atom: Gaussian vectors, orthonormalised in order and rounded once; d <=
 * p. */
void planted_atom(const struct planted *g, idx atom, float *out, real *work);

/* out[d][p] <- the start for the planted atom with frame[d][p].  Vector m is
 *     cosine u_m + sqrt(1 - cosine^2) g_m,
 * where the g are random, orthonormal, and orthogonal to all u; 2 d <= p unless cosine is 1. */
void planted_start(const struct planted *g, idx atom, const float *frame, real cosine, float *out,
                   real *work);

/* atoms[s] <- the distinct atoms of a row, codes[s][d] <- their codes, multiples of 2^-23 with
 * random signs; s <= k. */
void planted_support(const struct planted *g, gidx row, idx *atoms, float *codes);

/* out[p] <- the row, from its codes[s][d] and the vectors of its atoms, vector[s d]. */
void planted_row(const struct planted *g, gidx row, const float *const *vector, const float *codes,
                 float *out, real *work);

/* The fixture of doc/numerics.md section 1, which has many ties and near-ties:
 * x_ic = 0.9 sin(0.013 (31 i + 17 c)), d_ac = cos(0.011 (7 a + 5 c)) scaled to unit norm. */
void trig_row(gidx row, idx p, float *out);
void trig_atom(idx atom, idx p, float *out);

#endif
