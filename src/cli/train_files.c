/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads and writes, and broadcasts the point from which a resumed run starts.  The callbacks
 * of train_run() are at the end of this file.  A point is a step after which there is a line of
 * figures, or a state that can be saved. */
#include "cli/train_files.h"

#include "base/log.h"
#include "base/status.h"
#include "cli/train_job.h"
#include "io/encoder.h"
#include "io/inputs.h"
#include "job/checkpoint.h"

static int file_read(void *self, const char *path, int is_end)
{
  struct train_files *f = self;
  f->job.is_complete = is_end;
  return training_read(path, &f->arena, f->sizes->k, f->p, &f->start,
                       is_end ? NULL : &f->state_read);
}

static int distribute(void *self, struct comm *c)
{
  struct train_files *f = self;
  struct train_state *s = &f->state_read;
  struct train_point *p = &f->start;
  struct train_array arrays[TRAIN_STATE_ARRAYS];
  TRY(comm_broadcast(c, p, 1, sizeof *p));
  if (!f->job.is_resumed) return OK;
  TRY(comm_broadcast(c, s, 1, sizeof *s));
  train_state_arrays(s, f->sizes->k, f->p, arrays);
  for (int i = 0; i < LENGTH(arrays); i++)
    TRY(comm_array_send(c, &f->arena, arrays[i].at, arrays[i].count, arrays[i].size));
  TRY(comm_array_send(c, &f->arena, &p->mean, f->p, sizeof *p->mean));
  p->state = s;
  return comm_array_send(c, &f->arena, &p->lines, p->count, sizeof *p->lines);
}

static int file_write(void *self, const char *path, int is_end)
{
  struct train_files *f = self;
  const struct train_point *p = &f->point;
  const struct encoder encoder = train_encoder(p, f->sizes, f->p, f->top_s, f->bias, f->threshold);
  const struct stored_encoder stored = encoder_own(&encoder);
  idx k = f->sizes->k;
  TRY(identity_text_rows(&f->job.run->identity, p->rows_hash, p->held_out_hash));
  TRY(dictionary_output_create(&f->file, path, k, 1, f->p));
  const struct h5_file *h5 = &f->file.result.h5;
  TRY(nonnegative_write(h5, 1));
  TRY(h5_attribute_long(h5, "/", "top_s", f->top_s));
  TRY(matrix_output_write(&f->file, 0, k, p->state->w[TRAIN_DECODER]));
  if (p->described) TRY(object_write_vector(h5, "/mean", f->p, p->described));
  TRY(encoder_write(&f->file, &stored));
  TRY(training_write(&f->file, p));
  if (!is_end) TRY(training_state_write(&f->file, p, k, f->p, f->sizes->learns_offset));
  return job_file_finish(&f->job, &f->file);
}

int train_files_open(struct train_files *f, const struct run_inputs *inputs)
{
  static const struct job_type type = {.file = "dictionary.h5",
                                       .more = {"state.h5"},
                                       .read = file_read,
                                       .distribute = distribute,
                                       .write = file_write};
  idx k = f->sizes->k;
  int status = arena_alloc(&f->arena, &f->bias, k, sizeof *f->bias);
  if (!status) status = arena_alloc(&f->arena, &f->threshold, k, sizeof *f->threshold);
  TRY(comm_agree(&f->job.run->comm, status));
  return job_open(&f->job, &type, f, inputs);
}

void train_files_free(struct train_files *f)
{
  arena_free(&f->arena);
  *f = (struct train_files){0};
}

/* POLL_SECONDS: between two checks for the file STOP.  So that each run makes progress,
 * --max-seconds stops no run before LEAST_STEPS steps or LEAST_SECONDS, whichever comes first. */
static const real POLL_SECONDS = 0.25, LEAST_SECONDS = 1;
enum { LEAST_STEPS = 16 };

/* train_run() calls this with each line, and with each state that can be saved. */
static int point_take(void *self, const struct train_point *p, enum train_reason why)
{
  struct train_job *j = self;
  train_lines_log(j, p);
  if (why == TRAIN_LINE) return OK;
  TRY(comm_agree(&j->run->comm, train_point_note(j, p, why)));
  j->files.point = *p;
  return job_publish(&j->files.job, why == TRAIN_END);
}

/* The job may stop at any step, but --max-seconds counts only after the run has made progress. */
static int may_stop(void *of)
{
  struct train_job *j = of;
  real now = log_seconds();
  gidx steps = j->polls++;
  if (steps == 0) j->stepped = now;
  if (steps >= LEAST_STEPS || (steps > 0 && now - j->stepped >= LEAST_SECONDS))
    j->run->max_seconds = j->max_seconds;
  return 1;
}

void train_files_sink(struct train_job *j)
{
  struct job *job = &j->files.job;
  job->may_stop = may_stop;
  job->poll_seconds = POLL_SECONDS; /* steps may be short, and the file system slow */
  job->stops_to_save = 1;
  job->summary = train_summary_json;
  job->of = j;
  j->sink = (struct train_sink){j, point_take, job_stops(job), job_wishes(job)};
}
