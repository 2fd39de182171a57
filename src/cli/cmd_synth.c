/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta synth: rows.h5, dictionary.h5 and start.h5 whose truth is known.  synth_world.h makes a
 * world of features, and synth_systems.h arrow systems. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "cli/command.h"
#include "job/summary.h"
#include "cli/synth_systems.h"
#include "cli/synth_world.h"
#include "io/dictionary.h"
#include "io/rows.h"
#include "model/dictionary.h"
#include "model/route.h"
#include "synth/synth.h"

struct synth_options {
  struct general_options general;
  struct output_options output;
  const char *kind, *frequencies;
  gidx n_rows, seed;
  idx atoms, columns, top_s, frame, block;
  real noise, start_cosine;
  int dry_run;
  struct systems_options systems;
  struct world_options world;
};
#define AT(member) offsetof(struct synth_options, member)

static const struct option_row data_rows[] = {
    {"kind", OPTION_CHOICE, AT(kind), "planted", 0, 0, "planted|trig|world", NULL,
     "planted: sparse sums of random atoms and noise; trig: the fixture of sines and cosines, full "
     "of ties; world: features that are correlated, exclusive, frequent and rare",
     .effect = OPTION_BITS},
    {"n-rows", OPTION_LONG, AT(n_rows), "0", 0, 0x1p40, NULL, "COUNT",
     "number of rows; 0: 8192 planted, 512 trig, 65536 in a world", .effect = OPTION_BITS},
    {"atoms", OPTION_INT, AT(atoms), "0", 0, 1 << 30, NULL, "COUNT",
     "number of atoms, or of features in a world; 0: 1024 planted, 4096 trig, 16384 in a world",
     .effect = OPTION_BITS},
    {"columns", OPTION_INT, AT(columns), "0", 0, 1 << 24, NULL, "COUNT",
     "number of columns; 0: 64 planted, 48 trig; in a world 768 for 16384 features, 128 for 2048, "
     "64 for 512",
     .effect = OPTION_BITS},
};

static const struct option_row planted_rows[] = {
    {"top-s", OPTION_INT, AT(top_s), "8", 1, MAX_TOP_S, NULL, "ATOMS",
     "number of distinct atoms in a row", .effect = OPTION_BITS},
    {"frame", OPTION_INT, AT(frame), "1", 1, MAX_FRAME, NULL, "VECTORS",
     "number of orthonormal vectors of an atom, with a code each", .effect = OPTION_BITS},
    {"frequencies", OPTION_CHOICE, AT(frequencies), "even", 0, 0, "even|zipf", NULL,
     "how often atoms are chosen: all alike, or atom a about as often as 1/(a+1)",
     .effect = OPTION_BITS},
    {"noise", OPTION_REAL, AT(noise), "0.02", 0, 1e6, NULL, "SIGMA",
     "standard deviation of the noise in each column; atoms have norm 1, and codes have absolute "
     "values from 0.5 to 1.5",
     .effect = OPTION_BITS},
    {"seed", OPTION_LONG, AT(seed), "0", 0, 0x1p53, NULL, "NUMBER",
     "another number makes other data", .effect = OPTION_BITS},
    {"start-cosine", OPTION_REAL, AT(start_cosine), "0", 0, 1, NULL, "COSINE",
     "also write start.h5, whose vectors have this cosine to the planted ones; 0: no such file",
     .effect = OPTION_BITS},
};

static const struct option_row path_rows[] = {
    {"output", OPTION_TEXT, offsetof(struct output_options, output), NULL, 0, 0, NULL, "FOLDER",
     "where the files go (created)", .effect = OPTION_RUN, .flags = OPTION_OUTPUT},
    {"force", OPTION_FLAG, offsetof(struct output_options, force), "no", 0, 1, NULL, NULL,
     "replace existing files", .effect = OPTION_RUN},
};

static const struct option_row run_rows[] = {
    {"block", OPTION_INT, AT(block), "0", 0, 1 << 20, NULL, "ROWS",
     "number of rows or atoms that are made at a time; 0: chosen for speed; changes no bit",
     .effect = OPTION_RUN},
    {"dry-run", OPTION_FLAG, AT(dry_run), "no", 0, 1, NULL, NULL,
     "print the memory and disk that the job needs, then end; --output is not touched",
     .effect = OPTION_RUN},
};

static const struct option_table tables[] = {
    {"Data", data_rows, LENGTH(data_rows), 0},
    {"Planted data", planted_rows, LENGTH(planted_rows), 0},
    {"A world of features", world_rows_table, WORLD_ROWS, AT(world)},
    {"Arrow systems", systems_rows, SYSTEMS_ROWS, AT(systems)},
    {"Result", path_rows, LENGTH(path_rows), AT(output)},
    {"Making", run_rows, LENGTH(run_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set synth_set = {
    .command = "sagitta synth",
    .arguments = "[DECK]",
    .doc = "Make rows and a dictionary whose truth is known, of any size."
           "\v"
           "The folder of --output gets rows.h5, dictionary.h5, and start.h5 with "
           "--start-cosine.  rows.h5 has /rows and, for planted data, /planted/atoms and "
           "/planted/codes, of which each row is made.  With --systems the folder gets only "
           "systems.h5, for `sagitta solve`.  With --kind world it also gets truth.h5 for "
           "`sagitta evaluate --truth`: the features, and which of them fire in each row.  Every "
           "value depends on the options and on its index alone, not on the number of ranks.\n\n"
           "  mpirun -n 4 sagitta synth --n-rows 100000 --atoms 4096 --output data/\n"
           "  mpirun -n 4 sagitta encode --rows data/rows.h5 \\\n"
           "      --dictionary data/dictionary.h5 --top-s 8 --output run/\n"
           "  sagitta synth --kind world --atoms 2048 --output world/\n"
           "  sagitta synth --kind world --atoms 2048 --first-row 65536 --n-rows 8192 \\\n"
           "      --output unseen/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

#define MAX_KEEP ((gidx)1 << 30)
enum { BLOCK_BYTES = 32 << 20, MAX_BLOCK = 8192, MIN_BLOCK = 16 };

static idx block_default(const struct planted *g)
{
  gidx fit = BLOCK_BYTES / ((gidx)g->d * g->p * (gidx)sizeof(float));
  return (idx)imin(imax(fit, MIN_BLOCK), MAX_BLOCK);
}

static struct synth_task task_of(const struct synth_options *o)
{
  int trig = strcmp(o->kind, "trig") == 0;
  struct synth_task t = {.kind = trig ? SYNTH_TRIG : SYNTH_PLANTED,
                         .n = o->n_rows ? o->n_rows
                              : trig    ? 512
                                        : 8192,
                         .cosine = o->start_cosine,
                         .max_keep = MAX_KEEP,
                         .planted = {.seed = (uint64_t)o->seed,
                                     .k = o->atoms ? o->atoms
                                          : trig   ? 4096
                                                   : 1024,
                                     .d = o->frame,
                                     .p = o->columns ? o->columns
                                          : trig     ? 48
                                                     : 64,
                                     .s = o->top_s,
                                     .noise = o->noise,
                                     .zipf = strcmp(o->frequencies, "zipf") == 0}};
  idx block = o->block ? o->block : block_default(&t.planted);
  t.block = (idx)imin(block, imax(t.n, t.planted.k));
  return t;
}

/* Refuse options of planted data if the fixture (--kind trig) or a world is made. */
static int planted_unused(const struct synth_options *o, const struct synth_task *t)
{
  static const struct option_advice all[] = {{"top-s", NULL},        {"frame", NULL},
                                             {"frequencies", NULL},  {"noise", NULL},
                                             {"start-cosine", NULL}, {"seed", NULL}};
  int is_fixed = t->kind == SYNTH_TRIG; /* a world has a seed, which is last in the list */
  const struct option_advice *bad = options_first_set(&synth_set, o, all, LENGTH(all) - !is_fixed);
  CHECK(!bad, ERR_USAGE, "'--%s' says nothing about '--kind %s'%s", bad->key, o->kind,
        is_fixed ? ", which is fixed" : "");
  return OK;
}

static int world_unused(const struct synth_options *o)
{
  static const struct option_advice all[] = {
      {"trees", NULL}, {"most", NULL}, {"least", NULL}, {"first-row", NULL}};
  const struct option_advice *bad = options_first_set(&synth_set, o, all, LENGTH(all));
  CHECK(!bad, ERR_USAGE, "'--%s' says nothing about '--kind %s', only about world", bad->key,
        o->kind);
  return OK;
}

static int is_world(const struct synth_options *o)
{
  return strcmp(o->kind, "world") == 0;
}

static int options_check(const struct synth_options *o, const struct synth_task *t)
{
  const struct planted *g = &t->planted;
  size_t length = o->output.output ? strlen(o->output.output) : 0;
  CHECK(length || o->dry_run, ERR_USAGE, "'--output' is missing: give a folder");
  CHECK(length < 3 || strcmp(o->output.output + length - 3, ".h5") != 0, ERR_USAGE,
        "'--output' is '%s', but several files are made: give a folder", o->output.output);
  if (is_world(o)) return planted_unused(o, t);
  TRY(world_unused(o));
  if (t->kind == SYNTH_TRIG) return planted_unused(o, t);
  CHECK(g->s <= g->k, ERR_USAGE, "'--top-s' is %d, more than the %d atoms: lower it", g->s, g->k);
  CHECK(g->d <= g->p, ERR_USAGE, "'--frame' is %d, more than the %d columns", g->d, g->p);
  CHECK(t->cosine == 0 || t->cosine == 1 || 2 * g->d <= g->p, ERR_USAGE,
        "'--start-cosine' needs at least %d columns for frames of %d vectors, there are %d",
        2 * g->d, g->d, g->p);
  return OK;
}

static int plan_json(const struct run *run, const struct synth_task *t, double rows, double atoms,
                     gidx memory)
{
  const struct planted *g = &t->planted;
  struct json j;
  TRY(facts_begin(run, &j));
  json_long(&j, "rows", t->n);
  json_long(&j, "columns", g->p);
  json_long(&j, "atoms", g->k);
  json_long(&j, "frame", g->d);
  json_long(&j, "block", t->block);
  json_real(&j, "rows_bytes", rows);
  json_real(&j, "dictionary_bytes", atoms);
  json_real(&j, "start_bytes", t->cosine > 0 ? atoms : 0);
  json_long(&j, "memory_bytes", memory);
  return facts_end(&j);
}

/* Print the lines or the object of --dry-run.  Other ranks than 0 return at once. */
static int plan_print(const struct run *run, const struct synth_task *t)
{
  const struct planted *g = &t->planted;
  gidx memory;
  if (run->comm.rank) return OK;
  TRY(synth_memory(t, run->comm.size, &memory));
  int planted = t->kind == SYNTH_PLANTED;
  double truth = planted ? 4.0 * g->s * (1 + g->d) : 0, atoms = 4.0 * g->k * g->d * g->p;
  double rows = (double)t->n * (4.0 * g->p + truth);
  if (run->wants_json) return plan_json(run, t, rows, atoms, memory);
  printf("rows.h5        %.1f MB: %lld rows of %d columns%s\n", 1e-6 * rows, (long long)t->n, g->p,
         planted ? " and the atoms and codes that they are made of" : "");
  printf("dictionary.h5  %.1f MB: %d atoms of %d x %d\n", 1e-6 * atoms, g->k, g->d, g->p);
  if (t->cosine > 0) printf("start.h5       %.1f MB\n", 1e-6 * atoms);
  printf("memory         %.1f MB a rank, blocks of %d%s\n", 1e-6 * (double)memory, t->block,
         planted && !synth_kept(t) ? "; atoms are made again for each row" : "");
  return OK;
}

/* Claim the path of dictionary.h5 and, if it is wanted, of start.h5.  ERR_CREATE: one is taken. */
static int paths_check(const struct synth_options *o, struct output_path *dictionary,
                       struct output_path *start)
{
  TRY(output_path(dictionary, o->output.output, "dictionary.h5", o->output.force));
  if (o->start_cosine > 0) TRY(output_path(start, o->output.output, "start.h5", o->output.force));
  return OK;
}

/* rows.h5, with the truth beside the rows. */
struct rows_result {
  struct matrix_output file;
  struct h5_array atoms, codes; /* of planted data */
};

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct synth_run {
  struct synth_task task;
  struct synth synth;
  struct output_path rows, dictionary, start;
  struct matrix_output dictionary_file, start_file; /* rank 0 */
  struct rows_result rows_file;                     /* rank 0 */
};

static int truth_write(void *self, const struct support_block *block)
{
  struct rows_result *r = self;
  TRY(h5_array_write(&r->atoms, block->first, block->n, block->atoms));
  return h5_array_write(&r->codes, block->first, block->n, block->codes);
}

static int rows_result_open(struct rows_result *r, const char *path, const struct synth_task *t)
{
  const struct planted *g = &t->planted;
  gidx atoms[] = {t->n, g->s}, codes[] = {t->n, g->s, g->d};
  TRY(rows_output_create(&r->file, path, t->n, g->p));
  if (t->kind == SYNTH_TRIG) return OK;
  const struct h5_file *h5 = &r->file.result.h5;
  TRY(object_create(h5, "/planted/atoms", 2, atoms, 0, &r->atoms));
  return object_create(h5, "/planted/codes", g->d > 1 ? 3 : 2, codes, 0, &r->codes);
}

static int file_finish(const struct run *run, struct matrix_output *file)
{
  struct run_fact facts[MAX_FACTS];
  return matrix_output_finish(file, facts, run_facts(run, "cpu", 1, facts));
}

static int rows_result_close(const struct run *run, struct rows_result *r, enum synth_kind kind)
{
  if (kind == SYNTH_PLANTED) {
    TRY(h5_array_close(&r->atoms));
    TRY(h5_array_close(&r->codes));
  }
  return file_finish(run, &r->file);
}

/* Add a file that was made to run.json.  rows: their number; 0: the file has atoms.  Rank 0. */
static int entries_json(const char *name, const struct output_path *place, gidx rows,
                        const struct synth *s)
{
  const struct planted *g = &s->task->planted;
  struct json *own;
  TRY(summary_entries(&own));
  json_object(own, name);
  json_text(own, "file", place->shown);
  if (rows)
    json_long(own, "rows", rows);
  else {
    json_long(own, "atoms", g->k);
    json_long(own, "frame", g->d);
  }
  json_long(own, "columns", g->p);
  json_hash(own, "fingerprint", s->fingerprint);
  json_end(own);
  return OK;
}

/* Write dictionary.h5, or start.h5 if `start` is 1.  Collective. */
static int dictionary_make(struct run *run, struct synth *s, int start, struct matrix_output *file,
                           const struct output_path *place)
{
  const struct planted *g = &s->task->planted;
  struct comm *c = &run->comm;
  double begun = log_seconds();
  TRY(comm_agree(c, c->rank ? OK : dictionary_output_create(file, place->file, g->k, g->d, g->p)));
  TRY(synth_atoms(s, start, &file->sink));
  TRY(comm_agree(c, c->rank ? OK : file_finish(run, file)));
  const char *name = start ? "start_file" : "dictionary_file";
  TRY(comm_agree(c, c->rank ? OK : entries_json(name, place, 0, s)));
  log_info("%-7s atoms=%d frame=%d columns=%d seconds=%.2f fingerprint=%016llx",
           start ? "start" : "atoms", g->k, g->d, g->p, log_seconds() - begun,
           (unsigned long long)s->fingerprint);
  log_info("wrote   %s", place->shown);
  return OK;
}

/* Write the rows and, for planted data, their truth.  Collective. */
static int rows_make(struct run *run, struct synth_run *job)
{
  const struct synth_task *t = &job->task;
  struct rows_result *result = &job->rows_file;
  struct comm *c = &run->comm;
  double begun = log_seconds();
  const struct support_sink truth = {result, truth_write};
  TRY(comm_agree(c, c->rank ? OK : rows_result_open(result, job->rows.file, t)));
  TRY(synth_rows(&job->synth, &result->file.sink, t->kind == SYNTH_PLANTED ? &truth : NULL));
  TRY(comm_agree(c, c->rank ? OK : rows_result_close(run, result, t->kind)));
  TRY(comm_agree(c, c->rank ? OK : entries_json("rows_file", &job->rows, t->n, &job->synth)));
  log_info("rows    rows=%lld columns=%d seconds=%.2f fingerprint=%016llx", (long long)t->n,
           t->planted.p, log_seconds() - begun, (unsigned long long)job->synth.fingerprint);
  log_info("wrote   %s", job->rows.shown);
  return OK;
}

static int files_make(struct run *run, const struct synth_options *o, struct synth_run *job)
{
  struct synth *s = &job->synth;
  struct comm *c = &run->comm;
  TRY(comm_agree(c, c->rank ? OK : paths_check(o, &job->dictionary, &job->start)));
  TRY(run_begin(run, &o->output, "rows.h5", &(const struct run_inputs){.name = {NULL}},
                &job->rows));
  TRY(synth_open(s, c, &job->task));
  TRY(dictionary_make(run, s, 0, &job->dictionary_file, &job->dictionary));
  if (job->task.cosine > 0) TRY(dictionary_make(run, s, 1, &job->start_file, &job->start));
  TRY(rows_make(run, job));
  synth_close(s);
  return OK;
}

static int synth_command(struct run *run, const void *options, const char **arguments)
{
  const struct synth_options *o = options;
  struct comm *c = &run->comm;
  struct synth_run *job;
  (void)arguments;
  TRY(comm_agree(c, struct_alloc(&job, sizeof *job)));
  job->task = task_of(o);
  TRY(comm_agree(c, options_check(o, &job->task)));
  const struct world_size size = {.n_rows = o->n_rows,
                                  .seed = o->seed,
                                  .atoms = o->atoms,
                                  .columns = o->columns,
                                  .block = o->block};
  if (is_world(o))
    TRY(world_make(run, &o->output, &o->world, &size, o->dry_run));
  else if (o->systems.systems > 0)
    TRY(systems_make(run, &o->output, &o->systems, o->frame, o->seed, o->dry_run));
  else if (o->dry_run)
    TRY(comm_agree(c, plan_print(run, &job->task)));
  else
    TRY(files_make(run, o, job));
  free(job);
  return OK;
}

const struct command command_synth = {
    "synth",    "rows, dictionary or systems whose truth is known",
    &synth_set, sizeof(struct synth_options),
    1,          synth_command};
