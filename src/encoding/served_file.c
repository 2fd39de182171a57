/* SPDX-License-Identifier: BSD-3-Clause
 * A few pieces of rows are used in turn.  While steps of the server work on some, the codes of
 * another piece are written, and that piece is filled with the next rows of the file. */
#include "encoding/served_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "encoding/encode_ranks.h"
#include "encode/lane.h"
#include "encode/tally.h"
#include "encoding/backlog_check.h"
#include "encoding/encode_files.h"
#include "encoding/encode_saves.h"
#include "io/inputs.h"
#include "io/rows.h"
#include "io/input_agreement.h"
#include "job/summary.h"
#include "model/access.h"
#include "model/advice.h"

struct served {
  struct served_task *task;
  struct run run; /* of the job of encode, on one rank */
  struct rows_input rows;
  struct encode_files files;
  struct encode_task encode;
  struct encode_result result;
  struct tally *tally;
  struct piece *pieces;    /* [n_pieces] of the task */
  int n_pieces;            /* pieces in use: enough for the steps that may be in work */
  int is_out[FILE_PIECES]; /* the server has the piece */
  gidx next, added;        /* number of rows of the task that were read; number of rows in the
                            * result */
  int line;                /* of the list */
  real due;                /* when the next save is; 0: never */
};

int served_rows_open(struct rows_input *rows, const struct served_task *task, const char *name)
{
  const struct atom_source *atoms = task->encode->atoms;
  TRY(rows_input_open(rows, NULL, name));
  CHECK(rows->source.p == atoms->p, ERR_INPUT,
        "'%s' has %d columns, '%s' has %d: give rows with as many columns", rows->source.name,
        rows->source.p, atoms->name, atoms->p);
  return OK;
}

/* Check the norms of the rows: a lane takes only rows whose scores cannot overflow. */
static int norms_check(const struct served *s, const struct piece *p)
{
  idx columns = s->encode.rows->p;
  for (gidx i = 0; i < p->n; i++) {
    const float *x = p->x + i * columns;
    real sum = 0;
    for (idx c = 0; c < columns; c++) sum += (real)x[c] * x[c];
    CHECK(sqrt(sum) <= LANE_NORM, ERR_INPUT,
          "row %lld of '%s' has the norm %.3g, above %.0g: `sagitta encode` may take it",
          (long long)(s->encode.first + p->first + i), s->rows.source.name, sqrt(sum), LANE_NORM);
  }
  return OK;
}

/* x[n][p] <- rows of the task, as they are encoded.  *terms <- the sum of their hash terms, as they
 * were read. */
static int rows_take(const struct served *s, gidx first, idx n, float *x, uint64_t *terms)
{
  const struct encode_task *t = &s->encode;
  *terms = 0;
  return rows_load(&(struct rows_load){.rows = t->rows,
                                       .first = first,
                                       .count = n,
                                       .x = x,
                                       .terms = terms,
                                       .mean = t->mean,
                                       .whole = &s->rows.source,
                                       .place = t->first + first});
}

/* Read the next rows into a piece that the server does not have, and put it into the queue. */
static int piece_begin(struct served *s, int i)
{
  struct piece *p = &s->pieces[i];
  const struct encode_task *t = &s->encode;
  gidx left = t->rows->n - s->next;
  int is_due = s->due > 0 && log_seconds() >= s->due && s->next > 0; /* no save without new rows */
  if (left == 0 || is_due || feed_is_closing(s->task->front)) return OK;
  p->first = s->next;
  p->line = s->line;
  p->n = (idx)imin(left, t->block);
  TRY(rows_take(s, p->first, p->n, p->x, &p->terms));
  TRY(norms_check(s, p));
  s->next += p->n;
  s->is_out[i] = 1;
  feed_put(s->task->front, p);
  return OK;
}

/* Wait until the server gives a piece back.  Add its rows that have codes to the result. */
static int piece_end(struct served *s, int i)
{
  struct piece *p = &s->pieces[i];
  feed_wait(s->task->front, p);
  s->is_out[i] = 0;
  if (!p->done || p->first != s->added) return OK;
  if (p->done < p->n)
    TRY(rows_take(s, p->first, p->done, p->x, &p->terms)); /* the terms of these fewer rows */
  s->added += p->done;
  return tally_add(s->tally, &(struct tally_rows){.first = p->first,
                                                  .n = p->done,
                                                  .terms = p->terms,
                                                  .x = p->x,
                                                  .atoms = p->atoms,
                                                  .score = p->score,
                                                  .codes = p->codes,
                                                  .quality = p->quality});
}

static int pieces_run(struct served *s)
{
  for (int i = 0; i < s->n_pieces; i++) TRY(piece_begin(s, i));
  for (int i = 0; s->is_out[i]; i = (i + 1) % s->n_pieces) {
    TRY(piece_end(s, i));
    TRY(piece_begin(s, i));
  }
  return OK;
}

/* Encode the rows of the task, until all are done, a save is due or the server ends. */
static int rows_run(struct served *s)
{
  s->next = s->added = 0;
  int status = tally_open(&s->tally, &s->encode, s->task->facts.dictionary, &s->result);
  s->result.device = s->task->facts.device;
  snprintf(s->result.variant, sizeof s->result.variant, "%s", s->task->facts.variant);
  if (!status) status = pieces_run(s);
  for (int i = 0; i < s->n_pieces; i++) /* after a failure, too, the server must have no piece */
    if (s->is_out[i]) feed_wait(s->task->front, &s->pieces[i]), s->is_out[i] = 0;
  return tally_close(s->tally, status);
}

static int publish(void *self)
{
  struct served *s = self;
  struct run_fact facts[MAX_FACTS];
  char device[128];
  snprintf(device, sizeof device, "%s %s", s->result.device, s->result.variant);
  int n = run_facts(&s->run, device, s->encode.threads, facts);
  return encode_files_end(&s->files, &s->result, facts, n);
}

/* Log the advice that encode gives on its result. */
static void result_advise(const struct served *s)
{
  const struct dictionary_input *d = s->task->dictionary;
  const struct metrics *m = &s->result.metrics;
  char what[4096];
  snprintf(what, sizeof what, "the rows of '%s'", s->rows.source.name);
  advice_metrics(m, what);
  if (s->encode.mean)
    advice_scale(m, d->norm, d->file);
  else if (!d->rounds)
    advice_mean(m, d->file, "give a dictionary with /mean beside its atoms");
}

static int result_publish_all(struct served *s)
{
  TRY(encode_files_join(&s->files, &s->result));
  if (s->result.part.n == s->files.n) s->result.metrics.max_decoder_cosine = s->task->facts.cosine;
  return job_finish(&s->files.job, publish, s);
}

/* Set when the next save is due.  took: seconds that the last save took. */
static void due_set(struct served *s, real took)
{
  const real pause = s->task->save_seconds;
  if (pause > 0) s->due = log_seconds() + encode_saves_pause(pause, took);
}

/* Encode, save and go on, until all is done or the server ends. */
static int saves_run(struct served *s)
{
  for (;;) {
    TRY(rows_run(s));
    real begun = log_seconds();
    if (!s->added && s->encode.rows->n) return OK; /* the file that was published stays */
    TRY(result_publish_all(s));
    if (s->result.part.n == s->files.n || feed_is_closing(s->task->front)) return OK;
    encode_free(&s->result);
    TRY(encode_files_continue(&s->files));
    due_set(s, log_seconds() - begun);
  }
}

/* Look at an existing file.  *is_whole <- it is a complete result.  A part is continued. */
static int before_find(struct served *s, const struct output_path *place, int *is_whole)
{
  const struct served_task *t = s->task;
  gidx n = s->rows.source.n;
  int is_there = input_is_there(place->file) && !t->force;
  TRY(output_check_left(place->file, t->force));
  int is_left = is_there && part_is_left(place->file, part_kind.name, n);
  if (is_left && !t->resume) return job_part_refuse(place->file);
  if (is_there && !t->resume) TRY(output_check_free(place->file, 0));
  TRY(encode_files_resume(&s->files, &s->run, place, is_left, t->facts.dictionary));
  CHECK(!is_left || s->files.job.done || s->files.job.is_complete, ERR_CREATE,
        "'%s' is of another dictionary than this server has: give --force to replace it",
        place->shown);
  *is_whole = s->files.job.is_complete = is_there && !is_left;
  return OK;
}

/* Pieces have one size for all files, because pinning memory for a GPU takes long. */
static int pieces_make(struct served *s)
{
  for (int i = 0; i < s->n_pieces; i++) {
    struct piece *p = &s->pieces[i];
    if (p->x) continue;
    int status = piece_alloc(p, s->task->front, s->encode.block);
    if (status) piece_free(p, s->task->front);
    TRY(status);
    log_debug("piece   of %d rows for files of the backlog", s->encode.block);
  }
  return OK;
}

static int file_run(struct served *s, const struct backlog_entry *entry)
{
  struct output_path *place = &s->files.job.place;
  int is_whole = 0;
  s->files.n = s->rows.source.n;
  s->files.task = &s->encode;
  s->files.all = &s->rows.source;
  TRY(output_path(place, entry->output, "supports.h5", 1));
  TRY(backlog_output_check(s->task->list,
                           entry)); /* checked again, now that the output is claimed */
  const struct output_path copy = *place;
  TRY(before_find(s, &copy, &is_whole));
  if (is_whole) return job_complete(&s->files.job);
  TRY(job_begin(&s->files.job));
  TRY(encode_ranks_begin(&s->files));
  TRY(pieces_make(s));
  due_set(s, 0);
  TRY(saves_run(s));
  if (!s->added && s->files.n) return OK; /* no rows were encoded since the last save */
  log_info("wrote   %s: %lld of %lld rows, fingerprint=%016llx", s->files.job.place.shown,
           (long long)s->result.part.n, (long long)s->files.n,
           (unsigned long long)s->result.fingerprint);
  if (s->result.part.n == s->files.n) result_advise(s); /* after the message on the file */
  return OK;
}

static int served_open(struct served *s, const struct backlog_entry *entry)
{
  const struct served_task *t = s->task;
  s->run = *t->run;
  s->run.comm = (struct comm){.size = 1, .local_size = 1};
  s->run.identity.text = strdup(t->identity);
  CHECK(s->run.identity.text, ERR_MEMORY, "cannot allocate the identity of a job");
  TRY(inputs_agree(&s->run.comm, served_rows_open(&s->rows, t, entry->rows)));
  s->encode = *t->encode;
  s->encode.rows = &s->rows.source;
  s->encode.sink = &s->files.file.sink;
  s->encode.block = (idx)(ceil_div(t->encode->block, ROW_BLOCK) * ROW_BLOCK);
  s->n_pieces = t->encode->block > ROW_BLOCK / 2 ? FILE_PIECES : 2;
  return OK;
}

static void served_free(struct served *s)
{
  encode_free(&s->result);
  supports_output_close(&s->files.file);
  encode_files_free(&s->files);
  rows_input_close(&s->rows);
  identity_text_free(&s->run.identity);
  outputs_release(); /* of this file: many files may follow */
  free(s);
}

int served_file_encode(struct served_task *task, const struct backlog_entry *entry, int *is_left)
{
  struct served *s;
  char reason[1024];
  TRY(struct_alloc(&s, sizeof *s));
  s->task = task;
  s->pieces = task->pieces;
  s->line = entry->line;
  int status = served_open(s, entry);
  if (!status) status = file_run(s, entry);
  snprintf(reason, sizeof reason, "%s", status ? status_message() : "");
  *is_left = !s->files.job.is_complete && s->result.part.n < s->files.n;
  served_free(s);
  CHECK(!status, status, "%s", reason);
  return OK;
}

void served_files_free(struct served_task *task)
{
  for (int i = 0; i < FILE_PIECES; i++) piece_free(&task->pieces[i], task->front);
}
