/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta detect: rows, a dictionary and codes -> the dictionary with a detector for each atom. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "encode/content.h"
#include "job/summary.h"
#include "job/threads.h"
#include "io/dictionary.h"
#include "io/encoder.h"
#include "io/rows.h"
#include "io/seeds.h"
#include "io/supports_input.h"
#include "look/detect.h"

struct detect_options {
  struct general_options general;
  struct output_options output;
  const char *rows, *dictionary, *codes;
  idx threads;
};
#define AT(member) offsetof(struct detect_options, member)

static const struct option_row input_rows[] = {
    ROWS_OPTION(AT(rows)),
    {"dictionary", OPTION_TEXT, AT(dictionary), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "dictionary of atoms (K, P) (default path: /atoms)", .effect = OPTION_BITS,
     .flags = OPTION_INPUT},
    {"codes", OPTION_TEXT, AT(codes), NULL, 0, 0, NULL, "FILE[:/GROUP]",
     "codes of these rows with this dictionary, as a CSR matrix (default group: /supports): a "
     "detector gets the threshold with which it agrees best with these codes",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
};

static const struct option_row speed_rows[] = {
    THREADS_OPTION(AT(threads)),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed; no bit of the result changes", speed_rows, LENGTH(speed_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set detect_set = {
    .command = "sagitta detect",
    .arguments = "[DECK]",
    .doc = "Give each atom of a dictionary a detector: one linear score of a row, and a threshold."
           "\v"
           "An atom says what a row is composed of.  Whether the atom's feature is present is "
           "predicted better by a linear score that is corrected for what rows have in common: "
           "its vector is the atom multiplied by the inverse square root of the covariance of the "
           "rows.  Scores have variance 1, so that a threshold is in standard deviations.\n\n"
           "Small codes only help to describe a row.  An atom fires where its code is above its "
           "/threshold, which separates its large codes from its small ones.  The threshold of "
           "its detector is chosen so that the detector fires, as nearly as possible by F1, in "
           "the rows where the atom fires.  `sagitta inspect --atom` and scripts/report say in "
           "how many rows the atom fires.\n\n"
           "The result is a dictionary.h5 with the same atoms, and with the detectors as its "
           "encoder.  `sagitta encode --encoder` then gives the scores above the thresholds, and "
           "solves no codes; `sagitta export` writes a JumpReLU autoencoder; `sagitta evaluate "
           "--labels --encoder` says how well the scores predict labels.\n\n"
           "  sagitta fit --rows acts.h5 --atoms 4096 --top-s 4 --output fit/\n"
           "  sagitta detect --rows acts.h5 --dictionary fit/ --codes fit/ \\\n"
           "      --output detectors/\n"
           "  sagitta encode --rows more.h5 --encoder detectors/ --output fires/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job, on the heap, since threads may use it after a failure (job/run.h). */
struct detect_job {
  struct rows_input rows;
  struct dictionary_input dictionary;
  struct supports_input codes;
  struct detect_task task;
  struct detect_result result;
  struct seeds_record seeds; /* the dictionary's record of other seeds, copied to the result */
  struct output_path path;
  struct matrix_output file; /* rank 0 */
  float *atoms;              /* [k][p] rank 0 */
  struct arena arena;
};

static int inputs_open(struct run *run, struct detect_job *j, const struct detect_options *o)
{
  CHECK(o->rows, ERR_USAGE, "'--rows' is missing: give the file with the activation rows");
  CHECK(o->dictionary, ERR_USAGE,
        "'--dictionary' is missing: give a dictionary, or the folder of a fit");
  CHECK(o->codes, ERR_USAGE,
        "'--codes' is missing: give the codes of these rows that `encode` or `fit` wrote");
  TRY(output_check_given(o->output.output));
  TRY(rows_input_open(&j->rows, &run->comm, o->rows));
  TRY(dictionary_input_open(&j->dictionary, o->dictionary));
  if (j->dictionary.input->format == INPUT_H5)
    TRY(seeds_read(&j->dictionary.input->h5, j->dictionary.source.k, &j->arena, &j->seeds));
  TRY(supports_input_open(&j->codes, o->codes));
  CHECK(j->codes.source.has_codes, ERR_INPUT,
        "'%s' has scores and no codes: make codes with `sagitta encode`", j->codes.source.name);
  j->task = (struct detect_task){
      .rows = &j->rows.source,
      .atoms = &j->dictionary.source,
      .codes = &j->codes.source,
      .chosen = j->codes.encoder && !strcmp(j->codes.encoder, encoder_names[ENCODER_ACTIVE])};
  TRY(detect_check(&j->task));
  return supports_mean_find(&j->codes, j->dictionary.source.name, j->dictionary.mean,
                            j->rows.source.p, &j->task.mean);
}

/* If the file of codes has hashes of rows and a dictionary, check that the given rows and
 * dictionary have these hashes.  Collective. */
static int identities_check(struct detect_job *j, struct comm *c)
{
  const struct identity *named = &j->codes.inputs;
  const struct row_source *rows = &j->rows.source;
  const struct atom_source *atoms = &j->dictionary.source;
  const char *name = j->codes.source.name;
  uint64_t terms;
  if (named->rows) {
    TRY(rows_content(c, rows, 0, &terms));
    TRY(identity_rows_check(name, named->rows, rows->name,
                            content_hash(terms, rows->n, rows->p, 1)));
  }
  if (!named->dictionary) return OK;
  TRY(atoms_content(c, atoms, &terms));
  return identity_dictionary_check(name, named->dictionary, atoms->name,
                                   content_hash(terms, atoms->k, atoms->d, atoms->p));
}

/* Read the atoms for the result.  This comes before inputs_confirm(), so that a change of the file
 * is found.  Rank 0. */
static int atoms_read(struct detect_job *j)
{
  const struct atom_source *s = &j->dictionary.source;
  TRY(arena_alloc(&j->arena, &j->atoms, (gidx)s->k * s->p, sizeof *j->atoms));
  return s->read(s->self, 0, s->k, j->atoms);
}

static int result_write(struct run *run, struct detect_job *j)
{
  const struct detect_result *r = &j->result;
  const struct atom_source *s = &j->dictionary.source;
  struct run_fact facts[MAX_FACTS];
  if (run->comm.rank) return OK;
  const struct detectors detectors = {s->k, s->p, r->weights, r->threshold, r->firing};
  TRY(dictionary_output_create(&j->file, j->path.file, s->k, 1, s->p));
  TRY(matrix_output_write(&j->file, 0, s->k, j->atoms));
  if (j->task.mean) TRY(object_write_vector(&j->file.result.h5, "/mean", s->p, j->task.mean));
  TRY(nonnegative_write(&j->file.result.h5, j->dictionary.nonnegative));
  if (j->dictionary.top_s)
    TRY(h5_attribute_long(&j->file.result.h5, "/", "top_s", j->dictionary.top_s));
  if (j->dictionary.rounds)
    TRY(h5_attribute_long(&j->file.result.h5, "/", "rounds", j->dictionary.rounds));
  TRY(detectors_write(&j->file, &detectors));
  TRY(seeds_write(&j->file.result.h5, &j->seeds));
  return matrix_output_finish(&j->file, facts, run_facts(run, "cpu", j->task.threads, facts));
}

/* Add the command's entries of run.json.  Rank 0. */
static int summary_json(const struct detect_job *j)
{
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "rows", j->rows.source.n);
  json_long(own, "threshold_rows", j->result.rows);
  json_long(own, "atoms", j->dictionary.source.k);
  json_long(own, "silent", j->result.silent);
  json_real(own, "mean_f1", j->result.mean_f1);
  return OK;
}

static int job_run(struct run *run, struct detect_job *j, const struct detect_options *o)
{
  struct comm *c = &run->comm;
  const struct detect_result *r = &j->result;
  const struct run_inputs inputs = {.name = {j->dictionary.file, j->codes.file}, .rows = &j->rows};
  TRY(run_begin(run, &o->output, "dictionary.h5", &inputs, &j->path));
  TRY(threads_report(run, o->threads));
  j->task.threads = threads_default(run, o->threads);
  double begun = log_seconds();
  TRY(detect_memory_check(&j->task, c));
  TRY(comm_agree(c, identities_check(j, c)));
  TRY(detect_run(&j->task, c, &j->result));
  log_info("detect  rows=%lld atoms=%d threshold_rows=%lld silent=%lld mean_f1=%.6g seconds=%.2f",
           (long long)j->rows.source.n, j->dictionary.source.k, (long long)r->rows,
           (long long)r->silent, r->mean_f1, log_seconds() - begun);
  TRY(comm_agree(c, c->rank ? OK : atoms_read(j)));
  TRY(inputs_confirm(c));
  TRY(comm_agree(c, result_write(run, j)));
  TRY(comm_agree(c, c->rank ? OK : summary_json(j)));
  log_info("wrote   %s", j->path.shown);
  return OK;
}

static int detect_command(struct run *run, const void *options, const char **arguments)
{
  const struct detect_options *o = options;
  struct detect_job *j;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  TRY(inputs_agree(&run->comm, inputs_open(run, j, o)));
  TRY(job_run(run, j, o));
  detect_free(&j->result);
  supports_input_close(&j->codes);
  dictionary_input_close(&j->dictionary);
  rows_input_close(&j->rows);
  arena_free(&j->arena);
  free(j);
  return OK;
}

const struct command command_detect = {"detect",    "a detector and a threshold for each atom",
                                       &detect_set, sizeof(struct detect_options),
                                       1,           detect_command};
