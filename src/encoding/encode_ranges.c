/* SPDX-License-Identifier: BSD-3-Clause
 * Several jobs encode ranges of rows into one growing file.  Each job first claims a journal of its
 * own, and only then looks at the journals of other jobs.  So if two jobs with common rows begin at
 * once, at least one of them sees the other.  Then the growing file is opened or made. */
#include "encoding/encode_ranges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "encoding/encode_ranks.h"
#include "io/h5/placed.h"
#include "io/inputs.h"
#include "io/ranges.h"
#include "io/record.h"

int encode_ranges_check(const struct encode_task *task, gidx all, gidx first, gidx end)
{
  const struct supports_shape shape = encode_shape(task, all);
  gidx unit = supports_segment_rows(&shape);
  CHECK(!task->encoder, ERR_USAGE,
        "'--join' does not go with '--%s': rows have different numbers of atoms, so that no job "
        "knows where its rows begin; leave '--join' out, and join the parts with `sagitta merge`",
        task->cuts ? "l0" : "encoder");
  CHECK(unit, ERR_USAGE,
        "'--join' is given, but all %lld rows are one segment: leave out '--join', or both "
        "'--join' and '--row-range'",
        (long long)all);
  gidx from = imin((first + unit / 2) / unit * unit, (all - 1) / unit * unit);
  gidx to = end == all ? all : imin(imax((end + unit / 2) / unit * unit, from + unit), all);
  CHECK(first == from && end == to, ERR_USAGE,
        "'--row-range' is %lld:%lld, of %lld rows: with '--join' a range begins at a multiple of "
        "%lld, and ends at one or at the last row; the nearest is %lld:%lld",
        (long long)first, (long long)end, (long long)all, (long long)unit, (long long)from,
        (long long)to);
  return OK;
}

/* *text <- what the jobs of one file must have in common, as far as it is known before atoms are
 * read. */
static int text_make(struct encode_files *f, struct identity_text *text)
{
  const struct encode_task *t = f->task;
  text->text = strdup(f->job.run->identity.text);
  CHECK(text->text, ERR_MEMORY, "cannot allocate the identity of a job");
  TRY(identity_text_input(text, "rows_shape", "%lld x %d", (long long)f->all->n, f->all->p));
  TRY(identity_text_input(text, "atoms_shape", "%d x %d", t->atoms->k, t->atoms->d));
  TRY(identity_text_input(text, "result_has", t->codes ? "codes" : "scores alone"));
  TRY(identity_text_input(text, "journal_version", "%d", JOURNAL_VERSION));
  TRY(encode_sample(f->all, &f->rows_sample));
  return identity_text_hash(text, "rows_sample", f->rows_sample);
}

/* whole[4096] <- the name of the result with all ranges, in the folder of this job's file. */
static void whole_name(const struct encode_files *f, char *whole)
{
  const char *file = f->job.place.file;
  snprintf(whole, 4096, "%.*s/supports.h5", (int)(strrchr(file, '/') - file), file);
}

static int whole_check(const char *whole)
{
  CHECK(!input_is_there(whole), ERR_CREATE,
        "'%s' already exists, with all rows: remove it, or give another folder", whole);
  return OK;
}

/* Check that no other result is in the folder, finished or growing. */
static int others_check(const struct encode_files *f, const struct range_list *list,
                        const char *whole, const struct identity_text *text)
{
  struct identity_difference d = {"", ""};
  char *was = NULL;
  TRY(whole_check(whole));
  CHECK(!*list->single, ERR_CREATE,
        "'%s' is from a job that encodes all rows: continue that job with --resume, or remove the "
        "file and its journal",
        list->single);
  if (!list->count || !strcmp(list->growing, f->growing)) return OK;
  if (list->has_growing) TRY(ranges_text(list->growing, &was, NULL));
  int differs = was && identity_text_differs(was, text->text, &d);
  free(was);
  CHECK(!differs, ERR_INPUT,
        "'%s' is of jobs with %s, this run has %s: give the same, or another folder", list->growing,
        d.was, d.is);
  FAIL(ERR_INPUT,
       "'%s' is of jobs with other options or inputs: give the same, or another folder, or remove "
       "it and its journals",
       list->growing);
}

/* Another range has some of the same rows.  If its journal is gone by now, nothing happens.  If its
 * job ended before its first record, the journal is removed.  Otherwise this job fails. */
static int overlap_check(const struct encode_files *f, const struct range *other)
{
  struct journal j;
  int error, has_lock;
  TRY(journal_claim(&j, other->journal, 0, &error, &has_lock));
  int is_left = !error && has_lock && !j.number;
  if (is_left) output_remove(other->journal);
  journal_close(&j);
  if (is_left || error == ENOENT) return OK;
  FAIL(ERR_CREATE,
       "rows %lld to %lld belong to another job, with '--row-range %lld:%lld' in '%s', and this "
       "job has %lld to %lld: give ranges that do not overlap%s",
       (long long)other->first, (long long)other->end - 1, (long long)other->first,
       (long long)other->end, other->journal, (long long)f->first, (long long)(f->first + f->n - 1),
       has_lock || error ? ", or remove that file" : "; if no job is at work there, remove it");
}

static int overlaps_check(const struct encode_files *f, const struct range_list *list)
{
  gidx first = f->first, end = first + f->n;
  for (int i = 0; i < list->count; i++) {
    const struct range *other = &list->all[i];
    int is_own = other->first == first && other->end == end;
    if (!is_own && other->first < end && first < other->end) TRY(overlap_check(f, other));
  }
  return OK;
}

/* The first other range that has a record. */
struct other {
  char journal[4096]; /* "": there is none */
  uint64_t dictionary;
  gidx id; /* of the growing file */
};

static void other_find(const struct encode_files *f, const struct range_list *list,
                       struct other *other)
{
  *other = (struct other){.id = 0};
  for (int i = 0; i < list->count && !*other->journal; i++) {
    struct journal j = {0};
    struct record r = {0};
    struct arena arena = {0};
    if (!strcmp(list->all[i].journal, f->journal.name)) continue;
    int status = journal_open(&j, list->all[i].journal);
    if (!status) status = record_read(&r, &j, &arena);
    if (status) {
      status_clear();
    } else {
      strcpy(other->journal, j.name);
      other->dictionary = r.dictionary;
      other->id = j.head.id;
    }
    arena_free(&arena);
    journal_close(&j);
  }
}

/* Does --force discard the record of this range? */
static int clears(const struct encode_files *f)
{
  return f->journal.number && !f->job.resume && f->job.output.force;
}

/* The growing file is open.  Check that its options are `text`, and that the records belong to
 * it. */
static int growing_check(struct encode_files *f, const struct other *other, const char *text)
{
  struct journal *j = &f->journal;
  int is_done = j->number && j->rows == f->n && !clears(f);
  char *was;
  gidx id;
  TRY(ranges_text(f->growing, &was, &id));
  int has = was != NULL, is_same = has && !strcmp(was, text);
  free(was);
  if (!has && is_done) return OK; /* `sagitta merge` has begun to use it */
  CHECK(is_same, ERR_INPUT,
        "'%s' does not begin with the options of its jobs: if a `sagitta merge` of this file was "
        "interrupted, repeat the merge; else remove the file and its journals",
        f->growing);
  if (!j->number || clears(f)) j->head.id = id;
  const char *foreign = *other->journal && other->id != id ? other->journal : NULL;
  if (j->head.id != id) foreign = j->name;
  CHECK(!foreign, ERR_INPUT,
        "'%s' records rows of another file than '%s', which was made anew: restore the earlier "
        "file, or remove both and the other journals, and encode all ranges again",
        foreign, f->growing);
  return OK;
}

/* Open the growing file.  Make it if there is none and no record refers to it. */
static int growing_claim(struct encode_files *f, const struct range_list *list, const char *text)
{
  const struct journal *j = &f->journal;
  struct other other;
  other_find(f, list, &other);
  const char *needs = *other.journal ? other.journal : j->number && !clears(f) ? j->name : NULL;
  CHECK(!needs || input_is_there(f->growing), ERR_INPUT,
        "'%s' has records of rows, and has lost its growing file, '%s': restore that, or remove "
        "all journals beside it, and encode all ranges again",
        needs, f->growing);
  if (!j->number) f->common.dictionary = other.dictionary;
  TRY(ranges_create(f->growing, text));
  return growing_check(f, &other, text);
}

/* This job has its journal.  Compare it with the journals of the other jobs. */
static int journal_use(struct encode_files *f, const struct range_list *list, const char *text)
{
  struct job *job = &f->job;
  struct journal *j = &f->journal;
  TRY(overlaps_check(f, list));
  int is_done = j->number && j->rows == f->n;
  CHECK(!is_done || job->resume || job->output.force, ERR_CREATE,
        "rows %lld to %lld are done already, according to '%s': give --resume to compare and keep "
        "them, or --force to encode them again",
        (long long)f->first, (long long)(f->first + f->n - 1), j->name);
  TRY(growing_claim(f, list, text));
  if (!j->number) return OK;
  if (!clears(f)) return strcpy(job->left, j->name), OK;
  TRY(journal_clear(j));
  return ranges_hold(j->name, j->file);
}

static int range_claim(struct encode_files *f, const char *whole, const char *text)
{
  char name[sizeof f->journal.name];
  int error, has_lock;
  struct range_list list;
  range_journal(f->growing, f->first, f->first + f->n, name);
  TRY(journal_claim(&f->journal, name, 1, &error, &has_lock));
  CHECK(!error, ERR_CREATE, "another run is writing here: it has '%s' locked", name);
  if (!f->journal.number) TRY(ranges_hold(name, f->journal.file));
  int status = ranges_find(&list, whole);
  if (!status) status = journal_use(f, &list, text);
  ranges_free(&list);
  return status;
}

static int range_open(struct encode_files *f, struct identity_text *text)
{
  char whole[4096];
  struct range_list list;
  whole_name(f, whole);
  TRY(text_make(f, text));
  TRY(ranges_name(whole, text->text, f->growing));
  TRY(output_claim_shared(whole));
  int status = ranges_find(&list, whole);
  if (!status) status = others_check(f, &list, whole, text);
  ranges_free(&list);
  TRY(status);
  return range_claim(f, whole, text->text);
}

static int root_open(struct encode_files *f)
{
  struct identity_text text = {0};
  struct job *job = &f->job;
  TRY(output_path(&job->place, job->output.output, "supports.h5", 1)); /* checks the name too */
  int status = range_open(f, &text);
  identity_text_free(&text);
  return status;
}

int encode_ranges_open(struct encode_files *f)
{
  struct comm *c = &f->job.run->comm;
  return f->joins ? comm_agree(c, c->rank ? OK : root_open(f)) : OK;
}

int encode_ranges_begin(struct encode_files *f, const struct supports_shape *shape)
{
  struct supports_shape all = *shape;
  char whole[4096];
  whole_name(f, whole);
  all.n = ranges_rows(f);
  return supports_growing_join(&f->file, whole, f->growing, &all, f->first + f->common.recorded);
}

int encode_ranges_reopen(struct encode_files *f, const struct supports_shape *shape)
{
  struct supports_shape all = *shape;
  char whole[4096];
  whole_name(f, whole);
  all.n = ranges_rows(f);
  return supports_growing_open(&f->file, whole, f->growing, &all, f->first + f->n);
}

int encode_ranges_are_named(const struct encode_files *f)
{
  const char *lost = !h5_placed_is_named(&f->file.result.h5) ? f->growing
                     : !journal_is_current(&f->journal)      ? f->journal.name
                                                             : NULL;
  CHECK(!lost, ERR_IO,
        "'%s' was removed or replaced while this job wrote: what it wrote since its last record "
        "is lost",
        lost);
  return OK;
}
