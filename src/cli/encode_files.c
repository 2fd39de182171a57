/* SPDX-License-Identifier: BSD-3-Clause
 * What an earlier run left is copied into the new file before its first row, and closed. */
#include "cli/encode_files.h"

#include <math.h>
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
static int place_take(struct encode_files *f, const struct output_options *output, int resume)
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
  return there ? before_check(f) : OK;
}

/* What rank 0 has found goes to all. */
static int before_tell(struct encode_files *f, struct comm *c)
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
  TRY(comm_agree(c, c->rank ? OK : place_take(f, output, resume)));
  TRY(before_tell(f, c));
  if (f->is_complete) return OK;
  return resume_begin(run, &f->place, inputs, f->begun, f->n, "rows");
}

/* Rank 0: a part that is there is gone on with if it is of this dictionary. */
static int part_take(struct encode_files *f, int resume, uint64_t dictionary)
{
  struct part_input *before = &f->before;
  if (!resume || !resume_is_left(f->place.file, part_kind.name, f->n)) return OK;
  TRY(part_input_open(before, f->place.file));
  if (before->supports.inputs.dictionary == dictionary) {
    TRY(numerics_resume(f->place.file));
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
  TRY(comm_agree(c, c->rank ? OK : part_take(f, resume, dictionary)));
  TRY(before_tell(f, c));
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
                                 .encoder = t->encoder ? encoder_names[t->encoder->kind] : NULL};
}

/* In what the earlier run's job differs; NULL: in nothing.  Its dictionary and its encoder are
 * compared when they are there (encode.h). */
static const char *earlier_differs(const struct encode_files *f, const struct encode_task *t,
                                   const struct row_source *all)
{
  const struct part_input *before = &f->before;
  struct part_input now = {.shape = shape_of(t, f->n),
                           .normalized = t->normalize,
                           .part = {.total = all->n,
                                    .p = all->p,
                                    .rows_sample = f->rows_sample,
                                    .max_cosine = t->max_cosine,
                                    .shift = f->shift}};
  now.supports.inputs.dictionary = before->supports.inputs.dictionary;
  now.supports.inputs.encoder = before->supports.inputs.encoder;
  now.supports.source.has_codes = t->codes;
  now.supports.rounds = t->rounds;
  now.supports.nonnegative = t->nonnegative;
  now.supports.rho = t->rho;
  now.supports.mean = (real *)t->mean;
  now.supports.mean_length = t->mean ? all->p : 0;
  return part_difference(&now, before);
}

static int earlier_refuse(const struct encode_files *f, const char *what)
{
  CHECK(!what, ERR_INPUT, "'%s' was begun otherwise than it is to be gone on with: it has %s",
        f->place.shown, what);
  return OK;
}

/* A whole does not say what --cosine-limit was: only whether there was a cosine to find.  That it
 * has as many columns, the hash of its rows says. */
static void whole_fill(struct encode_files *f, const struct encode_task *t,
                       const struct row_source *all)
{
  f->before.part.p = all->p;
  f->before.part.max_cosine = t->max_cosine;
}

/* What complete_check() is told before inputs are read: are the options the same? */
static const char *complete_differs(struct encode_files *f, const struct encode_task *t,
                                    const struct row_source *all)
{
  idx k = t->atoms->k;
  int has_cosine = !t->no_cosine && k > 1 && k <= t->max_cosine;
  if (f->before.is_whole) whole_fill(f, t, all);
  const char *what = earlier_differs(f, t, all);
  if (what) return what;
  return has_cosine == !isnan(f->before.max_decoder_cosine) ? NULL : "another --cosine-limit";
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

static int options_check(struct encode_files *f, const struct encode_task *t,
                         const struct row_source *all)
{
  TRY(shift_find(f, t, all));
  if (f->is_part) TRY(encode_sample(all, &f->rows_sample));
  return complete_check(f->place.shown, complete_differs(f, t, all));
}

/* The terms of what is there now. */
struct contents {
  uint64_t rows, atoms, weights;
};

static int contents_check(const struct encode_files *f, const struct encode_task *t,
                          const struct row_source *all, const struct contents *is)
{
  const struct identity *was = &f->before.supports.inputs;
  const struct atom_source *a = t->atoms;
  int same_rows = f->is_part ? f->before.part.rows_terms == is->rows
                             : was->rows == content_hash(is->rows, all->n, all->p, 1);
  uint64_t encoder = t->encoder ? encoder_hash(t->encoder, is->weights) : 0;
  const char *what = !same_rows ? "other rows"
                     : was->dictionary != content_hash(is->atoms, a->k, a->d, a->p)
                         ? "another dictionary"
                     : was->encoder != encoder ? "codes of another encoder"
                                               : NULL;
  return complete_check(f->place.shown, what);
}

int encode_files_complete(struct encode_files *f, struct run *run, const struct encode_task *task,
                          const struct row_source *all)
{
  struct comm *c = &run->comm;
  struct contents is = {0};
  TRY(comm_agree(c, c->rank ? OK : options_check(f, task, all)));
  TRY(rows_content(c, task->rows, task->first, &is.rows));
  TRY(atoms_content(c, task->atoms, &is.atoms));
  if (task->encoder) TRY(atoms_content(c, task->weights, &is.weights));
  TRY(comm_agree(c, c->rank ? OK : contents_check(f, task, all, &is)));
  return complete_tell(c, f->place.shown);
}

/* Was the earlier run for the same job?  Of its rows a sample tells. */
static int earlier_check(struct encode_files *f, const struct encode_task *t,
                         const struct row_source *all)
{
  if (f->is_part || f->begun) TRY(encode_sample(all, &f->rows_sample));
  if (f->begun) TRY(shift_find(f, t, all));
  return earlier_refuse(f, f->begun ? earlier_differs(f, t, all) : NULL);
}

/* And all rows that it did. */
static int rows_compare(const struct encode_files *f, struct comm *c, const struct row_source *all)
{
  struct row_part part;
  struct row_source done;
  uint64_t terms = 0;
  if (c->rank == 0)
    log_info("resume  reads the %lld rows again that are done, and compares", (long long)f->begun);
  part_source(&part, all, f->first, f->begun, &done);
  TRY(rows_content(c, &done, f->first, &terms));
  int same = c->rank > 0 || terms == f->before.part.rows_terms;
  return comm_agree(c, earlier_refuse(f, same ? NULL : "other rows"));
}

static int output_begin(struct encode_files *f, const struct encode_task *t)
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
  TRY(comm_agree(c, c->rank ? OK : earlier_check(f, task, all)));
  if (f->begun) TRY(rows_compare(f, c, all));
  return comm_agree(c, c->rank ? OK : output_begin(f, task));
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

static int join(struct encode_files *f, const struct encode_task *task,
                const struct row_source *all, struct encode_result *result)
{
  if (f->begun) TRY(result_join(f, task, result));
  if (is_stopped(f, result) && !f->rows_sample) TRY(encode_sample(all, &f->rows_sample));
  result->part.rows_sample = f->rows_sample;
  int is_whole = !f->is_part && !is_stopped(f, result);
  result->inputs.rows = is_whole ? content_hash(result->part.rows_terms, all->n, all->p, 1) : 0;
  return OK;
}

int encode_files_join(struct encode_files *f, struct run *run, const struct encode_task *task,
                      const struct row_source *all, struct encode_result *result)
{
  return comm_agree(&run->comm, run->comm.rank ? OK : join(f, task, all, result));
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
