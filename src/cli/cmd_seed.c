/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta seed: rows -> a starting dictionary.h5. */
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "cli/command.h"
#include "io/inputs.h"
#include "model/dictionary.h"
#include "stage/mean.h"
#include "stage/seed.h"

struct seed_options {
  struct job_options job;
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
     "subtracts them too"},
};

static const struct option_row seed_rows[] = {
    {"atoms", OPTION_INT, AT(atoms), NULL, 1, 1 << 30, NULL, "COUNT", "atoms to make"},
    {"frame", OPTION_INT, AT(frame), "1", 1, FRAME_MOST, NULL, "VECTORS",
     "orthonormal vectors an atom has, each from a row of its own"},
    {"seed", OPTION_LONG, AT(seed), "0", 0, 0x1p53, NULL, "NUMBER",
     "another number draws other rows"},
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Atoms", seed_rows, LENGTH(seed_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Job", job_rows, JOB_ROWS, AT(job)},
};

static const struct option_set seed_set = {
    .command = "sagitta seed",
    .arguments = "[DECK]",
    .doc = "Draw a starting dictionary from rows: distinct rows, none of them zero, scaled to unit "
           "norm."
           "\v"
           "The draw depends on the rows, --atoms, --frame, --center and --seed alone, so the "
           "dictionary is the same, bit for bit, on any number of ranks.\n\n"
           "Real activations usually want --center: their mean is large and says nothing about a "
           "single row.\n\n"
           "  mpirun -n 4 sagitta seed --rows acts.h5 --atoms 16384 --center \\\n"
           "      --output dict/\n"
           "  mpirun -n 4 sagitta encode --rows acts.h5 --dictionary dict/dictionary.h5 \\\n"
           "      --top-s 32 --output run/",
    .tables = tables,
    .count = LENGTH(tables),
    .most_arguments = 1,
    .has_deck = 1,
};

static int input_open(struct rows_file *rows, const struct seed_options *o)
{
  CHECK(o->rows, ERR_USAGE, "'--rows' is missing: the file with the activation rows");
  CHECK(o->atoms, ERR_USAGE, "'--atoms' is missing: how many to make");
  TRY(rows_open(rows, o->rows));
  return OK;
}

/* *mean stays NULL without --center. */
static int mean_find(struct run *run, const struct seed_options *o, const struct row_source *rows,
                     struct arena *arena, real **mean)
{
  if (!o->center) return OK;
  TRY(comm_agree(&run->comm, arena_take(arena, mean, rows->p, sizeof **mean)));
  return mean_compute(&run->comm, rows, *mean);
}

static int atoms_write(void *self, gidx first, gidx count, const float *values)
{
  return matrix_write(self, first, count, values);
}

static int result_open(const struct run *run, const struct output_place *place, const char *rows,
                       const struct seed_task *task, struct matrix_file *file)
{
  if (run->comm.rank) return OK;
  TRY(output_spares(place, rows));
  return dictionary_create(file, place->file, task->k, task->d, task->rows->p);
}

static int result_close(const struct run *run, const struct seed_task *task,
                        struct matrix_file *file)
{
  struct run_fact facts[FACTS_MOST];
  gidx p = task->rows->p;
  if (run->comm.rank) return OK;
  if (task->mean) TRY(matrix_add(file, "/mean", TYPE_F64, 1, &p, task->mean));
  return matrix_finish(file, facts, run_facts(run, "cpu", 1, facts));
}

static int seed_command(struct run *run, const void *options, const char **arguments)
{
  const struct seed_options *o = options;
  static struct matrix_file file;
  static struct output_place place;
  struct rows_file rows = {0};
  struct arena arena = {0};
  struct seed_result result;
  real *mean = NULL;
  (void)arguments;
  TRY(comm_agree(&run->comm, input_open(&rows, o)));
  TRY(run_begin(run, &o->output, "dictionary.h5", &place));
  TRY(mean_find(run, o, &rows.source, &arena, &mean));
  const struct matrix_sink sink = {&file, atoms_write};
  const struct seed_task task = {.rows = &rows.source,
                                 .mean = mean,
                                 .sink = &sink,
                                 .k = o->atoms,
                                 .d = o->frame,
                                 .seed = (uint64_t)o->seed};
  TRY(comm_agree(&run->comm, result_open(run, &place, rows.file, &task, &file)));
  double begun = log_seconds();
  TRY(seed_run(&task, &run->comm, &result));
  log_info("seed    rows=%lld atoms=%d frame=%d taken=%lld zero=%lld repeated=%lld dependent=%lld "
           "seconds=%.2f fingerprint=%016llx",
           (long long)rows.source.n, o->atoms, o->frame, (long long)result.taken,
           (long long)result.zero, (long long)result.repeated, (long long)result.dependent,
           log_seconds() - begun, (unsigned long long)result.fingerprint);
  TRY(comm_agree(&run->comm, result_close(run, &task, &file)));
  log_info("wrote   %s", place.file);
  rows_close(&rows);
  arena_free(&arena);
  return OK;
}

const struct command command_seed = {"seed",    "rows -> a starting dictionary",
                                     &seed_set, sizeof(struct seed_options),
                                     1,         seed_command};
