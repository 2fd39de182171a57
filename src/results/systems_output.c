/* SPDX-License-Identifier: BSD-3-Clause
 * The part that an earlier run left is copied into the new file before the first batch.  solve also
 * counts its solutions; assemble takes from it the border sizes of the systems already made. */
#include "results/systems_output.h"

#include "base/status.h"

static int solved_open(void *self, const char *path)
{
  struct solve_output *f = self;
  TRY(solutions_input_open(&f->before, path));
  f->job.done = f->before.part.systems; /* 0: the result is complete */
  f->job.is_complete = f->job.done == 0;
  return OK;
}

static int systems_identify(void *self, struct identity_text *identity)
{
  struct solve_output *f = self;
  TRY(systems_input_mark(f->systems, &f->mark));
  return identity_text_hash(identity, "systems_mark", f->mark);
}

static int counted_write(void *self, const struct solution_block *block)
{
  struct solve_output *f = self;
  solve_count(&f->counted, &f->systems->shape, block);
  return f->file.sink.write ? f->file.sink.write(f->file.sink.self, block) : OK;
}

/* Count the solutions of the earlier run, and copy them into the new file, if one is open. */
static int solved_copy(struct solve_output *f)
{
  TRY(solutions_copy(&f->before, &f->systems->shape, &(struct solution_sink){f, counted_write}));
  solutions_input_close(&f->before);
  return OK;
}

static int solve_complete(void *self, struct comm *c)
{
  struct solve_output *f = self;
  f->before.part.systems = f->systems->shape.count;
  return comm_agree(c, c->rank ? OK : solved_copy(f));
}

static int solutions_begin(void *self)
{
  struct solve_output *f = self;
  TRY(solutions_output_create(&f->file, f->job.place.file, &f->systems->shape, f->options));
  if (!f->job.done) return OK;
  TRY(solved_copy(f));
  CHECK(f->counted.fingerprint == f->before.part.fingerprint, ERR_INPUT,
        "the solutions of '%s' are not those that were written", f->job.place.shown);
  return OK;
}

int solve_output_open(struct solve_output *f, const char *systems)
{
  static const struct job_type type = {.unit = "systems",
                                       .file = "solutions.h5",
                                       .part = &solutions_part_kind,
                                       .open = solved_open,
                                       .identify = systems_identify,
                                       .complete = solve_complete,
                                       .begin = solutions_begin};
  f->job.total = f->systems->shape.count;
  return job_open(&f->job, &type, f, &(const struct run_inputs){.name = {systems}});
}

int solve_output_end(struct solve_output *f, const struct solve_result *result,
                     const struct run_fact *facts, int n_facts)
{
  const struct systems_part part = {.systems = result->end,
                                    .total = f->systems->shape.count,
                                    .mark = f->mark,
                                    .fingerprint = result->fingerprint};
  return solutions_output_finish(&f->file, &f->systems->inputs, &part, facts, n_facts);
}

static int assembled_open(void *self, const char *path)
{
  struct assemble_output *o = self;
  TRY(systems_part_open(&o->before, path));
  o->job.done = o->before.part.systems;
  o->job.is_complete = o->job.done == 0;
  o->job.total = o->job.is_complete ? 0 : o->before.part.total;
  return OK;
}

/* Add to the identity what the systems depend on, except options. */
static int classes_identify(void *self, struct identity_text *t)
{
  struct assemble_output *o = self;
  const struct refit_state *f = o->all->fit;
  o->mark = all_systems_hash(o->all);
  TRY(identity_text_contents(t, &f->inputs));
  TRY(identity_text_hash(t, "mean_hash", mean_hash(f->task->mean, f->p)));
  TRY(identity_text_input(t, "supports_rho", "%.17g", f->rho));
  return identity_text_hash(t, "classes_hash", o->mark);
}

/* Give the shape the border sizes of the systems that the earlier run made. */
static int borders_take(void *self, struct comm *c)
{
  struct assemble_output *o = self;
  (void)c;
  return all_systems_skip(o->all, o->before.shape.k, o->job.done);
}

static int systems_begin(void *self)
{
  struct assemble_output *o = self;
  const struct all_systems *all = o->all;
  TRY(systems_output_create(&o->file, o->job.place.file, &all->shape, all->atom, all->color, 1));
  if (o->job.done) TRY(systems_copy(&o->before, &o->file.sink));
  systems_input_close(&o->before);
  return OK;
}

int assemble_output_open(struct assemble_output *o, const struct run_inputs *inputs)
{
  static const struct job_type type = {.unit = "systems",
                                       .file = "systems.h5",
                                       .part = &systems_part_kind,
                                       .open = assembled_open,
                                       .identify = classes_identify,
                                       .prepare = borders_take,
                                       .begin = systems_begin};
  return job_open(&o->job, &type, o, inputs);
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
