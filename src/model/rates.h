/* SPDX-License-Identifier: BSD-3-Clause
 * The rates of a machine, as `sagitta-bench rates` measures them, and the seconds of a job that
 * follow from them.
 *
 * Floor: model.
 *
 * A rate counts what all ranks do together, a second, while all of them do the same.  It was
 * measured at the points of a grid, whose axes are sizes.  Between points its logarithm is linear
 * in the logarithms of the sizes; beyond the ends of an axis it is that of the end. */
#ifndef MODEL_RATES_H
#define MODEL_RATES_H

#include "base/types.h"

enum rate {
  RATE_ROUTE,       /* multiply-adds; columns, atoms, atoms that a round gives a row */
  RATE_CODES,       /* rows whose codes are solved; columns, atoms of a row, rounds */
  RATE_NONNEGATIVE, /* the same with nonnegative codes */
  RATE_COUNT,       /* rows; columns, atoms of a row: lists, sums, metrics, and results to rank 0 */
  RATE_READ,        /* bytes of rows as they are stored */
  RATE_WRITE,       /* bytes of a result with hashes */
  RATE_CHECK,       /* bytes of a result, read again and published when all is written */
  RATE_SUMS,      /* multiply-adds of normal equations; columns of a rank, atoms, atoms of a row */
  RATE_DESCENT,   /* multiply-adds of a joint update; columns of a rank, atoms */
  RATE_CONJUGATE, /* multiply-adds of a conjugate update; columns of a rank, atoms of a row */
  RATE_MOVES,     /* multiply-adds of a sweep over classes, by sweep_work(); columns, rows of an
                   * atom on all ranks, rows of a class on a rank */
  RATE_COLOR,     /* pairs of atoms of a row, s * s / 2 for s atoms; atoms of a row */
  RATE_STEP,      /* multiply-adds of scores, in whole training steps; columns, atoms, batch */
  RATE_SCORES,    /* the same of the scores alone */
  RATE_SOLVE,     /* bytes of arrow systems and steps; size of the blocks, rows of a system */
  RATE_EXCHANGE,  /* bytes that ranks receive from others */
  RATES
};

enum { RATE_AXES = 3, RATE_LINES_MOST = 256 };
/* What a rate counts, and the names of its axes; NULL: fewer. */
struct rate_row {
  const char *name, *unit, *axes[RATE_AXES];
};
extern const struct rate_row rate_rows[RATES];

struct rate_line {
  enum rate which;
  double at[RATE_AXES]; /* 1 on axes that there are not */
  double rate;
};

struct rates {
  char version[32], revision[48]; /* of the program that measured them */
  char cpu[96], device[64];       /* the processor; what computed: an instruction set or a GPU */
  char kind[8];                   /* "cpu" or "cuda" */
  idx ranks, threads;             /* threads of a rank */
  double start;                   /* seconds from the start of the program to that of its command */
  struct rate_line lines[RATE_LINES_MOST];
  int count;
};

/* Add a line; returns 0 where there is no room. */
int rates_add(struct rates *r, enum rate which, const double *at, double rate);

/* The first rate whose lines are not a grid, in the order of their axes, the last the fastest;
 * RATES: all are. */
enum rate rates_broken(const struct rates *r);

/* A rate at a point, whose grid is whole; NaN: there are none of this name. */
double rate_at(const struct rates *r, enum rate which, double a, double b, double c);

/* The seconds of a job by phase.  Phases beside the others run on other threads: on a CPU they
 * take turns on its cores with what computes, on a GPU they overlap. */
enum { TIMES_MOST = 24 };
struct time_line {
  const char *name; /* borrowed */
  double seconds;
  int beside;
};
struct times {
  struct time_line lines[TIMES_MOST];
  int count;
  int overlap; /* phases beside the others overlap */
  idx threads; /* of a rank */
};

/* Add seconds to a phase, which is new where it has not been named. */
void times_add(struct times *t, const char *name, double seconds);
void times_beside(struct times *t, const char *name, double seconds);

/* The seconds of the whole job. */
double times_total(const struct times *t);

#endif
