/* SPDX-License-Identifier: BSD-3-Clause
 * Encoding: rows and a dictionary in, routed supports, codes and metrics out.
 *
 * Floor: encode.  Knows no files: rows come from a source, supports go to a sink.
 *
 * Ranks are a grid: groups of equal size, each of which has the whole dictionary, dealt to its
 * ranks.  The rows pass in turns, of which each group takes a block.  Each rank reads its share of
 * its group's block; the ranks of a group gather the block, score it over their own shards of the
 * dictionary, and send each row's list to the rank that read the row.  That rank merges the lists,
 * solves the codes, and sends them to rank 0, which writes; where groups are ranks, each may write.
 * Further rounds (N.3r) do the same with residuals in place of rows.  Two blocks are in flight: the
 * lists of one are merged while the other is routed, and the rows of a third are read meanwhile.
 *
 * To read the job from top to bottom: encode_impl.h (its state), encode.c (the loop over blocks),
 * block.c (a block from its rows to its results), steps.c (what a block asks of the device and of
 * other ranks), fetch.c (atoms from other ranks), background.c and files.c (the two worker
 * threads), layout.c (all memory), then shard.c (the dictionary dealt to ranks) and statistics.c
 * (sums for the metrics).  Codes of an imported encoder take the place of blocks: imported.c. */
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
  const struct row_source *whole; /* of which rows are a part; NULL: they are the whole */
  gidx first;                     /* row of the whole, of a part: the first of a sum block */
  const struct atom_source *atoms;
  const real *mean;                /* [p] subtracted from rows; NULL: none */
  const struct support_sink *sink; /* used on rank 0, or by_ranks on each: groups are as many */
  int by_ranks;                    /* as ranks, which then give it whole sum blocks of their own */
  /* Supports are those of an imported encoder (N.24); NULL: rows are routed, and codes solved.  Its
   * matrix comes from a source, its weights are NULL.  Then groups are as many as ranks, rounds is
   * 1, codes is 1, and rows have up to top_s atoms, K at most. */
  const struct encoder *encoder;
  const struct atom_source *weights;
  /* With an encoder: a mean number of codes a row is asked for (N.58).  Where n is 0 the job finds
   * the cuts first, of all rows.  NULL: none. */
  struct score_cuts *cuts;
  int solves; /* with an encoder: codes are solved on its supports (N.24k), not its own */
  uint64_t encoder_hash; /* that it has to have; 0: any */
  idx top_s;             /* 1 .. min(MAX_TOP_S, K) */
  idx rounds;            /* >= 1 */
  int groups;            /* of ranks, whose number it divides; 0: one */
  idx tile, block;       /* of several groups, blocks are whole sum blocks: encode_block_whole() */
  idx threads;
  const char *device, *variant; /* as struct device_options */
  int is_endless;               /* rows come without end, so that a GPU pays */
  const char *kernels, *filter;
  int codes; /* solve them; needed when rounds > 1 */
  int normalize;
  int nonnegative; /* codes are at least 0, and atoms are chosen for that (N.5n); d = 1 */
  real rho;
  idx max_cosine;      /* largest K for which the decoder cosine is computed */
  gidx sink_first;     /* row of the sink where the rows begin */
  int no_cosine;       /* it is not: the part that has row 0 has it */
  uint64_t dictionary; /* the hash that the dictionary has to have; 0: any */
  struct stops stops;  /* asked where whole sum blocks are done */
  struct stops wishes; /* asked before the first: without a limit that would let no run go on */
};

/* Are active atoms of rows chosen and solved (N.55)?  A GPU cannot, so far. */
static inline int encode_is_active(const struct encode_task *t)
{
  return t->encoder && t->encoder->kind == ENCODER_ACTIVE;
}

/* The kind of the encoder whose supports these are, of encoder_names[]; NULL: none. */
static inline const char *encode_kind_name(const struct encode_task *t)
{
  if (!t->encoder) return NULL;
  return encoder_names[t->cuts && !encode_is_active(t) ? ENCODER_BATCHTOPK : t->encoder->kind];
}

enum encode_phase {
  PHASE_OPEN, /* until the device has its memory and this rank's tiles */
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
  PHASE_HASH,            /* part of writing; filled in by who knows the sink */
  PHASE_WAIT_FILES,      /* "wait": of the main thread, for reading and writing */
  PHASE_WAIT_BACKGROUND, /* "waited": of the main thread, for merging, counting and column sums */
  ENCODE_PHASES
};

/* Bytes of memory of one rank, by purpose. */
struct encode_memory {
  gidx atoms;   /* this rank's tiles as they were read */
  gidx forms;   /* what the device keeps of them beside that; of a forecast alone */
  gidx matrix;  /* that of an imported encoder */
  gidx rows;    /* rows and residuals */
  gidx lists;   /* lists, supports and scores */
  gidx codes;   /* codes, their states, quality and column sums */
  gidx places;  /* which atoms a table of fetched atoms has */
  gidx fetched; /* such atoms at most, and those that others ask for; of a forecast alone */
  gidx host;    /* how much of all this is in memory of the host; of a forecast alone */
  gidx device;  /* the same of a GPU, 0 on the CPU */
};

struct encode_result {
  gidx rows;               /* done: all, unless it was asked to stop */
  struct metrics metrics;  /* on rank 0 */
  gidx *density;           /* [K] */
  uint64_t fingerprint;    /* of supports, scores and codes */
  gidx tiny;               /* rows with codes, of whose frames all gates are 0 (N.2) */
  struct identity inputs;  /* dictionary, and rows unless they are a part */
  struct encode_part part; /* what is needed to join parts, on rank 0 */
  struct phase phases[ENCODE_PHASES];
  const char *device; /* of this rank: "cpu" or "cuda" */
  char variant[64];   /* its instruction set or name */
  struct device_counts counts;
  struct screen_counts filter; /* of routing rows, this rank */
  struct encode_memory memory; /* that this rank took before the first block */
  struct arena arena;
};

/* Forecast the memory of a rank: the job's own allocation, run dry.  The first rank takes the
 * most.  Left out is the scratch of device operations, which take arenas of their own for each
 * call. */
int encode_memory(const struct encode_task *task, int ranks, int rank, struct encode_memory *m);

/* ERR_MEMORY, with the numbers, when a rank needs more memory of the host than its share of what
 * its machine has left; meant to be called before anything is read.  Collective; the same status on
 * every rank. */
int encode_memory_check(const struct encode_task *task, struct comm *c);

/* Multiply-adds of the routing, ranks together. */
double encode_work(const struct encode_task *task);

/* The number of rows in a block that pays and fits: what `block = 0` means.  The result does not
 * depend on it. */
idx encode_block_rows(const struct encode_task *task, int ranks);
/* The rows that a block of a group gets where so many are asked for: of several groups, so many
 * sum blocks, one at least. */
idx encode_block_whole(int groups, idx block);

/* task->groups <- as many as leave each rank's share of the dictionary, with what its device keeps
 * of it, within the memory that it may take, and as there are sum blocks of rows; task->tile, where
 * it is 0, and task->block, where it is 0, are then chosen for them.  reason <- why.  Collective;
 * the same on every rank. */
int encode_grid_choose(struct encode_task *task, struct comm *c, char *reason, size_t capacity);
/* The same where the groups are given. */
void encode_cut_choose(struct encode_task *task, int ranks);

/* A hash of a few rows of a source, spread over all, by which parts of other rows are told from
 * each other.  Reads with a worker of its own; not collective. */
int encode_sample(const struct row_source *rows, uint64_t *hash);
/* shift[p] <- the column shifts of the metrics (doc/numerics.md, section 7) of a job on these rows,
 * less `mean` unless it is NULL.  The same; ERR_INPUT when a value is not finite. */
int encode_shift(const struct row_source *rows, const real *mean, real *shift);

/* Collective; the same status on every rank. */
int encode_run(const struct encode_task *task, struct comm *c, struct encode_result *result);
/* Rank 0: let a result be that of the rows before it, too: their part, and density[K].  Not
 * collective. */
int encode_join(const struct encode_task *task, const struct encode_part *before,
                const gidx *density, struct encode_result *result);
void encode_free(struct encode_result *result);

#endif
