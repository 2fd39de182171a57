/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments and layouts that launchers and kernels share.  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes nothing.  kernels/README says how kernels are compiled, and in which
 * order they run.
 *
 * Packed operands are stored as [tile][vector][column][item], so that a stage of a kernel is
 * contiguous.  Missing items and columns are zeros. */
#ifndef TYPES_H
#define TYPES_H

enum {
  WARP = 32,
  ROUTE_WARPS = 8,       /* warps of a block of route that compute */
  ROUTE_ROWS = 128,      /* rows of a tile, 16 per warp */
  ROUTE_COLUMN_STEP = 4, /* packed columns are a multiple of this */
  MERGE_WARPS = 4,       /* rows of a block of merge */
  ENCODER_WARPS = 8,     /* rows of a block, in the kernels of encoders */
  GATHER_THREADS = 128,
  GATHER_BLOCKS = 1 << 14,
  PLACE_THREADS = 256,
  PLACE_BLOCKS = 1 << 14,
  FRAME_ROWS_WARPS = 8, /* rows of a block of frame_rows at a time */
  FRAME_ROWS_BLOCKS = 1 << 12,
  PREPROCESS_WARPS = 8, /* rows of a block of preprocess at a time */
  PREPROCESS_BLOCKS = 1 << 10,
  COLUMN_THREADS = 64,  /* columns of a block of column_sums */
  COLUMN_AHEAD = 32,    /* rows that a thread loads at a time */
  NORMAL_WARPS = 4,     /* chunks of a block of normal_scatter */
  NORMAL_THREADS = 128, /* columns of a block of normal_target */
  NORMAL_RANGE = 4096,  /* the most entries of a row of the Gram matrix for a block */
  ENERGY_ROWS = 32,     /* rows of a block of normal_energies */
  ENERGY_COLUMNS = 128, /* and its columns at a time */
  DESCEND_ATOMS = 64,   /* NORMAL_BLOCK of model/normal.h */
  DESCEND_COLUMNS = 8,  /* columns of a block of normal_descend */
  DESCEND_WARPS = DESCEND_ATOMS / 16
};

/* As struct entry of model/route.h: a score (for frames a gate) and its atom; -1: no entry. */
struct candidate {
  float value;
  int atom;
};

struct gather_args {
  const unsigned *in; /* [..][words] */
  const int *names;   /* [count] indices of items of in; 0: the first ones */
  unsigned *out;      /* [count][words] */
  long long count, words;
};

struct lists_scatter_args {
  const struct candidate *lists; /* [..][top_k] */
  int *atoms;                    /* [..][s] */
  float *score;                  /* [..][s] */
  long long entries;             /* in all lists */
  int top_k, at, s;
  int gates;        /* 1: values are gates, whose roots are the scores */
  const int *power; /* [n] rows were multiplied by 2^power before routing; 0: they were not */
};

/* Rows of frames, multiplied by 2^power (N.2). */
struct frame_rows_args {
  const float *rows; /* [n][p] */
  float *out;        /* [n][p] written; 0: power is written instead */
  int *power;        /* [n] */
  int n, p;
};

/* What preprocess finds in rows. */
struct preprocess_found {
  unsigned long long terms; /* sum of the hash terms of all rows; 0 before */
  unsigned long long bad;   /* the lowest row that is not finite; all ones before */
};

struct preprocess_args {
  float *rows;        /* [n][p] */
  const double *mean; /* [p] subtracted from the rows; 0: not subtracted */
  long long first;    /* global number of the first row, for the hash */
  int n, p;
  struct preprocess_found *found;
};

/* As struct statistics of encode/statistics.h: chains of x - shift and of its square. */
struct column_args {
  const float *rows;      /* [n][p] */
  const double *shift;    /* [count] for the columns that are summed */
  long long first, all;   /* global number of the first row; number of all rows */
  int n, p, begin, count; /* columns begin .. begin + count - 1 are summed */
  int block;              /* rows of a sum block */
  const double *from;     /* [2][count] chains of the sum block in progress */
  /* to: [2][count] chains of the sum block in progress after these rows.
   * ended: [sum blocks that end][2][count] their chains. */
  double *to, *ended;
};

struct pack_args {
  const float *in;   /* [..][d][p] */
  const int *row_of; /* [count] indices of items of in; 0: the first ones */
  float *out;        /* [tiles][d][columns][width] */
  int count;         /* items of in */
  int padded;        /* items that are written; items from count on are zeros */
  int first;         /* the item of out that in[0] becomes */
  int d, p, columns, width;
};

struct route_args {
  const float *rows;  /* [row_tiles][columns][ROUTE_ROWS] */
  const float *atoms; /* [atom_tiles][d][columns][tile_atoms] */
  const int *atom_of; /* [slots] global numbers */
  const int *row_of;  /* [n] index of each row in excluded, bad and out; 0: the row itself */
  const int
      *excluded; /* [..][excluded_stride] global numbers of atoms, excluded_count of them used */
  int excluded_count, excluded_stride;
  int n, slots, columns, d, top_k;
  int row_tiles, atom_tiles;
  int blocks;              /* of the route kernel */
  int parts;               /* the most lists of a row */
  int ascending;           /* 1: atom_of is ascending */
  struct candidate *lists; /* [rows of all tiles][parts][CAPACITY], work */
  int *counts;             /* [rows of all tiles][parts], work */
  unsigned long long
      *bad; /* row 2^32 + atom of the first score that is not finite; all ones before */
  struct candidate *out; /* [..][top_k] by merge, in the order of (N.2); (0, -1) if atoms run out */
};

/* The values of a row that are entries: keys above `key`, and the first `ties` keys equal to it. */
struct encoder_cut {
  int key, ties;
};

/* As struct encoder_job of device/encoder.h.  A slot is an atom. */
struct encoder_args {
  struct route_args route;           /* rows and atoms, their geometry, and bad */
  const float *bias, *scale, *floor; /* [stride]; for padding 0, 1, infinity */
  float *values;                     /* [n][stride] h if the atom may have a code, otherwise 0 */
  int stride;                        /* atoms of all tiles */
  int top;                           /* the most entries of a row; 0: any number */
  struct encoder_cut *cut;           /* [n] */
  int *start;                        /* [n + 1] counts of rows; later their first entries */
  int first, end;                    /* rows to place; row `first` is placed at index 0 */
  int *atoms, *placed_atoms;         /* in order; for topk only: unordered */
  float *score, *placed_score;
};

/* As struct row_quality of model/codes.h. */
struct code_quality {
  double error, cosine;
  long long nonzero;
  double square;
};

/* As struct codes_job of device/codes.h. */
struct codes_args {
  const float *rows;   /* [n][p] */
  const float *atoms;  /* [..][d][p] */
  const int *slot;     /* [n][max_m] index into atoms of each support atom */
  const float *toward; /* [..] nonnegative codes: rho pulls each code to this value; null: to 0 */
  int n, p, d;
  int m_old, m_new, max_m;
  double rho;
  char *states;                 /* [n] of state_bytes; 0: not needed (codes.cu) */
  long long state_bytes;        /* codes_state_bytes() of forms.h, for max_m */
  int keep;                     /* 1: a later call needs the states */
  float *residual;              /* [n][p]; 0: not wanted */
  float *codes;                 /* [n][m_new][d]; 0: not wanted */
  struct code_quality *quality; /* [n], needs codes; 0: not wanted */
};

/* A code that is not 0, and the row that has it. */
struct normal_entry {
  int row;
  float code;
};

/* As struct normal_job of device/normal.h; the rows have at most 2^31 entries. */
struct normal_args {
  const int *slots;   /* [n][s] */
  const float *codes; /* [n][s]; NULL: entries whose codes are 0 count too */
  const float *x;     /* [n][p] */
  int n, s, p, k;
  int first, count, step;       /* own rows of gram, as in struct normal_own */
  int begin, columns;           /* own columns of x */
  int chunk_rows, chunks;       /* by forms.h */
  int *counts;                  /* [chunks][k] entries of an atom; later: in all earlier chunks */
  int *start;                   /* [k + 1] counts of atoms; later their first entries */
  struct normal_entry *entries; /* [n s] by atom, then by row */
  long long *numbers;           /* if not NULL, written instead of entries: row s + support index */
  double *gram;                 /* [count][k] */
  double *target;               /* [k][columns] */
};

struct normal_decay_args {
  double *values; /* [count] */
  long long count;
  double beta;
};

/* As struct energies_job of device/normal.h. */
struct normal_energies_args {
  const int *slots;    /* [n][s] */
  const float *codes;  /* [n][s] */
  const float *x;      /* [n][p] */
  const double *atoms; /* [k][columns] */
  double *energy;      /* [n] */
  int n, s, p, begin, columns;
};

/* As struct clear_job and struct descend_job of device/normal.h. */
struct normal_clear_args {
  const unsigned char *forget; /* [k] */
  double *gram, *target;       /* [count][k], [k][columns] */
  int k, columns, first, count, step;
};

struct normal_descend_args {
  const double *gram, *target; /* [end - first][k], [k][columns] */
  double *atoms;               /* [k][columns] */
  double *diagonal;            /* [k] written for atoms first .. end - 1, from gram */
  int k, columns, passes, first, end;
};

#endif
