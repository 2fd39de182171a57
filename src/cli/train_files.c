/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads and writes; what a resumed run goes on from is sent to all ranks. */
#include "cli/train_files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "cli/command.h"
#include "io/encoder.h"
#include "io/inputs.h"

static int arrays_alloc(struct train_files *f, gidx count, struct train_line **lines, real **mean)
{
  TRY(train_state_alloc(&f->state_read, &f->arena, f->k, f->p));
  TRY(arena_alloc(&f->arena, mean, f->p, sizeof **mean));
  return arena_alloc(&f->arena, lines, count, sizeof **lines);
}

/* Is there a file of this job? */
static int before_find(struct train_files *f, const struct output_place *place, int *is_there)
{
  TRY(job_file_check(&f->job, place, is_there));
  return *is_there ? training_record_read(place->file, &f->arena, &f->found.record, &f->found_lines)
                   : OK;
}

static int find(void *self, struct job *job)
{
  if (!job->resume) return OK;
  TRY(before_find(self, &job->place, &job->is_complete));
  return job->is_complete ? OK : before_find(self, &job->more[0], &job->is_resumed);
}

static int state_send(struct train_files *f, struct comm *c, struct train_line *lines, real *mean)
{
  const struct train_state *s = &f->state_read;
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    float *const arrays[] = {s->w[i], s->m[i], s->v[i]};
    size_t row = (size_t)(i == TRAIN_BIAS ? 1 : f->p) * sizeof(float);
    for (int j = 0; j < LENGTH(arrays); j++) TRY(comm_broadcast(c, arrays[j], f->k, row));
  }
  TRY(comm_broadcast(c, s->idle, f->k, sizeof *s->idle));
  for (int i = 0; i < LENGTH(s->offset); i++)
    TRY(comm_broadcast(c, s->offset[i], f->p, sizeof(float)));
  TRY(comm_broadcast(c, mean, f->p, sizeof *mean));
  return comm_broadcast(c, lines, f->start.count, sizeof *lines);
}

/* Read the state on rank 0, and send it. */
static int start_read(struct train_files *f, struct comm *c)
{
  struct train_found *found = &f->found;
  struct train_line *lines = NULL;
  real *mean = NULL;
  gidx count = found->record.count;
  TRY(comm_agree(c, arrays_alloc(f, count, &lines, &mean)));
  int status = c->rank ? OK
                       : training_state_read(f->job.more[0].file, &f->state_read, f->k, f->p,
                                             found->sums, mean, &found->has_mean);
  TRY(comm_agree(c, status));
  for (gidx i = 0; i < count && c->rank == 0; i++) {
    const struct training_line *from = &f->found_lines[i];
    lines[i] = (struct train_line){.step = (gidx)from->step,
                                   .fitted = from->fitted,
                                   .held = from->held,
                                   .dead = (gidx)from->dead};
  }
  TRY(comm_broadcast(c, found, 1, sizeof *found));
  f->start.step = found->record.step;
  f->start.count = count;
  f->start.lines = lines;
  f->start.state = &f->state_read;
  f->start.mean = found->has_mean ? mean : NULL;
  f->start.scale = (int)found->record.scale;
  f->start.unit = found->record.unit;
  TRY(state_send(f, c, lines, mean));
  f->state_read.error = found->sums[0];
  f->state_read.size = found->sums[1];
  f->state_read.threshold = (struct batch_threshold){found->sums[2], found->sums[3]};
  return OK;
}

static int distribute(void *self, struct comm *c)
{
  struct train_files *f = self;
  TRY(comm_broadcast(c, &f->found, 1, sizeof f->found));
  f->start.rows_hash = f->found.record.rows.rows;
  f->start.held_hash = f->found.record.held.rows;
  return f->job.is_resumed ? start_read(f, c) : OK;
}

static int lines_make(const struct train_point *p, struct arena *arena,
                      struct training_line **lines)
{
  TRY(arena_alloc(arena, lines, p->count, sizeof **lines));
  for (gidx i = 0; i < p->count; i++) {
    const struct train_line *l = &p->lines[i];
    (*lines)[i] = (struct training_line){(real)l->step, l->fitted, l->held, (real)l->dead};
  }
  return OK;
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
  struct run_fact facts[MAX_FACTS];
  struct training_record record = {.step = p->step,
                                   .count = p->count,
                                   .scale = p->scale,
                                   .unit = p->unit,
                                   .rows.rows = p->rows_hash,
                                   .held.rows = p->held_hash};
  struct stored_encoder encoder = encoder_of(f, p);
  struct training_line *lines;
  struct arena arena = {0};
  TRY(identity_text_hash(&run->identity, "rows_hash", p->rows_hash));
  TRY(identity_text_hash(&run->identity, "held_out_hash", p->held_hash));
  TRY(lines_make(p, &arena, &lines));
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
  TRY(matrix_output_finish(&f->file, facts, run_facts(run, f->device, f->threads, facts)));
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
