/* SPDX-License-Identifier: BSD-3-Clause
 * What an earlier run left is copied into the new file before its first batch, and closed.  The
 * borders of its systems are known to that file alone. */
#include "cli/assemble_output.h"

#include <stdio.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "cli/content.h"
#include "cli/resume.h"

static int before_open(void *self, const char *path)
{
  return systems_part_open(self, path);
}

static int place_take(struct assemble_output *o, const struct output_options *output, int resume)
{
  const struct resume how = {resume, output->force, systems_part_kind.name,
                             0,      before_open,   &o->before};
  int there;
  TRY(resume_place(&how, output->output, "systems.h5", &o->place, &there));
  o->begun = there ? o->before.part.systems : 0;
  o->is_complete = there && o->begun == 0;
  return OK;
}

int assemble_output_open(struct assemble_output *o, struct run *run,
                         const struct output_options *output, int resume,
                         const struct run_inputs *inputs)
{
  struct comm *c = &run->comm;
  TRY(comm_agree(c, c->rank ? OK : place_take(o, output, resume)));
  gidx told[] = {o->begun, o->begun ? o->before.part.total : 0, o->is_complete};
  TRY(comm_broadcast(c, told, LENGTH(told), sizeof *told));
  o->begun = told[0];
  o->is_complete = told[2] != 0;
  if (o->is_complete) return OK;
  return resume_begin(run, &o->place, inputs, o->begun, told[1], "systems");
}

/* The hash of the classes, by the systems that they give. */
static uint64_t mark_of(const struct all_systems *all)
{
  const struct systems_shape *s = &all->shape;
  uint64_t sum = fingerprint(all->atom, s->count, sizeof *all->atom, 0) +
                 3 * fingerprint(all->color, s->count, sizeof *all->color, 0) +
                 5 * fingerprint(s->row, s->count + 1, sizeof *s->row, 0);
  return content_hash(sum, s->count, 1, 1);
}

/* What the systems depend on beside options.  Rank 0. */
static int identity_fill(struct identity_text *t, const struct assemble_output *o,
                         const struct all_systems *all)
{
  const struct refit_state *f = all->fit;
  char rho[32];
  snprintf(rho, sizeof rho, "%.17g", f->rho);
  TRY(identity_text_hash(t, "rows_hash", f->inputs.rows));
  TRY(identity_text_hash(t, "dictionary_hash", f->inputs.dictionary));
  TRY(identity_text_hash(t, "supports_hash", f->inputs.supports));
  TRY(identity_text_hash(t, "codes_hash", f->inputs.codes));
  TRY(identity_text_hash(t, "mean_hash", mean_hash(f->task->mean, f->p)));
  TRY(identity_text_input(t, "supports_rho", rho));
  return identity_text_hash(t, "classes_hash", o->mark);
}

/* Is the earlier run's file of this job?  Rank 0. */
static int before_check(struct assemble_output *o, struct run *run, const struct all_systems *all)
{
  o->mark = mark_of(all);
  TRY(identity_fill(&run->identity, o, all));
  if (!o->begun && !o->is_complete) return OK;
  return identity_text_check(&run->identity, o->place.file, o->place.shown);
}

static int complete_end(struct assemble_output *o, struct run *run, const struct all_systems *all)
{
  TRY(before_check(o, run, all));
  systems_input_close(&o->before);
  return OK;
}

int assemble_output_complete(struct assemble_output *o, struct run *run,
                             const struct all_systems *all)
{
  struct comm *c = &run->comm;
  TRY(comm_agree(c, c->rank ? OK : complete_end(o, run, all)));
  return complete_tell(c, o->place.shown);
}

static int output_create(struct assemble_output *o, struct run *run, const struct all_systems *all)
{
  TRY(before_check(o, run, all));
  return systems_output_create(&o->file, o->place.file, &all->shape, all->atom, all->color, 1);
}

/* The shape has the borders of the earlier systems by now. */
static int before_copy(struct assemble_output *o)
{
  TRY(systems_copy(&o->before, &o->file.sink));
  systems_input_close(&o->before);
  return OK;
}

int assemble_output_begin(struct assemble_output *o, struct run *run, struct all_systems *all)
{
  struct comm *c = &run->comm;
  TRY(comm_agree(c, c->rank ? OK : output_create(o, run, all)));
  if (!o->begun) return OK;
  TRY(all_systems_skip(all, o->before.shape.k, o->begun));
  return comm_agree(c, c->rank ? OK : before_copy(o));
}

int assemble_output_end(struct assemble_output *o, const struct all_systems *all,
                        uint64_t *fingerprint, const struct run_fact *facts, int n_facts)
{
  *fingerprint += o->before.part.fingerprint;
  const struct systems_part part = {
      .systems = all->end, .total = all->shape.count, .mark = o->mark, .fingerprint = *fingerprint};
  return systems_output_finish(&o->file, &all->fit->inputs, &part, facts, n_facts);
}
