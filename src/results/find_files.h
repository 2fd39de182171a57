/* SPDX-License-Identifier: BSD-3-Clause
 * The files of `fit --find features`: where they are, what a resumed run finds, and writing them.
 *
 * Floor: results.
 *
 * state.h5 is the dictionary so far, and holds all that is gone on from; dictionary.h5 is written
 * at the end, and state.h5 is then removed; supports.h5 has the codes of all rows. */
#ifndef RESULTS_FIND_FILES_H
#define RESULTS_FIND_FILES_H

#include "find/find.h"
#include "io/dictionary.h"
#include "io/finding.h"
#include "job/checkpoint.h"

struct find_files {
  struct job job; /* of dictionary.h5, more[0], state.h5, and more[1], supports.h5 */
  idx k, p;
  idx top_s;                 /* atoms a row that routing takes, where it is asked for */
  int is_complete;           /* resumed: the dictionary is there */
  struct find_point start;   /* resumed: on every rank; the end, where the dictionary is there */
  struct find_point point;   /* that is being published */
  struct matrix_output file; /* being written, on rank 0 */
  struct arena arena;
};

/* Open the job, which the caller has set, as are k, p and top_s.  With resume read what is there:
 * ERR_INPUT when it is of another job than run->identity.  Collective. */
int find_files_open(struct find_files *files, const struct run_inputs *inputs);
void find_files_free(struct find_files *files);

/* Publish what was reached: state.h5, or at the end dictionary.h5.  Collective. */
int find_files_publish(struct find_files *files, const struct find_point *point, int is_end);

#endif
