/* SPDX-License-Identifier: BSD-3-Clause
 * What an earlier run left is copied into the new file before its first batch, counted, and
 * closed. */
#include "cli/solve_output.h"

#include "base/num.h"
#include "base/status.h"
#include "cli/content.h"
#include "cli/resume.h"

static int before_open(void *self, const char *path)
{
  return solutions_input_open(self, path);
}

static int place_take(struct solve_output *f, const struct output_options *output, int resume)
{
  const struct resume how = {resume, output->force, solutions_part_kind.name,
                             0,      before_open,   &f->before};
  int there;
  TRY(resume_place(&how, output->output, "solutions.h5", &f->place, &there));
  f->begun = there ? f->before.part.systems : 0;
  f->is_complete = there && f->begun == 0;
  return OK;
}

int solve_output_open(struct solve_output *f, struct run *run, const struct output_options *output,
                      int resume, const char *systems, gidx total)
{
  struct comm *c = &run->comm;
  const struct run_inputs inputs = {.name = {systems}};
  TRY(comm_agree(c, c->rank ? OK : place_take(f, output, resume)));
  gidx told[] = {f->begun, f->is_complete};
  TRY(comm_broadcast(c, told, LENGTH(told), sizeof *told));
  f->begun = told[0];
  f->is_complete = told[1] != 0;
  if (f->is_complete) return OK;
  return resume_begin(run, &f->place, &inputs, f->begun, total, "systems");
}

/* Is the earlier run's file of this job?  Rank 0 has read the systems' mark by now. */
static int before_check(struct solve_output *f, struct run *run)
{
  TRY(identity_text_hash(&run->identity, "systems_mark", f->mark));
  return identity_text_check(&run->identity, f->place.file, f->place.shown);
}

/* Solutions of the earlier run go to the file, and are counted. */
struct counting {
  struct solve_output *f;
  const struct systems_shape *shape;
};

static int counted_write(void *self, const struct solution_block *block)
{
  const struct counting *c = self;
  solve_count(&c->f->counted, c->shape, block);
  return c->f->file.sink.write(c->f->file.sink.self, block);
}

static int count_alone(void *self, const struct solution_block *block)
{
  const struct counting *c = self;
  solve_count(&c->f->counted, c->shape, block);
  return OK;
}

static int complete_count(struct solve_output *f, struct run *run,
                          const struct systems_input *systems)
{
  struct counting counting = {f, &systems->shape};
  const struct solution_sink sink = {&counting, count_alone};
  TRY(systems_input_mark(systems, &f->mark));
  TRY(before_check(f, run));
  f->before.part.systems = systems->shape.count;
  TRY(solutions_copy(&f->before, &systems->shape, &sink));
  solutions_input_close(&f->before);
  return OK;
}

int solve_output_complete(struct solve_output *f, struct run *run,
                          const struct systems_input *systems)
{
  struct comm *c = &run->comm;
  TRY(comm_agree(c, c->rank ? OK : complete_count(f, run, systems)));
  return complete_tell(c, f->place.shown);
}

static int output_begin(struct solve_output *f, struct run *run,
                        const struct systems_input *systems, const struct arrow_options *options)
{
  const struct systems_shape *shape = &systems->shape;
  struct counting counting = {f, shape};
  const struct solution_sink sink = {&counting, counted_write};
  TRY(systems_input_mark(systems, &f->mark));
  if (f->begun) TRY(before_check(f, run));
  TRY(identity_text_hash(&run->identity, "systems_mark", f->mark));
  TRY(solutions_output_create(&f->file, f->place.file, shape, options));
  if (!f->begun) return OK;
  TRY(solutions_copy(&f->before, shape, &sink));
  solutions_input_close(&f->before);
  CHECK(f->counted.fingerprint == f->before.part.fingerprint, ERR_INPUT,
        "the solutions of '%s' are not those that were written", f->place.shown);
  return OK;
}

int solve_output_begin(struct solve_output *f, struct run *run, const struct systems_input *systems,
                       const struct arrow_options *options)
{
  return comm_agree(&run->comm, run->comm.rank ? OK : output_begin(f, run, systems, options));
}

void solve_output_join(const struct solve_output *f, struct solve_result *result)
{
  solve_join(result, &f->counted);
}

int solve_output_end(struct solve_output *f, const struct systems_input *systems,
                     const struct solve_result *result, const struct run_fact *facts, int n_facts)
{
  const struct systems_part part = {.systems = result->end,
                                    .total = systems->shape.count,
                                    .mark = f->mark,
                                    .fingerprint = result->fingerprint};
  return solutions_output_finish(&f->file, &systems->inputs, &part, facts, n_facts);
}
