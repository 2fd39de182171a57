/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels agree on: arguments and layouts.  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes nothing.  kernels/README says how kernels are compiled, and in which
 * order they run.
 *
 * Packed operands stand as [tile][vector][column][item], so that a stage of a kernel is one piece
 * of memory; items beyond the last and columns beyond p are zeros. */
#ifndef TYPES_H
#define TYPES_H

enum {
  WARP = 32,
  ROUTE_WARPS = 8,       /* that compute, in a block of route */
  ROUTE_ROWS = 128,      /* rows a tile: 16 a warp */
  ROUTE_COLUMN_STEP = 4, /* packed columns are a multiple of this */
  MERGE_WARPS = 4,       /* rows a block of merge */
  ENCODER_WARPS = 8,     /* rows a block of the kernels of encoders */
  GATHER_THREADS = 128,
  GATHER_BLOCKS = 1 << 14,
  PLACE_THREADS = 256,
  PLACE_BLOCKS = 1 << 14,
  FRAME_ROWS_WARPS = 8, /* rows a block of frame_rows, in turn */
  FRAME_ROWS_BLOCKS = 1 << 12,
  PREPROCESS_WARPS = 8, /* rows a block of preprocess, in turn */
  PREPROCESS_BLOCKS = 1 << 10,
  COLUMN_THREADS = 64,  /* columns a block of column_sums */
  COLUMN_AHEAD = 32,    /* rows that a thread loads at a time */
  NORMAL_WARPS = 4,     /* chunks a block of normal_scatter */
  NORMAL_THREADS = 128, /* columns a block of normal_target */
  NORMAL_RANGE = 4096,  /* entries of a row of the Gram matrix that a block has, at most */
  ENERGY_ROWS = 32,     /* a block of normal_energies */
  ENERGY_COLUMNS = 128, /* and columns at a time */
  DESCEND_ATOMS = 64,   /* NORMAL_BLOCK of model/normal.h */
  DESCEND_COLUMNS = 8,  /* a block of normal_descend */
  DESCEND_WARPS = DESCEND_ATOMS / 16
};

/* As struct entry of model/route.h: a score (frames: a gate) and its atom, -1 for none. */
struct candidate {
  float value;
  int atom;
};

struct gather_args {
  const unsigned *in; /* [..][words] */
  const int *names;   /* [count] which items of in; 0: the first ones */
  unsigned *out;      /* [count][words] */
  long long count, words;
};

struct lists_scatter_args {
  const struct candidate *lists; /* [..][top_k] */
  int *atoms;                    /* [..][s] */
  float *score;                  /* [..][s] */
  long long entries;             /* of all lists */
  int top_k, at, s;
  int gates;        /* values are gates: scores are their roots */
  const int *power; /* [n] rows were routed times 2^power; 0: as they are */
};

/* Rows of frames, times 2^power each (N.2). */
struct frame_rows_args {
  const float *rows; /* [n][p] */
  float *out;        /* [n][p] written; 0: power is written in its place */
  int *power;        /* [n] */
  int n, p;
};

/* What rows that came to the device are found to be. */
struct preprocess_found {
  unsigned long long terms; /* of their hash; 0 before */
  unsigned long long bad;   /* the lowest row that is not finite; all ones before */
};

struct preprocess_args {
  float *rows;        /* [n][p] */
  const double *mean; /* [p] taken from the rows; 0: they stay as they are */
  long long first;    /* number of the first row in the whole, for the hash */
  int n, p;
  struct preprocess_found *found;
};

/* As struct statistics of encode/statistics.h: chains of x - shift and of its square. */
struct column_args {
  const float *rows;      /* [n][p] */
  const double *shift;    /* [count], of the columns that are summed */
  long long first, all;   /* number of the first row, and of all rows */
  int n, p, begin, count; /* columns begin .. begin + count - 1 are summed */
  int block;              /* rows of a sum block */
  const double *from;     /* [2][count] chains of the sum block in progress */
  double *to, *ended;     /* [2][count] the same afterwards; [sum blocks that end][2][count] */
};

struct pack_args {
  const float *in;   /* [..][d][p] */
  const int *row_of; /* [count] which items of in; 0: the first ones */
  float *out;        /* [tiles][d][columns][width] */
  int count;         /* items of in */
  int padded;        /* items written, zeros from count on */
  int first;         /* item of out that in[0] becomes */
  int d, p, columns, width;
};

struct route_args {
  const float *rows;   /* [row_tiles][columns][ROUTE_ROWS] */
  const float *atoms;  /* [atom_tiles][d][columns][tile_atoms] */
  const int *atom_of;  /* [slots] global numbers */
  const int *row_of;   /* [n] the row's number in excluded, bad and out; 0: its own */
  const int *excluded; /* [..][excluded_stride] global numbers of atoms, the first count used */
  int excluded_count, excluded_stride;
  int n, slots, columns, d, top_k;
  int row_tiles, atom_tiles;
  int blocks;              /* of the route kernel */
  int parts;               /* lists a row, at most */
  int ascending;           /* atom_of rises */
  struct candidate *lists; /* [rows of all tiles][parts][CAPACITY], work */
  int *counts;             /* [rows of all tiles][parts], work */
  unsigned long long
      *bad;              /* lowest row 2^32 + atom of a score that is not finite; all ones before */
  struct candidate *out; /* [..][top_k] of the merge, in order (N.2), (0, -1) where atoms ran out */
};

/* Which values of a row are entries: keys above `key`, and the first `ties` of those equal. */
struct encoder_cut {
  int key, ties;
};

/* As struct encoder_job of device/encoder.h.  A slot is an atom. */
struct encoder_args {
  struct route_args route;           /* rows and atoms, their geometry, and bad */
  const float *bias, *scale, *floor; /* [stride], of padding 0, 1, infinity */
  float *values;                     /* [n][stride] h where an atom may have a code, else 0 */
  int stride;                        /* atoms of all tiles */
  int top;                           /* entries a row has at most; 0: any number */
  struct encoder_cut *cut;           /* [n] */
  int *start;                        /* [n + 1] of a row in entries; before: how many */
  int first, end;                    /* rows to place: entries begin with those of `first` */
  int *atoms, *placed_atoms;         /* in order; as they were placed, of topk alone */
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
  const int *slot;     /* [n][max_m] place in atoms of each support atom */
  const float *toward; /* [..] of nonnegative codes: what rho draws those of each atom to; 0: 0 */
  int n, p, d;
  int m_old, m_new, max_m;
  double rho;
  char *states;                 /* [n] of state_bytes; 0: not needed (codes.cu) */
  long long state_bytes;        /* codes_state_bytes() of forms.h, for max_m */
  int keep;                     /* the states are for a later call */
  float *residual;              /* [n][p]; 0: not wanted */
  float *codes;                 /* [n][m_new][d]; 0: not wanted */
  struct code_quality *quality; /* [n], needs codes; 0: not wanted */
};

/* A code that is not 0, and the row that has it. */
struct normal_entry {
  int row;
  float code;
};

/* As struct normal_job of device/normal.h, for rows of which there are n s entries at most 2^31. */
struct normal_args {
  const int *slots;   /* [n][s] */
  const float *codes; /* [n][s]; NULL: entries whose codes are 0 count, too */
  const float *x;     /* [n][p] */
  int n, s, p, k;
  int first, count, step;       /* own rows of gram, as struct normal_own */
  int begin, columns;           /* own columns of x */
  int chunk_rows, chunks;       /* of forms.h */
  int *counts;                  /* [chunks][k] entries of an atom; then those before the chunk */
  int *start;                   /* [k + 1] of an atom in entries; before: how many */
  struct normal_entry *entries; /* [n s] atom by atom, rows ascending */
  long long *numbers;           /* the same, of which the numbers are wanted; NULL: entries are */
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
  double *diagonal;            /* [k] <- of these atoms that of gram */
  int k, columns, passes, first, end;
};

#endif
