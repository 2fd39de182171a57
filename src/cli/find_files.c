/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads and writes; what a resumed run goes on from is sent to all ranks. */
#include "cli/find_files.h"

#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "job/job.h"
#include "io/encoder.h"
#include "io/inputs.h"

/* What is read on rank 0; of its pointers the others know which are NULL. */
struct found {
  int is_complete, there;
  idx k;
  struct finding_record record;
  float *atoms;
  struct found_encoder encoder;
};

/* The thresholds of a complete dictionary. */
static int encoder_take(struct find_files *f, struct found *out)
{
  struct stored_encoder stored;
  struct h5_file h5;
  int there = 0;
  TRY(h5_open(&h5, f->dictionary.file));
  TRY(h5_close_after(&h5, encoder_read(&h5, &f->arena, &stored, &there)));
  CHECK(there && stored.has_encoder && stored.encoder.kind == ENCODER_ACTIVE, ERR_INPUT,
        "'%s' has no thresholds: begin again, with --force and not --resume", f->dictionary.shown);
  out->encoder = stored.encoder.active;
  return OK;
}

/* Find what the earlier run left. */
static int before_find(struct find_files *f, const struct identity_text *now, struct found *out)
{
  out->is_complete = input_is_there(f->dictionary.file);
  const struct output_place *from = out->is_complete ? &f->dictionary : &f->state;
  if (!input_is_there(from->file)) return OK;
  TRY(identity_text_check(now, from->file, from->shown));
  TRY(finding_read(from->file, &f->arena, f->p, &out->record, &out->atoms, &out->k));
  out->there = 1;
  return out->is_complete ? encoder_take(f, out) : OK;
}

static int places_find(struct find_files *f, const struct run *run,
                       const struct output_options *output, int resume, struct found *found)
{
  TRY(output_place(&f->dictionary, output->output, "dictionary.h5", 1));
  TRY(output_place(&f->state, output->output, "state.h5", 1));
  TRY(output_place(&f->supports, output->output, "supports.h5", 1));
  if (resume) TRY(before_find(f, &run->identity, found));
  if (found->there) return OK;
  int is_left = input_is_there(f->state.file) && !input_is_there(f->dictionary.file);
  if (is_left && !resume && !output->force) return job_part_refuse(f->state.file);
  TRY(output_check_free(f->dictionary.file, output->force));
  TRY(output_check_free(f->state.file, output->force));
  return output_check_free(f->supports.file, output->force);
}

/* An array of rank 0 to all, where the others allocate it; NULL stays NULL. */
static int array_send(struct find_files *f, struct comm *c, void *array, gidx count, size_t size)
{
  void **at = array;
  int there = *at != NULL;
  TRY(comm_agree(c, c->rank && there ? arena_alloc(&f->arena, at, count, size) : OK));
  return there ? comm_broadcast(c, *at, count, size) : OK;
}

static int lines_send(struct find_files *f, struct comm *c, const struct finding_record *r)
{
  TRY(comm_agree(c, arena_alloc(&f->arena, &f->lines, r->count, sizeof *f->lines)));
  for (gidx i = 0; i < r->count && c->rank == 0; i++) {
    const struct finding_line *l = &r->lines[i];
    f->lines[i] = (struct find_line){.update = (gidx)l->update,
                                     .atoms = (idx)l->atoms,
                                     .l0 = l->l0,
                                     .dead = (gidx)l->dead,
                                     .replaced = (gidx)l->replaced,
                                     .held = l->held,
                                     .held_l0 = l->held_l0,
                                     .seconds = nan_canonical()};
  }
  return comm_broadcast(c, f->lines, r->count, sizeof *f->lines);
}

static int start_send(struct find_files *f, struct comm *c, struct found *s)
{
  struct finding_record *r = &s->record;
  gidx k = s->k, p = f->p;
  TRY(array_send(f, c, &s->atoms, k * p, sizeof *s->atoms));
  TRY(array_send(f, c, &r->means, k, sizeof *r->means));
  TRY(array_send(f, c, &r->firing, k, sizeof *r->firing));
  TRY(array_send(f, c, &r->offset, p, sizeof *r->offset));
  TRY(array_send(f, c, &r->mean, p, sizeof *r->mean));
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
                                 .held_hash = r->held.rows};
  return OK;
}

int find_files_open(struct find_files *f, struct run *run, const struct output_options *output,
                    int resume)
{
  struct comm *c = &run->comm;
  struct found found = {0};
  int status = c->rank ? OK : places_find(f, run, output, resume, &found);
  TRY(comm_agree(c, status));
  TRY(comm_broadcast(c, &found, 1, sizeof found));
  f->has_start = found.there;
  f->is_complete = found.there && found.is_complete;
  return found.there ? start_send(f, c, &found) : OK;
}

void find_files_free(struct find_files *f)
{
  arena_free(&f->arena);
  *f = (struct find_files){0};
}

static int lines_take(struct find_files *f, const struct find_point *p, struct finding_line **lines)
{
  TRY(arena_alloc(&f->arena, lines, p->count, sizeof **lines));
  for (gidx i = 0; i < p->count; i++) {
    const struct find_line *l = &p->lines[i];
    (*lines)[i] = (struct finding_line){(real)l->update,   l->atoms, l->l0,     (real)l->dead,
                                        (real)l->replaced, l->held,  l->held_l0};
  }
  return OK;
}

static struct stored_encoder encoder_of(const struct find_files *f, const struct find_point *p)
{
  return (struct stored_encoder){
      .program = "sagitta",
      .architecture = encoder_names[ENCODER_ACTIVE],
      .settings = "",
      .dtype = "F32",
      .threshold_dtype = "",
      .has_encoder = 1,
      .encoder = {
          .kind = ENCODER_ACTIVE, .k = p->k, .p = f->p, .centered = 1, .active = p->encoder}};
}

static int file_write(struct find_files *f, const struct run *run, const struct find_point *p,
                      const char *path, int is_end)
{
  struct run_fact facts[MAX_FACTS];
  struct finding_record record = {.update = p->update,
                                  .count = p->count,
                                  .atoms = f->k,
                                  .rows = p->fired_rows,
                                  .replaced = p->replaced,
                                  .fitted.rows = p->rows_hash,
                                  .held.rows = p->held_hash,
                                  .means = (float *)p->means,
                                  .firing = (gidx *)p->firing,
                                  .offset = (float *)p->offset,
                                  .mean = (real *)p->mean};
  struct stored_encoder encoder = encoder_of(f, p);
  TRY(lines_take(f, p, &record.lines));
  TRY(dictionary_output_create(&f->file, path, p->k, 1, f->p));
  const struct h5_file *h5 = &f->file.result.h5;
  TRY(nonnegative_write(h5, 1));
  TRY(h5_attribute_long(h5, "/", "top_s", f->top_s));
  TRY(matrix_output_write(&f->file, 0, p->k, p->atoms));
  TRY(object_write_vector(h5, "/mean", f->p, p->described));
  if (is_end) TRY(encoder_write(&f->file, &encoder));
  TRY(finding_write(&f->file, &record, p->k, f->p));
  return matrix_output_finish(&f->file, facts, run_facts(run, f->device, f->threads, facts));
}

int find_files_write(struct find_files *f, struct run *run, const struct find_point *p, int is_end)
{
  TRY(identity_text_hash(&run->identity, "rows_hash", p->rows_hash));
  TRY(identity_text_hash(&run->identity, "held_out_hash", p->held_hash));
  if (!is_end) return file_write(f, run, p, f->state.file, 0);
  TRY(file_write(f, run, p, f->dictionary.file, 1));
  int step = watchdog_begin(ERR_IO, "removing", f->state.file);
  unlink(f->state.file); /* that it is not there is no failure */
  watchdog_end(step);
  return OK;
}
