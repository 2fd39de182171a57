/* SPDX-License-Identifier: BSD-3-Clause
 * Encoding: rows and a dictionary in, routed supports, codes and metrics out.
 *
 * Floor: encode.  Knows no files: rows come from a source, supports go to a sink.
 *
 * Ranks form a grid of groups of equal size.  Each group has the whole dictionary, dealt to its
 * ranks.  A superblock is the rows that all groups handle at a time, one block per group (a turn in
 * doc/design.md).  Within a group:
 *
 * - each rank reads its share of the block, and the group gathers the block;
 * - each rank scores the block on its own part of the dictionary, and sends each row's list to the
 *   rank that read the row;
 * - that rank merges the lists of its rows, solves the codes, and sends them to rank 0, which
 *   writes them; if each group is one rank, every rank may write.
 *
 * Further rounds (N.3r) do the same with residuals instead of rows.  Two blocks are in flight: the
 * lists of one are merged while the other is routed and the rows of a third are read.  Sums over
 * rows are made per sum block, a run of ROW_BLOCK consecutive rows (N.0, base/sums.h).
 *
 * To read the job from top to bottom: encode_impl.h (its state), encode.c (the loop over blocks),
 * block.c (a block from its rows to its results), steps.c (what a block asks of the device and of
 * other ranks), fetch.c (atoms from other ranks), background.c and files.c (the two worker
 * threads), layout.c (all memory), then shard.c (the dictionary dealt to ranks) and statistics.c
 * (sums for the metrics).  With an imported encoder, imported.c takes the place of block.c. */
#ifndef ENCODE_ENCODE_H
#define ENCODE_ENCODE_H

#include "base/memory.h"
#include "base/phase.h"
#include "base/stop.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/cuts.h"
#include "model/dictionary.h"
#include "model/encoder.h"
#include "model/identity.h"
#include "model/part.h"
#include "model/results.h"
#include "model/rows.h"

struct encode_task {
  const struct row_source *rows;
  const struct row_source *whole; /* the rows of which `rows` are a part; NULL: `rows` are all */
  gidx first;                     /* row of `whole` that is row 0 of `rows`; it begins a sum
                                   * block */
  const struct atom_source *atoms;
  const real *mean;                /* [p] subtracted from rows; NULL: none */
  const struct support_sink *sink; /* used on rank 0, or with by_ranks on each rank */
  int by_ranks;                    /* each group is one rank, and gives the sink whole sum blocks of
                                    * its own */
  /* Supports come from an imported encoder (N.24).  NULL: rows are routed, and codes solved.  The
   * encoder's matrix comes from `weights`; encoder->weights is NULL.  With an encoder each group is
   * one rank, rounds and codes are 1, and a row has at most min(top_s, K) atoms. */
  const struct encoder *encoder;
  const struct atom_source *weights;
  /* With an encoder: a mean number of codes per row is wanted (N.58).  If cuts->n is 0, the job
   * first finds the cuts from all rows.  NULL: none. */
  struct score_cuts *cuts;
  int solves; /* with an encoder: codes are solved on its supports (N.24k); 0: its own codes */
  uint64_t encoder_hash; /* hash that the encoder must have; 0: any */
  idx top_s;             /* 1 .. min(MAX_TOP_S, K) */
  idx rounds;            /* >= 1 */
  int groups;            /* of equal size; 0: one group */
  idx tile, block;       /* with several groups a block is whole sum blocks: encode_block_whole() */
  idx threads;
  const char *device, *variant; /* as in struct device_options */
  int is_endless;               /* rows never end: a GPU is always worth its start */
  const char *kernels, *filter;
  int codes; /* codes are solved; needed when rounds > 1 */
  int normalize;
  int nonnegative; /* codes are at least 0, and atoms are chosen for this (N.5n); d = 1 */
  real rho;
  idx max_cosine;      /* largest K for which the decoder cosine is computed */
  gidx sink_first;     /* row of the sink that is row 0 of `rows` */
  int no_cosine;       /* the decoder cosine is left out: the part with row 0 has it */
  uint64_t dictionary; /* hash that the dictionary must have; 0: any */
  struct stops stops;  /* asked between superblocks that end with a sum block */
  struct stops wishes; /* asked while cuts are found; has no time limit, since a resumed run would
                        * meet it again */
};

/* Are active atoms of rows chosen and solved (N.55)? */
static inline int encode_is_active(const struct encode_task *t)
{
  return t->encoder && t->encoder->kind == ENCODER_ACTIVE;
}

/* The kind of the encoder that finds the supports, of encoder_names[]; NULL: no encoder. */
static inline const char *encode_kind_name(const struct encode_task *t)
{
  if (!t->encoder) return NULL;
  return encoder_names[t->cuts && !encode_is_active(t) ? ENCODER_BATCHTOPK : t->encoder->kind];
}

enum encode_phase {
  PHASE_OPEN, /* until the device is open, with its memory and this rank's tiles */
  PHASE_LOAD, /* this rank's tiles: reading and checking */
  PHASE_READ,
  PHASE_COPY,
  PHASE_ALLGATHER,
  PHASE_ROUTE,
  PHASE_ALLTOALLV, /* lists to the ranks of their rows */
  PHASE_MERGE,
  PHASE_FETCH,
  PHASE_CODES,
  PHASE_GATHER, /* results to rank 0 */
  PHASE_METRICS,
  PHASE_SUMS,
  PHASE_COSINE,
  PHASE_WRITE,
  PHASE_HASH,            /* part of writing; set by the caller, which knows the sink */
  PHASE_WAIT_FILES,      /* "wait" in the report: the main thread waits for reading and writing */
  PHASE_WAIT_BACKGROUND, /* "waited" in the report: the main thread waits for merging, counting,
                          * column sums */
  ENCODE_PHASES
};

/* Bytes of memory of one rank, by purpose. */
struct encode_memory {
  gidx atoms;   /* this rank's tiles as they were read */
  gidx forms;   /* other forms of these tiles that the device keeps; in forecasts only */
  gidx matrix;  /* of an imported encoder */
  gidx rows;    /* rows and residuals */
  gidx lists;   /* lists, supports and scores */
  gidx codes;   /* codes, their states, quality and column sums */
  gidx places;  /* which atoms each table of fetched atoms has */
  gidx fetched; /* upper bound: fetched atoms, and atoms that other ranks ask for; in forecasts
                 * only */
  gidx host;    /* part of all this that is in host memory; in forecasts only */
  gidx device;  /* part that is in GPU memory, 0 on a CPU; in forecasts only */
};

struct encode_result {
  gidx rows;               /* rows done; fewer than all if the job was asked to stop */
  struct metrics metrics;  /* on rank 0 */
  gidx *density;           /* [K] */
  uint64_t fingerprint;    /* of supports, scores and codes */
  gidx tiny;               /* rows with codes whose gates are all 0 in every frame (N.2) */
  struct identity inputs;  /* dictionary, and rows unless they are a part */
  struct encode_part part; /* on rank 0: the data for joining parts */
  struct phase phases[ENCODE_PHASES];
  const char *device; /* of this rank: "cpu" or "cuda" */
  char variant[64];   /* of this rank: instruction set of its loops, or name of the GPU */
  struct device_counts counts;
  struct screen_counts filter; /* of this rank's routing of rows */
  struct encode_memory memory; /* of this rank, taken before the first block */
  struct arena arena;
};

/* Forecast the memory of a rank by running the job's own allocation dry.  Rank 0 takes the most.
 * Device operations take further memory in each call, which is not counted. */
int encode_memory(const struct encode_task *task, int ranks, int rank, struct encode_memory *m);

/* ERR_MEMORY, with the numbers, if a rank needs more host memory than its share of the free memory
 * of its machine.  Meant to be called before anything is read.  Collective; the same status on
 * every rank. */
int encode_memory_check(const struct encode_task *task, struct comm *c);

/* Multiply-adds of the routing, all ranks together. */
double encode_work(const struct encode_task *task);

/* The rows per block when `block` is 0: enough to keep the device busy, few enough for memory.  The
 * result of the job does not depend on this number. */
idx encode_block_rows(const struct encode_task *task, int ranks);
/* The block size that is used when `block` is asked for: with several groups, whole sum blocks, at
 * least one. */
idx encode_block_whole(int groups, idx block);

/* Choose task->groups: the largest number that meets two conditions, or one group if none does.
 * There is a sum block of rows for each group.  What the job holds on a rank fits in the memory of
 * the rank and of its GPU, including the rank's share of the dictionary.  Then choose task->tile
 * and task->block if they are 0.  reason <- why there are not more groups.  Collective; the same on
 * every rank. */
int encode_grid_choose(struct encode_task *task, struct comm *c, char *reason, size_t capacity);
/* Choose tile and block only, for given groups. */
void encode_cut_choose(struct encode_task *task, int ranks);

/* A hash of a few rows spread over the source, to find out whether two parts are of the same rows.
 * Starts a worker thread to read.  Not collective. */
int encode_sample(const struct row_source *rows, uint64_t *hash);
/* shift[p] <- the column shifts of the metrics (doc/numerics.md, section 7) for these rows, less
 * `mean` unless it is NULL.  ERR_INPUT when a value is not finite.  Not collective. */
int encode_shift(const struct row_source *rows, const real *mean, real *shift);

/* Encode all rows of the task, or those before a stop.  encode_free() frees the result.
 * Collective; the same status on every rank. */
int encode_run(const struct encode_task *task, struct comm *c, struct encode_result *result);
/* Rank 0: join the result with that of the earlier rows, whose part is `before` and whose density
 * is density[K].  Not collective. */
int encode_join(const struct encode_task *task, const struct encode_part *before,
                const gidx *density, struct encode_result *result);
void encode_free(struct encode_result *result);

#endif
