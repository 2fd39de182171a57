/* SPDX-License-Identifier: BSD-3-Clause
 * The inputs that assemble and refit share: rows, dictionary, supports, and do they belong
 * together?
 *
 * Floor: cli. */
#ifndef CLI_FIT_INPUTS_H
#define CLI_FIT_INPUTS_H

#include "base/options.h"
#include "io/inputs.h"
#include "io/supports_input.h"
#include "model/classes.h"
#include "stage/fit.h"

struct fit_names {
  const char *rows, *dictionary, *supports, *classes; /* classes may be NULL */
};
extern const struct option_row fit_name_rows[];
enum { FIT_NAME_ROWS = 4 };

/* Threads and instruction set. */
struct fit_compute {
  idx threads;
  const char *cpu_variant;
};
extern const struct option_row fit_compute_rows[];
enum { FIT_COMPUTE_ROWS = 2 };

struct fit_inputs {
  struct rows_file rows;
  struct dictionary_file dictionary;
  struct supports_input supports;
  const real *mean; /* borrowed; NULL: none */
};

/* Open all and check what belongs together: ERR_USAGE for one that is missing, ERR_INPUT.  Not
 * collective. */
int fit_inputs_open(struct fit_inputs *in, const struct fit_names *names);
void fit_inputs_close(struct fit_inputs *in);

struct fit_task fit_task_of(const struct fit_inputs *in, const struct comm *c,
                            const struct fit_compute *compute);

/* The lines of --dry-run about rows, atoms, supports, memory; `more` bytes beside a batch.  Rank 0
 * prints; the same status on every rank. */
int fit_plan_print(struct comm *c, const struct fit_task *task, idx directions, gidx more);

/* The classes of a file, checked against the supports of all ranks, or with file NULL by (N.6).
 * Collective. */
int fit_classes(const struct fit *f, const char *file, struct classes *classes);

#endif
