/* SPDX-License-Identifier: BSD-3-Clause
 * The result file grows while the job runs.  Its journal, a file beside it, has a record of the
 * rows that are done.  Without --join the journal is made with the first record, so a run that ends
 * before then leaves no files. */
#include "encoding/encode_growing.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "encoding/encode_ranges.h"
#include "encoding/encode_ranks.h"
#include "io/h5/placed.h"
#include "io/ranges.h"
#include "io/record.h"
#include "io/sidecars.h"
#include "io/supports_ranks.h"

/* f->before <- the last record of the journal. */
static int record_take(struct encode_files *f, struct record *r)
{
  struct part_input *before = &f->before;
  TRY(record_read(r, &f->journal, &before->arena));
  before->part = r->part;
  before->density = r->density;
  before->supports.inputs.dictionary = r->dictionary;
  f->common.recorded = r->part.n;
  return OK;
}

int encode_growing_before(struct encode_files *f, const char *name)
{
  struct record r;
  if (!f->joins) TRY(journal_open(&f->journal, name));
  TRY(record_take(f, &r));
  f->common.grows = 1;
  f->common.is_same = f->inputs && f->inputs == r.inputs;
  return OK;
}

int encode_growing_reopen(struct encode_files *f)
{
  struct record r;
  return record_take(f, &r);
}

/* A record fits only a dictionary of the same shape, because the shape decides where chunks are.
 * The dictionary's hash is compared later, when the dictionary is read. */
static int shape_check(const struct encode_files *f, const struct supports_shape *was,
                       const struct supports_shape *is)
{
  CHECK(was->k == is->k && was->d == is->d, ERR_INPUT,
        "cannot resume '%s': written with %d atoms of %d vectors, this run has %d of %d; give the "
        "same, or begin again, with --force and not --resume",
        f->job.place.shown, was->k, was->d, is->k, is->d);
  CHECK(was->n == is->n && was->s == is->s && was->p == is->p && was->has_codes == is->has_codes,
        ERR_INPUT, "'%s' is not the journal of this job", f->journal.name);
  return OK;
}

/* The number of the first chunk of these rows in an array. */
static gidx chunk_first(const struct encode_files *f, const struct h5_array *a)
{
  return ranges_first(f) * f->file.shape.s / a->chunk_rows;
}

/* Take the hashes and counts of the recorded rows. */
static int recorded_take(struct encode_files *f, const struct record *r)
{
  struct supports_output *out = &f->file;
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  int n = supports_output_arrays(out, arrays);
  for (int a = 0; a < n; a++) {
    struct h5_placed *p = arrays[a]->placed;
    gidx first = chunk_first(f, arrays[a]);
    p->all_written = ceil_div(r->part.n * r->shape.s, arrays[a]->chunk_rows);
    p->all_zeros = r->zeros[a];
    TRY(journal_leaves(&f->journal, a, p->leaves[first]));
    TRY(h5_placed_confirm(arrays[a], first));
    TRY(h5_placed_confirm(arrays[a], first + p->all_written - 1));
  }
  const struct support_counts counts = {.n = r->shape.n,
                                        .nnz = r->shape.n * r->shape.s,
                                        .nonzero = r->counted,
                                        .k = r->shape.k,
                                        .density = r->density};
  return supports_counts_add(out, &counts);
}

int encode_growing_begin(struct encode_files *f)
{
  const struct supports_shape shape = encode_shape(f->task, f->n);
  const char *path = f->job.place.file;
  struct record r;
  char growing[4096];
  if (f->joins) {
    TRY(encode_ranges_begin(f, &shape));
    TRY(supports_placed_begin(&f->file, f->task->rounds));
    if (!f->common.recorded) return OK;
    TRY(record_take(f, &r));
    TRY(shape_check(f, &r.shape, &shape));
    return recorded_take(f, &r);
  }
  if (!f->common.recorded) {
    TRY(supports_growing_create(&f->file, path, &shape));
    return supports_placed_begin(&f->file, f->task->rounds);
  }
  TRY(record_take(f, &r));
  TRY(shape_check(f, &r.shape, &shape));
  journal_growing(f->journal.name, growing);
  TRY(supports_growing_open(&f->file, path, growing, &shape, f->common.recorded));
  TRY(supports_placed_begin(&f->file, f->task->rounds));
  return recorded_take(f, &r);
}

int encode_growing_confirm(struct encode_files *f)
{
  const struct supports_shape shape = encode_shape(f->task, f->n);
  struct record r;
  TRY(encode_ranges_reopen(f, &shape));
  TRY(supports_placed_begin(&f->file, f->task->rounds));
  TRY(record_take(f, &r));
  TRY(shape_check(f, &r.shape, &shape));
  return recorded_take(f, &r);
}

/* Check the counts of the rows that were read back against the computed ones. */
static int counts_check(const struct encode_files *f, const struct encode_result *result)
{
  const struct support_counts *counts = &f->file.counts;
  for (idx k = 0; k < counts->k; k++)
    CHECK(counts->density[k] == result->density[k], ERR_IO,
          "atom %d is in %lld rows of '%s', not in %lld as was written", k,
          (long long)counts->density[k], f->file.result.file.name, (long long)result->density[k]);
  return OK;
}

static struct record record_of(const struct encode_files *f, const struct encode_result *result)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  struct supports_output *out = (struct supports_output *)&f->file;
  struct record r = {.shape = f->file.shape,
                     .part = result->part,
                     .density = result->density,
                     .dictionary = result->inputs.dictionary,
                     .inputs = f->inputs,
                     .counted = f->file.counts.nonzero,
                     .rounds = f->task->rounds,
                     .normalized = f->task->normalize,
                     .rho = f->task->rho,
                     .max_decoder_cosine = result->metrics.max_decoder_cosine,
                     .mean = f->task->mean,
                     .identity = f->job.run->identity.text};
  r.shape.n = f->n;
  int n = supports_output_arrays(out, arrays);
  for (int a = 0; a < n; a++) r.zeros[a] = arrays[a]->placed->all_zeros;
  return r;
}

/* Make the journal, which has no record yet. */
static int journal_begin(struct encode_files *f, const struct record *r)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  gidx chunks[SUPPORTS_ARRAYS], rows[SUPPORTS_ARRAYS];
  char name[sizeof f->journal.name];
  int n = supports_output_arrays(&f->file, arrays);
  for (int a = 0; a < n; a++) {
    chunks[a] = ceil_div(f->n * f->file.shape.s, arrays[a]->chunk_rows);
    rows[a] = arrays[a]->chunk_rows / f->file.shape.s;
  }
  if (f->joins)
    strcpy(name, f->journal.name);
  else
    temporary_kept_name(&f->file.result.file, JOURNAL_END, name);
  return journal_create(&f->journal, name, n, chunks, rows, record_most(r, f->n));
}

static int record_add(struct encode_files *f, const struct record *r)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  const unsigned char *leaves[SUPPORTS_ARRAYS];
  unsigned char *bytes = NULL;
  gidx count;
  int n = supports_output_arrays(&f->file, arrays);
  for (int a = 0; a < n; a++) leaves[a] = arrays[a]->placed->leaves[chunk_first(f, arrays[a])];
  int status = record_pack(r, &bytes, &count);
  if (!status) status = journal_add(&f->journal, r->part.n, leaves, bytes, count);
  free(bytes);
  return status;
}

int encode_growing_record(struct encode_files *f, const struct encode_result *result)
{
  TRY(input_files_settled());
  TRY(counts_check(f, result));
  const struct record r = record_of(f, result);
  if (f->joins)
    TRY(supports_offsets_write(&f->file, f->first + f->common.recorded, f->first + r.part.n));
  if (f->joins) TRY(encode_ranges_are_named(f));
  int status = f->journal.number ? OK : journal_begin(f, &r);
  if (!status) status = record_add(f, &r);
  if (!status) status = result_keep(&f->file.result, GROWING_END);
  if (status && f->journal.file && !f->journal.number) output_remove(f->journal.name);
  TRY(status);
  ranges_keep();
  if (!f->job.resume) output_left_discard(f->job.place.file); /* --force replaces it only now */
  sidecars_publish();
  log_info("record  %lld of %lld rows%s, in '%s'", (long long)r.part.n, (long long)f->n,
           f->joins ? " of this range" : "", f->file.result.file.name);
  return OK;
}

int encode_growing_name(struct encode_files *f)
{
  char name[sizeof f->file.result.file.name];
  strcpy(name, f->file.result.file.name);
  TRY(comm_broadcast(&f->job.run->comm, name, sizeof name, 1));
  strcpy(f->file.result.file.name, name);
  return OK;
}

int encode_growing_end(struct encode_files *f)
{
  return supports_growing_end(&f->file, f->is_part ? &part_kind : &supports_kind);
}

int encode_growing_published(struct encode_files *f)
{
  if (f->journal.file) output_remove(f->journal.name);
  return OK;
}

void encode_growing_free(struct encode_files *f)
{
  journal_close(&f->journal);
  if (!f->common.grows) return;
  supports_placed_rest(&f->file);
  if (h5_placed_close(&f->file.result.h5)) status_clear();
  supports_output_close(&f->file);
}
