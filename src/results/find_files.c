/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads and writes the files.  In a resumed run it broadcasts the state that it read. */
#include "results/find_files.h"

#include <string.h>

#include "base/status.h"
#include "io/encoder.h"
#include "io/inputs.h"

/* Read the thresholds from a complete dictionary.h5. */
static int encoder_take(struct find_files *f)
{
  const struct output_path *from = &f->job.place;
  struct stored_encoder stored;
  struct h5_file h5;
  int there = 0;
  TRY(h5_open(&h5, from->file));
  TRY(h5_close_after(&h5, encoder_read(&h5, &f->arena, &stored, &there)));
  CHECK(there && stored.has_encoder && stored.encoder.kind == ENCODER_ACTIVE, ERR_INPUT,
        "'%s' has no thresholds: begin again, with --force and not --resume", from->shown);
  f->start.encoder = stored.encoder.active;
  return OK;
}

static int file_read(void *self, const char *path, int is_end)
{
  struct find_files *f = self;
  f->is_complete = is_end;
  TRY(finding_read(path, &f->arena, f->p, &f->start));
  return is_end ? encoder_take(f) : OK;
}

static int distribute(void *self, struct comm *c)
{
  struct find_files *f = self;
  struct find_point *s = &f->start;
  if (!f->job.is_resumed) return OK;
  TRY(comm_broadcast(c, &f->is_complete, 1, sizeof f->is_complete));
  TRY(comm_broadcast(c, s, 1, sizeof *s));
  gidx k = s->k, p = f->p;
  TRY(comm_array_send(c, &f->arena, &s->atoms, k * p, sizeof *s->atoms));
  TRY(comm_array_send(c, &f->arena, &s->means, k, sizeof *s->means));
  TRY(comm_array_send(c, &f->arena, &s->firing, k, sizeof *s->firing));
  TRY(comm_array_send(c, &f->arena, &s->offset, p, sizeof *s->offset));
  TRY(comm_array_send(c, &f->arena, &s->mean, p, sizeof *s->mean));
  return comm_array_send(c, &f->arena, &s->lines, s->count, sizeof *s->lines);
}

void find_files_free(struct find_files *f)
{
  arena_free(&f->arena);
  *f = (struct find_files){0};
}

static int file_write(void *self, const char *path, int is_end)
{
  struct find_files *f = self;
  const struct find_point *p = &f->point;
  const struct stored_encoder encoder = encoder_own(&(struct encoder){
      .kind = ENCODER_ACTIVE, .k = p->k, .p = f->p, .centered = 1, .active = p->encoder});
  TRY(identity_text_rows(&f->job.run->identity, p->rows_hash, p->held_out_hash));
  TRY(dictionary_output_create(&f->file, path, p->k, 1, f->p));
  const struct h5_file *h5 = &f->file.result.h5;
  TRY(nonnegative_write(h5, 1));
  TRY(h5_attribute_long(h5, "/", "top_s", f->top_s));
  /* For programs that do not use the thresholds. */
  TRY(h5_attribute_long(h5, "/", "rounds", f->top_s));
  TRY(matrix_output_write(&f->file, 0, p->k, p->atoms));
  TRY(object_write_vector(h5, "/mean", f->p, p->described));
  if (is_end) TRY(encoder_write(&f->file, &encoder));
  TRY(finding_write(&f->file, p, f->k, f->p));
  return job_file_finish(&f->job, &f->file);
}

int find_files_publish(struct find_files *f, const struct find_point *p, int is_end)
{
  f->point = *p;
  return job_publish(&f->job, is_end);
}

int find_files_open(struct find_files *f, const struct run_inputs *inputs)
{
  static const struct job_type type = {.file = "dictionary.h5",
                                       .more = {"state.h5", "supports.h5"},
                                       .read = file_read,
                                       .distribute = distribute,
                                       .write = file_write};
  return job_open(&f->job, &type, f, inputs);
}
