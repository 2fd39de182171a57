/* SPDX-License-Identifier: BSD-3-Clause
 * What an earlier run left is copied into the new file before its first batch, and closed.  The
 * borders of its systems are known to that file alone. */
#include "cli/assemble_output.h"

#include <stdio.h>

#include "base/fingerprint.h"
#include "base/status.h"

static int before_open(void *self, const char *path)
{
  struct assemble_output *o = self;
  return systems_part_open(&o->before, path);
}

static int find(void *self, struct job *job)
{
  const struct assemble_output *o = self;
  job->done = o->before.part.systems;
  job->total = job->done ? o->before.part.total : 0;
  job->is_complete = job->done == 0;
  return OK;
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

/* What the systems depend on beside options. */
static int identify(void *self, struct identity_text *t)
{
  struct assemble_output *o = self;
  const struct refit_state *f = o->all->fit;
  char rho[32];
  o->mark = mark_of(o->all);
  snprintf(rho, sizeof rho, "%.17g", f->rho);
  TRY(identity_text_contents(t, &f->inputs));
  TRY(identity_text_hash(t, "mean_hash", mean_hash(f->task->mean, f->p)));
  TRY(identity_text_input(t, "supports_rho", rho));
  return identity_text_hash(t, "classes_hash", o->mark);
}

static int complete(void *self, struct comm *c)
{
  struct assemble_output *o = self;
  if (c->rank == 0) systems_input_close(&o->before);
  return OK;
}

static int output_create(struct assemble_output *o)
{
  const struct all_systems *all = o->all;
  return systems_output_create(&o->file, o->job.place.file, &all->shape, all->atom, all->color, 1);
}

/* The shape has the borders of the earlier systems by now. */
static int before_copy(struct assemble_output *o)
{
  TRY(systems_copy(&o->before, &o->file.sink));
  systems_input_close(&o->before);
  return OK;
}

static int begin(void *self, struct comm *c)
{
  struct assemble_output *o = self;
  TRY(comm_agree(c, c->rank ? OK : output_create(o)));
  if (!o->job.done) return OK;
  TRY(all_systems_skip(o->all, o->before.shape.k, o->job.done));
  return comm_agree(c, c->rank ? OK : before_copy(o));
}

int assemble_output_open(struct assemble_output *o, struct run *run,
                         const struct output_options *output, int resume,
                         const struct run_inputs *inputs)
{
  static const struct job_type type = {.unit = "systems",
                                       .file = "systems.h5",
                                       .part = &systems_part_kind,
                                       .open = before_open,
                                       .find = find,
                                       .identify = identify,
                                       .complete = complete,
                                       .begin = begin};
  o->job = (struct job){.run = run, .type = &type, .self = o, .output = *output, .resume = resume};
  return job_open(&o->job, inputs);
}

int assemble_output_end(struct assemble_output *o, uint64_t *fingerprint,
                        const struct run_fact *facts, int n_facts)
{
  const struct all_systems *all = o->all;
  *fingerprint += o->before.part.fingerprint;
  const struct systems_part part = {
      .systems = all->end, .total = all->shape.count, .mark = o->mark, .fingerprint = *fingerprint};
  return systems_output_finish(&o->file, &all->fit->inputs, &part, facts, n_facts);
}
