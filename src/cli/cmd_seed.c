/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta seed: rows -> a starting dictionary.h5. */
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/team.h"
#include "model/advice.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "job/summary.h"
#include "job/threads.h"
#include "io/dictionary.h"
#include "io/rows.h"
#include "model/dictionary.h"
#include "seed/mean.h"
#include "seed/seed.h"

struct seed_options {
  struct general_options general;
  struct output_options output;
  const char *rows;
  idx atoms, frame;
  gidx seed;
  int center;
};
#define AT(member) offsetof(struct seed_options, member)

static const struct option_row input_rows[] = {
    ROWS_OPTION(AT(rows)),
    {"center", OPTION_FLAG, AT(center), "no", 0, 1, NULL, NULL,
     "subtract the rows' column means first, and store them as /mean: `sagitta encode` then "
     "subtracts them too",
     .effect = OPTION_BITS},
};

static const struct option_row seed_rows[] = {
    {"atoms", OPTION_INT, AT(atoms), NULL, 1, 1 << 30, NULL, "COUNT", "number of atoms",
     .effect = OPTION_BITS},
    {"frame", OPTION_INT, AT(frame), "1", 1, MAX_FRAME, NULL, "VECTORS",
     "number of orthonormal vectors of an atom, each from a row of its own", .effect = OPTION_BITS},
    {"seed", OPTION_LONG, AT(seed), "0", 0, 0x1p53, NULL, "NUMBER",
     "another number draws other rows", .effect = OPTION_BITS},
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Atoms", seed_rows, LENGTH(seed_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set seed_set = {
    .command = "sagitta seed",
    .arguments = "[DECK]",
    .doc = "Draw a starting dictionary from rows: distinct rows, none of them zero, scaled to "
           "unit norm."
           "\v"
           "The draw depends on the rows, --atoms, --frame, --center and --seed alone, so the "
           "dictionary is the same, bit for bit, on any number of ranks.\n\n"
           "Every row is read and must be finite, even if it is not drawn.  Real activations "
           "usually want --center: their mean is large and says nothing about a single row.\n\n"
           "  mpirun -n 4 sagitta seed --rows acts.h5 --atoms 16384 --center \\\n"
           "      --output dict/\n"
           "  mpirun -n 4 sagitta encode --rows acts.h5 --dictionary dict/dictionary.h5 \\\n"
           "      --top-s 32 --output run/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct seed_run {
  struct rows_input rows;
  struct seed_task task;
  struct output_path place;
  struct matrix_output file; /* rank 0 */
  struct seed_result result;
  struct arena arena; /* for the mean */
};

static int input_open(struct rows_input *rows, struct comm *c, const struct seed_options *o)
{
  CHECK(o->rows, ERR_USAGE, "'--rows' is missing: give the file with the activation rows");
  CHECK(o->atoms, ERR_USAGE, "'--atoms' is missing: give the number of atoms to make");
  return rows_input_open(rows, c, o->rows);
}

/* With --center: compute the column means of the rows.  In either case check that all values are
 * finite. */
static int mean_find(struct run *run, const struct seed_options *o, struct seed_run *job)
{
  real *mean = NULL;
  if (!o->center) return rows_finite(&run->comm, &job->rows.source);
  TRY(comm_agree(&run->comm, arena_alloc(&job->arena, &mean, job->rows.source.p, sizeof *mean)));
  TRY(mean_compute_warned(&run->comm, &job->rows.source, NULL, mean, NULL));
  job->task.mean = mean;
  return OK;
}

static void task_fill(const struct seed_options *o, struct seed_run *job)
{
  job->task = (struct seed_task){.rows = &job->rows.source,
                                 .sink = &job->file.sink,
                                 .k = o->atoms,
                                 .d = o->frame,
                                 .seed = (uint64_t)o->seed};
}

static int result_open(const struct run *run, struct seed_run *job)
{
  const struct seed_task *t = &job->task;
  if (run->comm.rank) return OK;
  return dictionary_output_create(&job->file, job->place.file, t->k, t->d, t->rows->p);
}

static int entries_json(const struct seed_run *job)
{
  const struct seed_result *r = &job->result;
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "rows", job->rows.source.n);
  json_long(own, "atoms", job->task.k);
  json_long(own, "frame", job->task.d);
  json_long(own, "taken", r->accepted);
  json_long(own, "zero", r->zero);
  json_long(own, "repeated", r->repeated);
  json_long(own, "dependent", r->dependent);
  json_hash(own, "fingerprint", r->fingerprint);
  return OK;
}

static int result_close(const struct run *run, struct seed_run *job)
{
  struct run_fact facts[MAX_FACTS];
  const real *mean = job->task.mean;
  gidx p = job->task.rows->p;
  if (run->comm.rank) return OK;
  TRY(entries_json(job));
  if (mean) TRY(object_write_vector(&job->file.result.h5, "/mean", p, mean));
  return matrix_output_finish(&job->file, facts, run_facts(run, "cpu", 1, facts));
}

static int seed_command(struct run *run, const void *options, const char **arguments)
{
  const struct seed_options *o = options;
  struct comm *c = &run->comm;
  struct seed_run *job;
  (void)arguments;
  TRY(comm_agree(c, struct_alloc(&job, sizeof *job)));
  TRY(inputs_agree(c, input_open(&job->rows, c, o)));
  task_fill(o, job);
  TRY(run_begin(run, &o->output, "dictionary.h5", &(const struct run_inputs){.rows = &job->rows},
                &job->place));
  advice_shape(&job->rows.source);
  team_spare_set(threads_default(run, 0)); /* threads that read the rows */
  TRY(mean_find(run, o, job));
  TRY(comm_agree(c, result_open(run, job)));
  double begun = log_seconds();
  TRY(seed_run(&job->task, c, &job->result));
  const struct seed_result *r = &job->result;
  log_info("seed    rows=%lld atoms=%d frame=%d taken=%lld zero=%lld repeated=%lld dependent=%lld "
           "seconds=%.2f fingerprint=%016llx",
           (long long)job->rows.source.n, o->atoms, o->frame, (long long)r->accepted,
           (long long)r->zero, (long long)r->repeated, (long long)r->dependent,
           log_seconds() - begun, (unsigned long long)r->fingerprint);
  TRY(inputs_confirm(c));
  TRY(comm_agree(c, result_close(run, job)));
  log_info("wrote   %s", job->place.shown);
  rows_input_close(&job->rows);
  arena_free(&job->arena);
  free(job);
  return OK;
}

const struct command command_seed = {"seed",    "rows -> a starting dictionary",
                                     &seed_set, sizeof(struct seed_options),
                                     1,         seed_command};
