/* SPDX-License-Identifier: BSD-3-Clause
 * The files of `fit --find features`: where they are, what a resumed run reads, and how they are
 * written.
 *
 * Floor: results.
 *
 * state.h5 holds the dictionary so far, and everything else that a resumed run needs.
 * dictionary.h5 is written at the end, and state.h5 is then removed.  supports.h5 has the codes of
 * all rows. */
#ifndef RESULTS_FIND_FILES_H
#define RESULTS_FIND_FILES_H

#include "find/find.h"
#include "io/dictionary.h"
#include "io/finding.h"
#include "job/checkpoint.h"

struct find_files {
  struct job job; /* its file is dictionary.h5; more[0] is state.h5, more[1] is supports.h5 */
  idx k, p;
  idx top_s;                 /* attribute top_s, for programs that do not use the thresholds */
  int is_complete;           /* resumed: dictionary.h5 is complete */
  struct find_point start;   /* resumed: the state that was read, on every rank */
  struct find_point point;   /* being published */
  struct matrix_output file; /* being written, on rank 0 */
  struct arena arena;
};

/* Open the job; the caller has set it, and k, p and top_s.  With resume, read the files.
 * ERR_INPUT: they are files of a job that has not files->job.run->identity.  Collective. */
int find_files_open(struct find_files *files, const struct run_inputs *inputs);
void find_files_free(struct find_files *files);

/* Publish what is found so far as state.h5, or at the end as dictionary.h5.  Collective. */
int find_files_publish(struct find_files *files, const struct find_point *point, int is_end);

#endif
