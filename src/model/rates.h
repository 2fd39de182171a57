/* SPDX-License-Identifier: BSD-3-Clause
 * The rates of a machine, as `sagitta-bench rates` measures them, and the seconds of a job that
 * follow from them.
 *
 * Floor: model.
 *
 * A rate is the work that all ranks together do per second, while all of them do the same.  It was
 * measured at the points of a grid, whose axes are sizes.  Between points its logarithm is linear
 * in the logarithms of the sizes; beyond the ends of an axis the rate is that at the end. */
#ifndef MODEL_RATES_H
#define MODEL_RATES_H

#include "base/types.h"

/* Beside each rate: its unit of work; then the axes of its grid. */
enum rate {
  RATE_ROUTE,       /* multiply-adds; columns, atoms, atoms per row and round */
  RATE_CODES,       /* rows whose codes are solved; columns, atoms per row, rounds */
  RATE_NONNEGATIVE, /* the same for nonnegative codes */
  RATE_COUNT,       /* rows, by all work besides reading, routing, codes; columns, atoms per row */
  RATE_READ,        /* bytes of rows as they are stored */
  RATE_WRITE,       /* bytes of a result with hashes */
  RATE_CHECK,       /* bytes of a result that is read again, and then published */
  RATE_SUMS,        /* multiply-adds of normal equations; columns of a rank, atoms, atoms per row */
  RATE_DESCENT,     /* multiply-adds of a joint update; columns of a rank, atoms */
  RATE_CONJUGATE,   /* multiply-adds of a conjugate update; columns of a rank, atoms per row */
  RATE_MOVES,       /* multiply-adds of a sweep over classes, by sweep_work(); columns, rows of an
                     * atom on all ranks, rows of a class on a rank */
  RATE_MOVES_ONE,   /* the same of moves in one direction, on GPUs: there the launches of a class,
                     * whose number grows with the directions, take most of the time */
  RATE_COLOR,       /* pairs of atoms of a row, s * s / 2 for s atoms; atoms per row */
  RATE_STEP,        /* multiply-adds of scores, in whole training steps; columns, atoms, batch */
  RATE_SCORES,      /* multiply-adds of the scores alone; the same axes */
  RATE_SOLVE,       /* bytes of arrow systems and steps; size of the blocks, rows of a system */
  RATE_EXCHANGE,    /* bytes that ranks receive from others */
  RATES
};

enum { RATE_AXES = 3, RATE_LINES_MOST = 320 };
/* Names of a rate, of its unit of work, and of its axes; the other axes are NULL. */
struct rate_row {
  const char *name, *unit, *axes[RATE_AXES];
};
extern const struct rate_row rate_rows[RATES];

struct rate_line {
  enum rate which;
  double at[RATE_AXES]; /* 1 on axes that the rate does not have */
  double rate;
};

struct rates {
  char version[32], revision[48]; /* of the program that measured them */
  char cpu[96], device[64];       /* the processor; the instruction set or the GPU that computed */
  char kind[8];                   /* "cpu" or "cuda" */
  idx ranks, threads;             /* threads of a rank */
  double start; /* seconds from the start of the program until its command begins, and in which
                 * GPUs are opened */
  struct rate_line lines[RATE_LINES_MOST];
  int count;
};

/* Add a line; returns 0 if there is no room. */
int rates_add(struct rates *r, enum rate which, const double *at, double rate);

/* The first rate whose lines are not a whole grid in ascending order, in which the last axis varies
 * fastest; RATES: there is none.  A rate without lines does not count. */
enum rate rates_broken(const struct rates *r);

/* A rate at the point (a, b, c); its grid must be whole.  NaN: the rate has no lines. */
double rate_at(const struct rates *r, enum rate which, double a, double b, double c);

/* The seconds of a job by phase.  Phases of times_beside() run on other threads, in parallel to the
 * phases that compute.  On a CPU both share the cores; with a GPU their times overlap. */
enum { TIMES_MOST = 24 };
struct time_line {
  const char *name; /* borrowed */
  double seconds;
  int beside;
};
struct times {
  struct time_line lines[TIMES_MOST];
  int count;
  int overlap; /* phases of times_beside() overlap the others */
  idx threads; /* of a rank */
};

/* Add seconds to the phase of this name, which is made at its first call.  Without room for a new
 * phase the seconds are lost. */
void times_add(struct times *t, const char *name, double seconds);
void times_beside(struct times *t, const char *name, double seconds);

/* The seconds of the whole job. */
double times_total(const struct times *t);

#endif
