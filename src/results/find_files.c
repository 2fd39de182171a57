/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads and writes; what a resumed run goes on from is sent to all ranks. */
#include "results/find_files.h"

#include <string.h>

#include "base/status.h"
#include "io/encoder.h"
#include "io/inputs.h"

#define MEMBER(key, type, name, column) LINE_MEMBER(struct find_line, key, type, name, column)
static const struct line_member members[] = {
    MEMBER("update", LINE_LONG, update, 1),
    MEMBER("atoms", LINE_INDEX, atoms, 2),
    MEMBER("l0", LINE_REAL, l0, 3),
    MEMBER("unseen", LINE_REAL, held, 6),
    MEMBER("unseen_l0", LINE_REAL, held_out_l0, 7),
    MEMBER("dead", LINE_LONG, dead, 4),
    MEMBER("replaced", LINE_LONG, replaced, 5),
    MEMBER("seconds", LINE_REAL, seconds, 0),
};
const struct line_form find_line_form = {sizeof(struct find_line), FINDING_COLUMNS, LENGTH(members),
                                         members, NULL};

/* The thresholds of a complete dictionary. */
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
  f->found.encoder = stored.encoder.active;
  return OK;
}

static int file_read(void *self, const char *path, int is_end)
{
  struct find_files *f = self;
  struct find_found *out = &f->found;
  out->is_complete = is_end;
  TRY(finding_read(path, &f->arena, f->p, &out->record, &out->atoms, &out->k));
  return is_end ? encoder_take(f) : OK;
}

static int lines_send(struct find_files *f, struct comm *c, const struct finding_record *r)
{
  TRY(comm_agree(c, arena_alloc(&f->arena, &f->lines, r->count, sizeof *f->lines)));
  if (c->rank == 0) lines_unpack(&find_line_form, &r->lines->update, r->count, f->lines);
  return comm_broadcast(c, f->lines, r->count, sizeof *f->lines);
}

static int distribute(void *self, struct comm *c)
{
  struct find_files *f = self;
  struct find_found *s = &f->found;
  struct finding_record *r = &s->record;
  if (!f->job.is_resumed) return OK;
  TRY(comm_broadcast(c, s, 1, sizeof *s));
  gidx k = s->k, p = f->p;
  TRY(job_array_send(c, &f->arena, &s->atoms, k * p, sizeof *s->atoms));
  TRY(job_array_send(c, &f->arena, &r->means, k, sizeof *r->means));
  TRY(job_array_send(c, &f->arena, &r->firing, k, sizeof *r->firing));
  TRY(job_array_send(c, &f->arena, &r->offset, p, sizeof *r->offset));
  TRY(job_array_send(c, &f->arena, &r->mean, p, sizeof *r->mean));
  TRY(lines_send(f, c, r));
  f->start = (struct find_point){.update = r->update,
                                 .count = r->count,
                                 .lines = f->lines,
                                 .k = s->k,
                                 .atoms = s->atoms,
                                 .means = r->means,
                                 .firing = r->firing,
                                 .fired_rows = r->rows,
                                 .replaced = r->replaced,
                                 .encoder = s->encoder,
                                 .mean = r->mean,
                                 .offset = r->offset,
                                 .rows_hash = r->fitted.rows,
                                 .held_out_hash = r->held.rows};
  return OK;
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
  struct finding_record record = {.update = p->update,
                                  .count = p->count,
                                  .atoms = f->k,
                                  .rows = p->fired_rows,
                                  .replaced = p->replaced,
                                  .fitted.rows = p->rows_hash,
                                  .held.rows = p->held_out_hash,
                                  .means = (float *)p->means,
                                  .firing = (gidx *)p->firing,
                                  .offset = (float *)p->offset,
                                  .mean = (real *)p->mean};
  const struct stored_encoder encoder = encoder_own(&(struct encoder){
      .kind = ENCODER_ACTIVE, .k = p->k, .p = f->p, .centered = 1, .active = p->encoder});
  TRY(identity_text_rows(&f->job.run->identity, p->rows_hash, p->held_out_hash));
  TRY(arena_alloc(&f->arena, &record.lines, p->count, sizeof *record.lines));
  lines_pack(&find_line_form, p->lines, p->count, &record.lines->update);
  TRY(dictionary_output_create(&f->file, path, p->k, 1, f->p));
  const struct h5_file *h5 = &f->file.result.h5;
  TRY(nonnegative_write(h5, 1));
  TRY(h5_attribute_long(h5, "/", "top_s", f->top_s));
  TRY(h5_attribute_long(h5, "/", "rounds", f->top_s)); /* of who does not know thresholds */
  TRY(matrix_output_write(&f->file, 0, p->k, p->atoms));
  TRY(object_write_vector(h5, "/mean", f->p, p->described));
  if (is_end) TRY(encoder_write(&f->file, &encoder));
  TRY(finding_write(&f->file, &record, p->k, f->p));
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
