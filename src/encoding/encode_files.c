/* SPDX-License-Identifier: BSD-3-Clause
 * The part of an earlier run is copied to the beginning of the new file, and then closed. */
#include "encoding/encode_files.h"

#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "encoding/encode_growing.h"
#include "encoding/encode_ranges.h"
#include "encoding/encode_ranks.h"
#include "encode/content.h"
#include "io/inputs.h"

static int rows_name(const struct encode_files *f, struct identity_text *id)
{
  return identity_text_input(id, "rows_shape", "%lld x %d", (long long)f->all->n, f->all->p);
}

/* The shape of the rows, which may have grown, is named before the earlier file is opened. */
static int earlier_open(void *self, const char *path)
{
  struct encode_files *f = self;
  TRY(rows_name(f, &f->job.run->identity));
  return journal_is(path) ? encode_growing_before(f, path) : part_or_whole_open(&f->before, path);
}

/* Continue after the rows of f->before. */
static void earlier_note(struct encode_files *f)
{
  f->shift = NULL; /* the shift of another part is freed with that part */
  f->job.done = f->before.part.n;
  f->common.dictionary = f->before.supports.inputs.dictionary;
  f->common.encoder = f->before.supports.inputs.encoder;
}

/* Does f->before have all rows of this result, or the first of them? */
static int earlier_check(void *self, struct job *job)
{
  struct encode_files *f = self;
  const struct encode_part *part = &f->before.part;
  int is_whole = f->before.is_whole;
  job->is_complete = part->first == f->first && part->n == f->n && is_whole == !f->is_part;
  if (job->is_complete) return OK;
  CHECK(part->first == f->first && part->n < f->n && !is_whole, ERR_CREATE,
        "'%s' has rows %lld to %lld, which are not the first of those to be encoded: with --force, "
        "and not --resume, it is replaced",
        job->place.shown, (long long)part->first, (long long)(part->first + part->n - 1));
  earlier_note(f);
  return OK;
}

/* Broadcast f->common, and set the task to the rows that are left. */
static int distribute(void *self, struct comm *c)
{
  struct encode_files *f = self;
  struct encode_task *task = f->task;
  gidx done = f->job.done;
  TRY(comm_broadcast(c, &f->common, 1, sizeof f->common));
  task->sink_first = ranges_first(f) + done;
  if (f->common.dictionary) task->dictionary = f->common.dictionary;
  if (!done) return OK;
  part_source(&f->part, f->all, f->first + done, f->n - done, &f->rest);
  task->rows = &f->rest;
  task->whole = f->all;
  task->first = f->first + done;
  task->encoder_hash = f->common.encoder;
  return OK;
}

/* Name the inputs of a result, as far as they are known before rows are encoded.  The hashes of the
 * dictionary and of an encoder are compared later (encode.h). */
static int inputs_name(const struct encode_files *f, struct identity_text *id)
{
  TRY(rows_name(f, id));
  TRY(identity_text_input(id, "result_has", f->task->codes ? "codes" : "scores alone"));
  TRY(identity_text_input(id, "encoder_kind", "%s",
                          f->task->encoder ? encode_kind_name(f->task) : "none"));
  TRY(identity_text_hash(id, "mean_hash", mean_hash(f->task->mean, f->all->p)));
  if (f->rows_sample) TRY(identity_text_hash(id, "rows_sample", f->rows_sample));
  if (f->shift) TRY(identity_text_hash(id, "shift_hash", mean_hash(f->shift, f->all->p)));
  return OK;
}

static int identify(void *self, struct identity_text *id)
{
  struct encode_files *f = self;
  if (f->is_part || f->job.done) TRY(encode_sample(f->all, &f->rows_sample));
  if (!f->before.part.shift) return inputs_name(f, id);
  /* Sums for the metrics are of rows minus shifts.  The shifts must be those of the earlier run,
   * since the sums of both runs are joined. */
  TRY(arena_alloc(&f->before.arena, &f->shift, f->all->p, sizeof *f->shift));
  TRY(encode_shift(f->all, f->task->mean, f->shift));
  return inputs_name(f, id);
}

static int rows_terms_check(const struct encode_files *f, gidx rows, uint64_t terms)
{
  uint64_t was = f->before.part.rows_terms;
  CHECK(was == terms, ERR_INPUT,
        "cannot resume '%s': written with rows_terms %016llx of %lld rows that are done, these "
        "have %016llx; give the same, or begin again, with --force and not --resume",
        f->job.place.shown, (unsigned long long)was, (long long)rows, (unsigned long long)terms);
  return OK;
}

/* Compare the inputs with the file.  It has a hash of each input; but of its rows a part has only
 * the sum of their hash terms. */
static int contents_check(const struct encode_files *f, uint64_t rows, uint64_t atoms,
                          uint64_t weights)
{
  struct identity_text *id = &f->job.run->identity;
  const struct encode_task *t = f->task;
  const struct atom_source *a = t->atoms;
  if (f->is_part)
    TRY(rows_terms_check(f, f->n, rows));
  else
    TRY(identity_text_hash(id, "all_rows_hash", content_hash(rows, f->all->n, f->all->p, 1)));
  TRY(identity_text_hash(id, "dictionary_hash", content_hash(atoms, a->k, a->d, a->p)));
  TRY(identity_text_hash(id, "encoder_hash", t->encoder ? encoder_hash(t->encoder, weights) : 0));
  return job_file_check(&f->job, &f->job.place);
}

static int complete(void *self, struct comm *c)
{
  struct encode_files *f = self;
  const struct encode_task *t = f->task;
  uint64_t rows, atoms, weights = 0;
  TRY(rows_content(c, t->rows, t->first, &rows));
  TRY(atoms_content(c, t->atoms, &atoms));
  if (t->encoder) TRY(atoms_content(c, t->weights, &weights));
  TRY(comm_agree(c, c->rank ? OK : contents_check(f, rows, atoms, weights)));
  return f->joins ? comm_agree(c, c->rank ? OK : encode_growing_confirm(f)) : OK;
}

/* Were the rows that are done encoded from the rows that are given now? */
static int rows_compare(void *self, struct comm *c)
{
  const struct encode_files *f = self;
  struct row_part part;
  struct row_source done;
  uint64_t terms = 0;
  log_info(f->common.is_same ? "resume  the %lld rows that are done are of these very files"
                             : "resume  reads the %lld rows again that are done, and compares them",
           (long long)f->job.done);
  if (f->common.is_same) return OK;
  part_source(&part, f->all, f->first, f->job.done, &done);
  TRY(rows_content(c, &done, f->first, &terms));
  return comm_agree(c, c->rank ? OK : rows_terms_check(f, f->job.done, terms));
}

static int output_begin(void *self)
{
  struct encode_files *f = self;
  struct supports_shape shape = encode_shape(f->task, f->n);
  if (f->common.grows) return encode_growing_begin(f);
  return f->is_part ? supports_part_create(&f->file, f->job.place.file, &shape)
                    : supports_output_create(&f->file, f->job.place.file, &shape);
}

static const struct job_type type = {.unit = "rows",
                                     .file = "supports.h5",
                                     .part = &part_kind,
                                     .has_rows = 1,
                                     .open = earlier_open,
                                     .find = earlier_check,
                                     .distribute = distribute,
                                     .identify = identify,
                                     .complete = complete,
                                     .prepare = rows_compare,
                                     .begin = output_begin};

int encode_files_open(struct encode_files *f, const struct run_inputs *inputs)
{
  if (f->is_part) f->job.output.output = part_name(f->job.output.output, f->first);
  f->job.total = f->n;
  TRY(encode_ranges_open(f));
  return job_open(&f->job, &type, f, inputs);
}

/* Rank 0, with --resume: take the part that is left, if it was made with this dictionary. */
static int part_take(struct encode_files *f, uint64_t dictionary)
{
  struct part_input *before = &f->before;
  const struct job *job = &f->job;
  if (!job->resume || !part_is_left(job->place.file, part_kind.name, f->n)) return OK;
  TRY(part_input_open(before, job->place.file));
  if (before->supports.inputs.dictionary == dictionary) {
    TRY(job_file_check(job, &job->place));
    return earlier_check(f, &f->job);
  }
  part_input_close(before);
  return OK;
}

int encode_files_resume(struct encode_files *f, struct run *run, const struct output_path *place,
                        int resume, uint64_t dictionary)
{
  struct comm *c = &run->comm;
  f->job = (struct job){
      .run = run, .type = &type, .self = f, .resume = resume, .total = f->n, .place = *place};
  TRY(comm_agree(c, c->rank ? OK : part_take(f, dictionary)));
  TRY(job_distribute(&f->job));
  if (f->job.done)
    log_info("resume  after %lld of %lld rows of '%s'", (long long)f->job.done, (long long)f->n,
             place->shown);
  return OK;
}

/* Rank 0: open the part, or the record, that was just published. */
static int part_reopen(struct encode_files *f)
{
  part_input_close(&f->before);
  TRY(f->common.grows ? encode_growing_reopen(f) : part_input_open(&f->before, f->job.place.file));
  earlier_note(f);
  return OK;
}

int encode_files_continue(struct encode_files *f)
{
  struct comm *c = &f->job.run->comm;
  TRY(comm_agree(c, c->rank ? OK : part_reopen(f)));
  TRY(job_distribute(&f->job));
  if (f->common.grows) return encode_growing_name(f);
  TRY(comm_agree(c, c->rank ? OK : output_begin(f)));
  TRY(encode_ranks_begin(f));
  if (c->rank == 0)
    log_info("saved   %lld of %lld rows of '%s'", (long long)f->job.done, (long long)f->n,
             f->job.place.shown);
  return OK;
}

static int join(struct encode_files *f, struct encode_result *result)
{
  struct identity_text *id = &f->job.run->identity;
  const struct row_source *all = f->all;
  if (f->job.done) TRY(encode_join(f->task, &f->before.part, f->before.density, result));
  int stopped = result->part.n < f->n;
  if (stopped && !f->rows_sample) TRY(encode_sample(all, &f->rows_sample));
  result->part.rows_sample = f->rows_sample;
  result->part.rows_files = f->is_part ? f->rows_files : 0;
  int is_whole = !f->is_part && !stopped;
  result->inputs.rows = is_whole ? content_hash(result->part.rows_terms, all->n, all->p, 1) : 0;
  if (result->part.shift)
    TRY(identity_text_hash(id, "shift_hash", mean_hash(result->part.shift, all->p)));
  TRY(inputs_name(f, id));
  if (is_whole) TRY(identity_text_hash(id, "all_rows_hash", result->inputs.rows));
  TRY(identity_text_hash(id, "dictionary_hash", result->inputs.dictionary));
  return identity_text_hash(id, "encoder_hash", result->inputs.encoder);
}

int encode_files_join(struct encode_files *f, struct encode_result *result)
{
  struct comm *c = &f->job.run->comm;
  TRY(encode_ranks_end(f, result));
  return comm_agree(c, c->rank ? OK : join(f, result));
}

int encode_files_end(struct encode_files *f, const struct encode_result *result,
                     const struct run_fact *facts, int n_facts)
{
  const struct encode_task *task = f->task;
  int stopped = result->part.n < f->n;
  struct supports_ending ending = {.metrics = &result->metrics,
                                   .mean = task->mean,
                                   .rho = task->rho,
                                   .rounds = task->rounds,
                                   .normalized = task->normalize,
                                   .inputs = result->inputs,
                                   .part = f->is_part || stopped ? &result->part : NULL};
  if ((stopped && f->common.grows) || f->joins) return encode_growing_record(f, result);
  if (f->common.grows) TRY(encode_growing_end(f));
  if (stopped) TRY(supports_output_cut(&f->file, result->part.n));
  TRY(supports_output_finish(&f->file, &ending, facts, n_facts));
  return encode_growing_published(f);
}

void encode_files_free(struct encode_files *f)
{
  encode_growing_free(f);
  part_input_close(&f->before);
}
