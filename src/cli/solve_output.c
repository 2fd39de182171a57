/* SPDX-License-Identifier: BSD-3-Clause
 * What an earlier run left is copied into the new file before its first batch, counted, and
 * closed. */
#include "cli/solve_output.h"

#include "base/status.h"

static int before_open(void *self, const char *path)
{
  struct solve_output *f = self;
  return solutions_input_open(&f->before, path);
}

static int find(void *self, struct job *job)
{
  const struct solve_output *f = self;
  job->done = f->before.part.systems;
  job->is_complete = job->done == 0;
  return OK;
}

static int identify(void *self, struct identity_text *identity)
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

/* Solutions of the earlier run are counted, and go to the file, if there is one. */
static int before_copy(struct solve_output *f)
{
  TRY(solutions_copy(&f->before, &f->systems->shape, &(struct solution_sink){f, counted_write}));
  solutions_input_close(&f->before);
  return OK;
}

static int complete(void *self, struct comm *c)
{
  struct solve_output *f = self;
  f->before.part.systems = f->systems->shape.count;
  return comm_agree(c, c->rank ? OK : before_copy(f));
}

static int output_begin(struct solve_output *f)
{
  TRY(solutions_output_create(&f->file, f->job.place.file, &f->systems->shape, f->options));
  if (!f->job.done) return OK;
  TRY(before_copy(f));
  CHECK(f->counted.fingerprint == f->before.part.fingerprint, ERR_INPUT,
        "the solutions of '%s' are not those that were written", f->job.place.shown);
  return OK;
}

static int begin(void *self, struct comm *c)
{
  return comm_agree(c, c->rank ? OK : output_begin(self));
}

int solve_output_open(struct solve_output *f, struct run *run, const struct output_options *output,
                      int resume, const char *systems)
{
  static const struct job_type type = {.unit = "systems",
                                       .file = "solutions.h5",
                                       .part = &solutions_part_kind,
                                       .open = before_open,
                                       .find = find,
                                       .identify = identify,
                                       .complete = complete,
                                       .begin = begin};
  f->job = (struct job){.run = run,
                        .type = &type,
                        .self = f,
                        .output = *output,
                        .resume = resume,
                        .total = f->systems->shape.count};
  return job_open(&f->job, &(const struct run_inputs){.name = {systems}});
}

void solve_output_join(const struct solve_output *f, struct solve_result *result)
{
  solve_join(result, &f->counted);
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
