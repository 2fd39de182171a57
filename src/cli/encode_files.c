/* SPDX-License-Identifier: BSD-3-Clause
 * What an earlier run left is copied into the new file before its first row, and closed. */
#include "cli/encode_files.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "cli/content.h"
#include "job/numerics.h"
#include "cli/resume.h"
#include "io/inputs.h"

static int before_open(void *self, const char *path)
{
  return part_or_whole_open(self, path);
}

/* Is it what a run for these rows left that was stopped, or made? */
static int before_check(struct encode_files *f)
{
  const struct encode_part *part = &f->before.part;
  int is_whole = f->before.is_whole;
  f->is_complete = part->first == f->first && part->n == f->n && is_whole == !f->is_part;
  if (f->is_complete) return OK;
  CHECK(part->first == f->first && part->n < f->n && !is_whole, ERR_CREATE,
        "'%s' has rows %lld to %lld, and these are all that were to be encoded, or others: with "
        "--force, and not --resume, it is replaced",
        f->place.shown, (long long)part->first, (long long)(part->first + part->n - 1));
  f->begun = part->n;
  f->dictionary = f->before.supports.inputs.dictionary;
  f->encoder = f->before.supports.inputs.encoder;
  return OK;
}

/* A part in a folder has a name of its own there, as has all that lies beside it, so that parts may
 * be made at the same time.  Rank 0. */
static int place_take(struct encode_files *f, const struct run *run,
                      const struct output_options *output, int resume)
{
  static char name[MAX_NAME];
  int there;
  const char *place = output->output;
  size_t length = strlen(place);
  int is_file = length > 3 && strcmp(place + length - 3, ".h5") == 0;
  if (f->is_part && !is_file && length < sizeof name - 64) {
    snprintf(name, sizeof name, "%s/part-%015lld.h5", place, (long long)f->first);
    place = name;
  }
  const struct resume how = {resume, output->force, part_kind.name, f->n, before_open, &f->before};
  TRY(resume_place(&how, place, "supports.h5", &f->place, &there));
  if (there) TRY(identity_text_check(&run->identity, f->place.file, f->place.shown));
  return there ? before_check(f) : OK;
}

int encode_files_tell(struct encode_files *f, struct comm *c)
{
  gidx told[] = {f->begun, (gidx)f->dictionary, (gidx)f->encoder, f->is_complete};
  TRY(comm_broadcast(c, told, LENGTH(told), sizeof *told));
  f->begun = told[0];
  f->dictionary = (uint64_t)told[1];
  f->encoder = (uint64_t)told[2];
  f->is_complete = told[3] != 0;
  return OK;
}

int encode_files_open(struct encode_files *f, struct run *run, const struct output_options *output,
                      int resume, const struct run_inputs *inputs)
{
  struct comm *c = &run->comm;
  TRY(comm_agree(c, c->rank ? OK : place_take(f, run, output, resume)));
  TRY(encode_files_tell(f, c));
  if (f->is_complete) return OK;
  return resume_begin(run, &f->place, inputs, f->begun, f->n, "rows");
}

/* Rank 0: a part that is there is gone on with if it is of this dictionary. */
static int part_take(struct encode_files *f, const struct run *run, int resume, uint64_t dictionary)
{
  struct part_input *before = &f->before;
  if (!resume || !resume_is_left(f->place.file, part_kind.name, f->n)) return OK;
  TRY(part_input_open(before, f->place.file));
  if (before->supports.inputs.dictionary == dictionary) {
    TRY(numerics_resume(f->place.file));
    TRY(identity_text_check(&run->identity, f->place.file, f->place.shown));
    return before_check(f);
  }
  part_input_close(before);
  return OK;
}

int encode_files_resume(struct encode_files *f, struct run *run, const struct output_place *place,
                        int resume, uint64_t dictionary)
{
  struct comm *c = &run->comm;
  f->place = *place;
  TRY(comm_agree(c, c->rank ? OK : part_take(f, run, resume, dictionary)));
  TRY(encode_files_tell(f, c));
  if (f->begun)
    log_info("resume  after %lld of %lld rows of '%s'", (long long)f->begun, (long long)f->n,
             f->place.shown);
  return OK;
}

void encode_files_rest(const struct encode_files *f, struct encode_task *task,
                       const struct row_source *all, struct row_part *part,
                       struct row_source *source)
{
  if (!f->begun) return;
  part_source(part, all, f->first + f->begun, f->n - f->begun, source);
  task->rows = source;
  task->whole = all;
  task->first = f->first + f->begun;
  task->sink_first = f->begun;
  task->dictionary = f->dictionary;
  task->encoder_hash = f->encoder;
}

static struct supports_shape shape_of(const struct encode_task *t, gidx n)
{
  return (struct supports_shape){.n = n,
                                 .k = t->atoms->k,
                                 .s = t->top_s,
                                 .d = t->atoms->d,
                                 .p = t->rows->p,
                                 .has_codes = t->codes,
                                 .nonnegative = t->nonnegative,
                                 .encoder = t->encoder ? encoder_names[t->encoder->kind] : NULL,
                                 .solved = t->solves};
}

/* What a result depends on beside options, as far as it is known before rows are encoded; the
 * dictionary and an encoder are compared when they are there (encode.h).  Rank 0. */
static int inputs_name(struct encode_files *f, struct run *run, const struct encode_task *t,
                       const struct row_source *all)
{
  struct identity_text *id = &run->identity;
  char shape[64];
  snprintf(shape, sizeof shape, "%lld x %d", (long long)all->n, all->p);
  TRY(identity_text_input(id, "rows_shape", shape));
  TRY(identity_text_input(id, "result_has", t->codes ? "codes" : "scores alone"));
  TRY(identity_text_input(id, "encoder_kind",
                          t->encoder ? encoder_names[t->encoder->kind] : "none"));
  TRY(identity_text_hash(id, "mean_hash", mean_hash(t->mean, all->p)));
  if (f->rows_sample) TRY(identity_text_hash(id, "rows_sample", f->rows_sample));
  if (f->shift) TRY(identity_text_hash(id, "shift_hash", mean_hash(f->shift, all->p)));
  return OK;
}

/* Sums of the metrics are of rows less the shifts, which come from the first rows of all: those of
 * an earlier run and of this one are joined. */
static int shift_find(struct encode_files *f, const struct encode_task *t,
                      const struct row_source *all)
{
  if (!f->before.part.shift) return OK;
  TRY(arena_alloc(&f->before.arena, &f->shift, all->p, sizeof *f->shift));
  return encode_shift(all, t->mean, f->shift);
}

/* Is what is there of this job, as far as it is known? */
static int job_check(struct encode_files *f, struct run *run, const struct encode_task *t,
                     const struct row_source *all)
{
  if (f->is_part || f->begun) TRY(encode_sample(all, &f->rows_sample));
  TRY(shift_find(f, t, all));
  TRY(inputs_name(f, run, t, all));
  if (!f->begun && !f->is_complete) return OK;
  return identity_text_check(&run->identity, f->place.file, f->place.shown);
}

/* The terms of what is there now. */
struct contents {
  uint64_t rows, atoms, weights;
};

static int rows_terms_check(const struct encode_files *f, gidx rows, uint64_t terms)
{
  CHECK(
      f->before.part.rows_terms == terms, ERR_INPUT,
      "cannot resume '%s': written with rows_terms %016llx of %lld rows that are done, these have "
      "%016llx; give the same, or begin again, with --force and not --resume",
      f->place.shown, (unsigned long long)f->before.part.rows_terms, (long long)rows,
      (unsigned long long)terms);
  return OK;
}

/* Of a whole the file has the hashes, of a part the terms of its rows. */
static int contents_check(const struct encode_files *f, struct run *run,
                          const struct encode_task *t, const struct row_source *all,
                          const struct contents *is)
{
  struct identity_text *id = &run->identity;
  const struct atom_source *a = t->atoms;
  if (f->is_part)
    TRY(rows_terms_check(f, f->n, is->rows));
  else
    TRY(identity_text_hash(id, "all_rows_hash", content_hash(is->rows, all->n, all->p, 1)));
  TRY(identity_text_hash(id, "dictionary_hash", content_hash(is->atoms, a->k, a->d, a->p)));
  TRY(identity_text_hash(id, "encoder_hash",
                         t->encoder ? encoder_hash(t->encoder, is->weights) : 0));
  return identity_text_check(id, f->place.file, f->place.shown);
}

int encode_files_complete(struct encode_files *f, struct run *run, const struct encode_task *task,
                          const struct row_source *all)
{
  struct comm *c = &run->comm;
  struct contents is = {0};
  TRY(comm_agree(c, c->rank ? OK : job_check(f, run, task, all)));
  TRY(rows_content(c, task->rows, task->first, &is.rows));
  TRY(atoms_content(c, task->atoms, &is.atoms));
  if (task->encoder) TRY(atoms_content(c, task->weights, &is.weights));
  TRY(comm_agree(c, c->rank ? OK : contents_check(f, run, task, all, &is)));
  return complete_tell(c, f->place.shown);
}

/* Were all rows that are done these? */
static int rows_compare(const struct encode_files *f, struct comm *c, const struct row_source *all)
{
  struct row_part part;
  struct row_source done;
  uint64_t terms = 0;
  if (c->rank == 0)
    log_info("resume  reads the %lld rows again that are done, and compares", (long long)f->begun);
  part_source(&part, all, f->first, f->begun, &done);
  TRY(rows_content(c, &done, f->first, &terms));
  return comm_agree(c, c->rank ? OK : rows_terms_check(f, f->begun, terms));
}

int encode_files_output(struct encode_files *f, const struct encode_task *t)
{
  struct supports_shape shape = shape_of(t, f->n);
  if (f->is_part)
    TRY(supports_part_create(&f->file, f->place.file, &shape));
  else
    TRY(supports_output_create(&f->file, f->place.file, &shape));
  if (!f->begun) return OK;
  TRY(part_copy(&f->before, &f->file.sink, 0));
  supports_input_close(&f->before.supports);
  return OK;
}

int encode_files_begin(struct encode_files *f, struct run *run, const struct encode_task *task,
                       const struct row_source *all)
{
  struct comm *c = &run->comm;
  TRY(comm_agree(c, c->rank ? OK : job_check(f, run, task, all)));
  if (f->begun) TRY(rows_compare(f, c, all));
  return comm_agree(c, c->rank ? OK : encode_files_output(f, task));
}

static int result_join(struct encode_files *f, const struct encode_task *t,
                       struct encode_result *result)
{
  const struct encode_part now = result->part, *parts[] = {&f->before.part, &now};
  struct metrics *m = &result->metrics;
  TRY(part_join(parts, LENGTH(parts), &result->arena, &result->part));
  for (idx k = 0; k < t->atoms->k; k++) result->density[k] += f->before.density[k];
  if (t->codes) TRY(part_metrics(m, &result->part));
  metrics_density(m, result->density, result->part.n, t->atoms->k);
  result->fingerprint = result->part.fingerprint;
  return OK;
}

/* Is the result less than was asked for? */
static int is_stopped(const struct encode_files *f, const struct encode_result *result)
{
  return result->part.n < f->n;
}

static int join(struct encode_files *f, struct run *run, const struct encode_task *task,
                const struct row_source *all, struct encode_result *result)
{
  struct identity_text *id = &run->identity;
  if (f->begun) TRY(result_join(f, task, result));
  if (is_stopped(f, result) && !f->rows_sample) TRY(encode_sample(all, &f->rows_sample));
  result->part.rows_sample = f->rows_sample;
  result->part.rows_files = f->is_part ? f->rows_files : 0;
  int is_whole = !f->is_part && !is_stopped(f, result);
  result->inputs.rows = is_whole ? content_hash(result->part.rows_terms, all->n, all->p, 1) : 0;
  if (result->part.shift)
    TRY(identity_text_hash(id, "shift_hash", mean_hash(result->part.shift, all->p)));
  TRY(inputs_name(f, run, task, all));
  if (is_whole) TRY(identity_text_hash(id, "all_rows_hash", result->inputs.rows));
  TRY(identity_text_hash(id, "dictionary_hash", result->inputs.dictionary));
  return identity_text_hash(id, "encoder_hash", result->inputs.encoder);
}

int encode_files_join(struct encode_files *f, struct run *run, const struct encode_task *task,
                      const struct row_source *all, struct encode_result *result)
{
  return comm_agree(&run->comm, run->comm.rank ? OK : join(f, run, task, all, result));
}

int encode_files_end(struct encode_files *f, const struct encode_task *task,
                     const struct encode_result *result, const struct run_fact *facts, int n_facts)
{
  int stopped = is_stopped(f, result);
  struct supports_ending ending = {.metrics = &result->metrics,
                                   .mean = task->mean,
                                   .rho = task->rho,
                                   .rounds = task->rounds,
                                   .normalized = task->normalize,
                                   .inputs = result->inputs,
                                   .part = f->is_part || stopped ? &result->part : NULL};
  if (stopped) TRY(supports_output_cut(&f->file, result->part.n));
  return supports_output_finish(&f->file, &ending, facts, n_facts);
}

void encode_files_free(struct encode_files *f)
{
  part_input_close(&f->before);
}
