/* SPDX-License-Identifier: BSD-3-Clause
 * The result file of encode and route: all rows, or a part (io/part.h): a range (--row-range), or
 * the first rows of a stopped run.  A file that all ranks write grows in place (encode_growing.h).
 *
 * Floor: encoding. */
#ifndef ENCODING_ENCODE_FILES_H
#define ENCODING_ENCODE_FILES_H

#include "encode/encode.h"
#include "io/journal.h"
#include "io/part.h"
#include "io/supports.h"
#include "job/job.h"
#include "model/split.h"

/* Facts of an earlier run.  Rank 0 finds them and sends them to every rank. */
struct encode_common {
  uint64_t dictionary, encoder; /* hashes of its dictionary and encoder; 0: none */
  gidx recorded;                /* rows of the result that a journal records */
  int grows;   /* the result is in a file of its own until all is done (encode_growing.h) */
  int is_same; /* the rows that are done were read from the same, unchanged files */
};

struct encode_files {
  struct job job;              /* opened by encode_files_open() or encode_files_resume() */
  struct encode_common common; /* the caller sets `grows` */
  /* Set by the caller; pointers are borrowed. */
  gidx first, n;                /* the result is rows first .. first + n - 1 of all */
  int is_part;                  /* 1: the result is a part even when all its rows are done */
  int joins;                    /* 1: it is a range of rows in a file that other jobs write, too */
  uint64_t rows_files;          /* rank 0, of a part: rows_input_mark() */
  uint64_t inputs;              /* rank 0: rows_input_facts() */
  struct encode_task *task;     /* for all wanted rows; once open, for the rows that are left */
  const struct row_source *all; /* all rows */
  /* Once it is open. */
  struct row_part part;   /* the rows that are left */
  struct row_source rest; /* the same as a source */
  /* On rank 0. */
  struct supports_output file;
  struct journal journal;
  char growing[4096];       /* if joins: the file of all ranges */
  struct part_input before; /* of the earlier run */
  uint64_t rows_sample;     /* 0: not known yet */
  real *shift;              /* [p] of the metrics, for `all`; NULL: before->part has none */
};

/* Open f->job, whose first members the caller has set.  The task is then for the rows that are
 * left.  Set its mean before job_begin() and job_complete(), which read rows.  Collective. */
int encode_files_open(struct encode_files *f, const struct run_inputs *inputs);
/* The same for a job that this function sets up, in a place that rank 0 has claimed.  With resume,
 * a part made with this dictionary is continued.  Other files are replaced.  Collective. */
int encode_files_resume(struct encode_files *f, struct run *run, const struct output_path *place,
                        int resume, uint64_t dictionary);

/* Turn the result of the rows just encoded into the result of all rows so far.  Collective. */
int encode_files_join(struct encode_files *f, struct encode_result *result);

/* Call this after a part was published, if the job goes on: begin the next file with the part, or
 * continue the file that grows.  The task is then for the rows that are left.  Collective. */
int encode_files_continue(struct encode_files *f);

/* Publish the result; a range, or growing rows of a stopped run, get a record.  Rank 0 alone. */
int encode_files_end(struct encode_files *f, const struct encode_result *result,
                     const struct run_fact *facts, int n_facts);
void encode_files_free(struct encode_files *f);

#endif
