/* SPDX-License-Identifier: BSD-3-Clause
 * Three files are written side by side: first the features, then rows and truth, block by block. */
#include "cli/synth_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "job/summary.h"
#include "io/dictionary.h"
#include "io/rows.h"
#include "io/truth.h"
#include "synth/world.h"

#define AT(member) offsetof(struct world_options, member)

const struct option_row world_rows_table[WORLD_ROWS] = {
    {"trees", OPTION_INT, AT(trees), "0", -1, 1 << 24, NULL, "COUNT",
     "number of trees of 85 features, in which the children of a feature exclude each other; 0: "
     "one tree per 128 features; -1: none",
     .effect = OPTION_BITS},
    {"most", OPTION_REAL, AT(most), "0", 0, 1, NULL, "PROBABILITY",
     "probability with which the most frequent feature fires; later features fire less often, as "
     "1 / sqrt(index); 0: 0.4 with 16384 or more features, otherwise 0.3",
     .effect = OPTION_BITS},
    {"least", OPTION_REAL, AT(least), "0.0005", 0, 1, NULL, "PROBABILITY",
     "probability with which the rarest feature fires", .effect = OPTION_BITS},
    {"first-row", OPTION_LONG, AT(first_row), "0", 0, 0x1p40, NULL, "ROW",
     "number of the first row to make; for rows that a fit has not seen, give a number after its "
     "last row",
     .effect = OPTION_BITS},
};

/* Numbers of columns that are used without --columns. */
static const struct world_preset {
  idx atoms, columns;
} presets[] = {{16384, 768}, {2048, 128}, {512, 64}};

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct world_run {
  struct world_task task;
  struct world_job job;
  struct output_path rows, dictionary, truth; /* on rank 0, as are the files */
  struct matrix_output rows_file, dictionary_file;
  struct truth_output truth_file;
};

/* The task of these options.  columns is 0 if --columns is not given and no preset has this number
 * of features. */
static struct world_task task_of(const struct world_options *o, const struct world_size *size)
{
  enum { STANDARD_ROWS = 65536, STANDARD_BLOCK = 4096, MANY_FEATURES = 16384 };
  idx atoms = size->atoms ? size->atoms : presets[0].atoms, columns = size->columns;
  for (int i = 0; i < LENGTH(presets) && !columns; i++)
    if (presets[i].atoms == atoms) columns = presets[i].columns;
  idx trees = o->trees < 0 ? 0 : o->trees ? o->trees : atoms / 128;
  gidx n = size->n_rows ? size->n_rows : STANDARD_ROWS;
  return (struct world_task){.world = {.seed = (uint64_t)size->seed,
                                       .f = atoms,
                                       .p = columns,
                                       .trees = trees,
                                       .most = o->most > 0              ? o->most
                                               : atoms >= MANY_FEATURES ? 0.4
                                                                        : 0.3,
                                       .least = o->least},
                             .first = o->first_row,
                             .n = n,
                             .block = (idx)imin(size->block ? size->block : STANDARD_BLOCK, n)};
}

static int task_check(const struct world_task *t)
{
  CHECK(t->world.p, ERR_USAGE,
        "'--columns' is missing: a world of %d features has no default, unlike one of 16384 (768 "
        "columns), 2048 (128) or 512 (64)",
        t->world.f);
  CHECK(t->n <= INT64_MAX / t->world.f - t->first, ERR_USAGE,
        "'--first-row' is %lld and '--n-rows' %lld: with %d features a world has at most %lld rows",
        (long long)t->first, (long long)t->n, t->world.f, (long long)(INT64_MAX / t->world.f));
  return world_check(&t->world);
}

/* Print the lines of --dry-run, or with --json the object. */
static int plan_print(const struct run *run, const struct world_task *t)
{
  gidx memory, n = t->n, p = t->world.p, f = t->world.f;
  if (run->comm.rank) return OK;
  TRY(world_memory(t, run->comm.size, &memory));
  if (run->wants_json) {
    struct json j;
    TRY(facts_begin(run, &j));
    json_long(&j, "rows", n);
    json_long(&j, "columns", p);
    json_long(&j, "atoms", f);
    json_long(&j, "rows_bytes", 4 * n * p);
    json_long(&j, "dictionary_bytes", 4 * f * p);
    json_long(&j, "memory_bytes", memory);
    return facts_end(&j);
  }
  printf("rows.h5        %.1f MB: %lld rows of %lld columns\n", 4e-6 * (double)(n * p),
         (long long)n, (long long)p);
  printf("dictionary.h5  %.1f MB: %lld features; truth.h5 has them too, and which fire\n",
         4e-6 * (double)(f * p), (long long)f);
  printf("memory         %.1f MB per rank, and the list of features that fire in a block\n",
         1e-6 * (double)memory);
  return OK;
}

/* Create the three files, and write the features.  Rank 0. */
static int files_begin(struct world_run *r)
{
  const struct world *w = &r->job.world;
  TRY(dictionary_output_create(&r->dictionary_file, r->dictionary.file, w->f, 1, w->p));
  TRY(matrix_output_write(&r->dictionary_file, 0, w->f, r->job.vectors));
  TRY(rows_output_create(&r->rows_file, r->rows.file, r->task.n, w->p));
  return truth_output_create(&r->truth_file, r->truth.file, w, r->task.n, r->job.vectors);
}

static int files_end(const struct run *run, struct world_run *r)
{
  struct run_fact facts[MAX_FACTS];
  int count = run_facts(run, "cpu", 1, facts);
  TRY(matrix_output_finish(&r->dictionary_file, facts, count));
  TRY(truth_output_finish(&r->truth_file, r->job.rows_hash, facts, count));
  return matrix_output_finish(&r->rows_file, facts, count);
}

/* Add the entries of run.json.  Rank 0. */
static int summary_json(const struct world_run *r)
{
  struct json *own;
  TRY(summary_entries(&own));
  json_object(own, "rows_file");
  json_text(own, "file", r->rows.shown);
  json_long(own, "rows", r->task.n);
  json_long(own, "columns", r->task.world.p);
  json_hash(own, "fingerprint", r->job.fingerprint);
  json_end(own);
  json_object(own, "truth_file");
  json_text(own, "file", r->truth.shown);
  json_long(own, "features", r->task.world.f);
  json_real(own, "l0", (real)r->job.fired / (real)r->task.n);
  json_end(own);
  return OK;
}

static int paths_claim(const struct output_options *output, struct world_run *r)
{
  TRY(output_path(&r->dictionary, output->output, "dictionary.h5", output->force));
  return output_path(&r->truth, output->output, "truth.h5", output->force);
}

static int files_make(struct run *run, const struct output_options *output, struct world_run *r)
{
  struct comm *c = &run->comm;
  double begun = log_seconds();
  TRY(comm_agree(c, c->rank ? OK : paths_claim(output, r)));
  TRY(run_begin(run, output, "rows.h5", &(const struct run_inputs){.name = {NULL}}, &r->rows));
  TRY(world_open(&r->job, c, &r->task));
  log_info("world   features=%d columns=%d trees=%d seconds=%.2f", r->task.world.f, r->task.world.p,
           r->task.world.trees, log_seconds() - begun);
  begun = log_seconds();
  TRY(comm_agree(c, c->rank ? OK : files_begin(r)));
  TRY(world_rows(&r->job, &r->rows_file.sink, &r->truth_file.sink));
  TRY(comm_agree(c, c->rank ? OK : files_end(run, r)));
  TRY(comm_agree(c, c->rank ? OK : summary_json(r)));
  log_info("rows    rows=%lld columns=%d l0=%.4g seconds=%.2f fingerprint=%016llx",
           (long long)r->task.n, r->task.world.p, (real)r->job.fired / (real)r->task.n,
           log_seconds() - begun, (unsigned long long)r->job.fingerprint);
  log_info("wrote   %s, %s, %s", r->rows.shown, r->dictionary.shown, r->truth.shown);
  world_close(&r->job);
  return OK;
}

int world_make(struct run *run, const struct output_options *output, const struct world_options *o,
               const struct world_size *size, int dry_run)
{
  struct comm *c = &run->comm;
  struct world_run *r;
  TRY(comm_agree(c, struct_alloc(&r, sizeof *r)));
  r->task = task_of(o, size);
  TRY(comm_agree(c, task_check(&r->task)));
  if (dry_run)
    TRY(comm_agree(c, plan_print(run, &r->task)));
  else
    TRY(files_make(run, output, r));
  free(r);
  return OK;
}
