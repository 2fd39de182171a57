/* SPDX-License-Identifier: BSD-3-Clause
 * The result of encode and route: the whole, a part (--row-range), or what a run that was stopped
 * leaves: a part of its first rows, in the place of the result, from which --resume goes on.
 *
 * Floor: cli. */
#ifndef CLI_ENCODE_FILES_H
#define CLI_ENCODE_FILES_H

#include "cli/command.h"
#include "encode/encode.h"
#include "io/part.h"
#include "io/supports.h"
#include "model/split.h"

struct encode_files {
  gidx first, n; /* rows of the result among all, set by the caller */
  int is_part;   /* set by the caller: it is a part also when it is done */
  gidx begun;    /* how many of them an earlier run has done; on every rank, as is the next */
  uint64_t dictionary, encoder; /* the hashes of that run's; 0: there was none */
  int is_complete;              /* that run has done all of them; then nothing is begun */
  struct output_place place;    /* on rank 0, as are the next */
  struct supports_output file;
  struct part_input before; /* of the earlier run */
  uint64_t rows_sample;     /* 0: not known yet */
  uint64_t rows_files;      /* of a part: rows_input_mark(), set by the caller */
  real *shift;              /* [p] of the metrics, as before->part has it; NULL: that has none */
};

/* Claim the place, with resume find what an earlier run left, and begin used.in and run.log.
 * ERR_CREATE: there is something else.  Collective. */
int encode_files_open(struct encode_files *f, struct run *run, const struct output_options *output,
                      int resume, const struct run_inputs *inputs);

/* Is what is complete of the same job?  ERR_INPUT says in what it differs.  task has its mean by
 * now, its rows and atoms are read.  Collective. */
int encode_files_complete(struct encode_files *f, struct run *run, const struct encode_task *task,
                          const struct row_source *all);

/* The same in a place that the caller has claimed, on rank 0, for a result of this dictionary, by
 * its hash: with resume a part of it is gone on with, and anything else replaced.  Collective. */
int encode_files_resume(struct encode_files *f, struct run *run, const struct output_place *place,
                        int resume, uint64_t dictionary);

/* Let a task for all of the rows that are wanted be for those that an earlier run has left, by way
 * of *part and *source, which the caller keeps. */
void encode_files_rest(const struct encode_files *f, struct encode_task *task,
                       const struct row_source *all, struct row_part *part,
                       struct row_source *source);

/* Begin the result with what the earlier run left, if it is of the same job: ERR_INPUT.  task has
 * its mean by now; rows that are done are read again.  Collective. */
int encode_files_begin(struct encode_files *f, struct run *run, const struct encode_task *task,
                       const struct row_source *all);

/* Let the result of the rows that were encoded be that of all rows so far.  Collective. */
int encode_files_join(struct encode_files *f, struct run *run, const struct encode_task *task,
                      const struct row_source *all, struct encode_result *result);

/* Steps of these for encode_saves.h: rank 0 tells what it found; it begins with the open part. */
int encode_files_tell(struct encode_files *f, struct comm *c);
int encode_files_output(struct encode_files *f, const struct encode_task *task);

/* Publish.  Rank 0 alone. */
int encode_files_end(struct encode_files *f, const struct encode_task *task,
                     const struct encode_result *result, const struct run_fact *facts, int n_facts);
void encode_files_free(struct encode_files *f);

#endif
