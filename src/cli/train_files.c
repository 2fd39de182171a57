/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads and writes; what a resumed run goes on from is sent to all ranks. */
#include "cli/train_files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/train_report.h"
#include "io/encoder.h"
#include "io/inputs.h"

/* Read what training goes on from. */
static int state_take(struct train_files *f, const struct training_record *r,
                      const struct training_line *table)
{
  struct train_state *s = &f->state_read;
  struct train_point *p = &f->start;
  struct train_line *lines;
  real *mean;
  int has_mean;
  TRY(train_state_alloc(s, &f->arena, f->k, f->p));
  TRY(arena_alloc(&f->arena, &mean, f->p, sizeof *mean));
  TRY(arena_alloc(&f->arena, &lines, r->count, sizeof *lines));
  TRY(training_state_read(f->job.more[0].file, s, f->k, f->p, mean, &has_mean));
  lines_unpack(&train_line_form, &table->step, r->count, lines);
  p->step = r->step;
  p->count = r->count;
  p->lines = lines;
  p->mean = has_mean ? mean : NULL;
  p->scale = (int)r->scale;
  p->unit = r->unit;
  return OK;
}

static int find(void *self, struct job *job)
{
  struct train_files *f = self;
  const struct output_path *left = NULL;
  struct training_record record;
  struct training_line *lines;
  if (job->resume) TRY(job_left_find(job, &left));
  if (!left) return OK;
  job->is_complete = left == &job->place;
  job->is_resumed = !job->is_complete;
  TRY(training_record_read(left->file, &f->arena, &record, &lines));
  f->start.rows_hash = record.rows.rows;
  f->start.held_out_hash = record.held.rows;
  return job->is_resumed ? state_take(f, &record, lines) : OK;
}

static int distribute(void *self, struct comm *c)
{
  struct train_files *f = self;
  struct train_state *s = &f->state_read;
  struct train_point *p = &f->start;
  gidx k = f->k, columns = f->p;
  TRY(comm_broadcast(c, p, 1, sizeof *p));
  if (!f->job.is_resumed) return OK;
  TRY(comm_broadcast(c, s, 1, sizeof *s));
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    float **const arrays[] = {&s->w[i], &s->m[i], &s->v[i]};
    size_t row = (size_t)(i == TRAIN_BIAS ? 1 : columns) * sizeof(float);
    for (int j = 0; j < LENGTH(arrays); j++) TRY(job_array_send(c, &f->arena, arrays[j], k, row));
  }
  for (int i = 0; i < LENGTH(s->offset); i++)
    TRY(job_array_send(c, &f->arena, &s->offset[i], columns, sizeof(float)));
  TRY(job_array_send(c, &f->arena, &s->idle, k, sizeof *s->idle));
  TRY(job_array_send(c, &f->arena, &p->mean, columns, sizeof *p->mean));
  p->state = s;
  return job_array_send(c, &f->arena, &p->lines, p->count, sizeof *p->lines);
}

/* The encoder, of rows as they are. */
static struct stored_encoder encoder_of(struct train_files *f, const struct train_point *p)
{
  int is_batch = f->l0 > 0;
  float threshold = ldexpf(batch_threshold_value(&p->state->threshold), -p->scale);
  for (idx a = 0; a < f->k; a++) {
    f->bias[a] = ldexpf(p->state->w[TRAIN_BIAS][a], -p->scale);
    f->threshold[a] = threshold;
  }
  return encoder_own(&(struct encoder){.kind = is_batch ? ENCODER_BATCHTOPK : ENCODER_TOPK,
                                       .k = f->k,
                                       .p = f->p,
                                       .top = f->top_s,
                                       .centered = 1,
                                       .weights = p->state->w[TRAIN_ENCODER],
                                       .bias = f->bias,
                                       .threshold = is_batch ? f->threshold : NULL});
}

static int file_write(void *self, const char *path, int is_end)
{
  struct train_files *f = self;
  const struct train_point *p = &f->point;
  struct run *run = f->job.run;
  struct training_record record = {.step = p->step,
                                   .count = p->count,
                                   .scale = p->scale,
                                   .unit = p->unit,
                                   .rows.rows = p->rows_hash,
                                   .held.rows = p->held_out_hash};
  struct stored_encoder encoder = encoder_of(f, p);
  struct training_line *lines;
  struct arena arena = {0};
  TRY(identity_text_hash(&run->identity, "rows_hash", p->rows_hash));
  TRY(identity_text_hash(&run->identity, "held_out_hash", p->held_out_hash));
  TRY(arena_alloc(&arena, &lines, p->count, sizeof *lines));
  lines_pack(&train_line_form, p->lines, p->count, &lines->step);
  TRY(dictionary_output_create(&f->file, path, f->k, 1, f->p));
  const struct h5_file *h5 = &f->file.result.h5;
  TRY(nonnegative_write(h5, 1));
  TRY(h5_attribute_long(h5, "/", "top_s", f->top_s));
  TRY(matrix_output_write(&f->file, 0, f->k, p->state->w[TRAIN_DECODER]));
  if (p->described) TRY(object_write_vector(h5, "/mean", f->p, p->described));
  TRY(encoder_write(&f->file, &encoder));
  TRY(training_record_write(&f->file, &record, lines));
  if (!is_end) TRY(training_state_write(&f->file, p->state, f->k, f->p));
  if (!is_end && f->learns_offset) TRY(training_offset_write(&f->file, p->state, p->mean, f->p));
  TRY(job_file_finish(&f->job, &f->file));
  arena_free(&arena);
  return OK;
}

int train_files_publish(struct train_files *f, const struct train_point *p, int is_end)
{
  f->point = *p;
  return job_publish(&f->job, is_end);
}

int train_files_open(struct train_files *f, struct run *run, const struct output_options *output,
                     int resume, const struct run_inputs *inputs)
{
  static const struct job_type type = {.file = "dictionary.h5",
                                       .more = {"state.h5"},
                                       .find = find,
                                       .distribute = distribute,
                                       .write = file_write};
  f->job = (struct job){.run = run, .type = &type, .self = f, .output = *output, .resume = resume};
  int status = arena_alloc(&f->arena, &f->bias, f->k, sizeof *f->bias);
  if (!status) status = arena_alloc(&f->arena, &f->threshold, f->k, sizeof *f->threshold);
  TRY(comm_agree(&run->comm, status));
  return job_open(&f->job, inputs);
}

void train_files_free(struct train_files *f)
{
  arena_free(&f->arena);
  *f = (struct train_files){0};
}
