/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta assemble: rows + dictionary + supports + classes -> systems.h5. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/stop.h"
#include "io/input_agreement.h"
#include "results/systems_output.h"
#include "cli/command.h"
#include "cli/fit_inputs.h"
#include "job/checkpoint.h"
#include "job/summary.h"
#include "job/threads.h"
#include "model/directions.h"
#include "refit/all_systems.h"
#include "refit/frames.h"

struct assemble_options {
  struct general_options general;
  struct output_options output;
  struct fit_names names;
  struct fit_compute compute;
  idx directions;
  int resume, dry_run;
  real max_seconds;
  const char *share;
};
#define AT(member) offsetof(struct assemble_options, member)

static const struct option_row assemble_rows[] = {
    {"directions", OPTION_INT, AT(directions), "4", 0, MAX_DIRECTIONS, NULL, "COUNT",
     "number of directions in which a frame may move; the size of the border is this number times "
     "the number of vectors of the frame",
     .effect = OPTION_BITS},
    SHARE_OPTION(AT(share)),
    RESUME_OPTION(AT(resume)),
    MAX_SECONDS_OPTION(AT(max_seconds), "a batch of systems"),
    DRY_RUN_OPTION(AT(dry_run)),
};

static const struct option_table tables[] = {
    {"Input", fit_name_rows, FIT_NAME_ROWS, AT(names)},
    {"Systems", assemble_rows, LENGTH(assemble_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed; no bit of the result changes", fit_compute_rows, FIT_COMPUTE_ROWS, AT(compute)},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set assemble_set = {
    .command = "sagitta assemble",
    .arguments = "[DECK]",
    .doc =
        "Assemble the arrow system of every atom from the residuals of its rows."
        "\v"
        "An arrow matrix has a diagonal block for each row of the atom, and a border for the "
        "directions in which the atom may move.  The result is systems.h5, in the order of the "
        "classes, and in a class in the order of the atoms; `sagitta solve` solves these "
        "systems.\n\n"
        "  mpirun -n 4 sagitta assemble --rows acts.h5 \\\n"
        "      --dictionary dict/dictionary.h5 --supports run/supports.h5 \\\n"
        "      --classes run/classes.h5 --output run/\n\n"
        "--max-seconds stops a job after a given time.  To stop a running job, create a file STOP "
        "beside the result, " STOP_SIGNALS
        "A stopped job ends with exit code 75 after the current batch.  Its result has the first "
        "systems, and --resume computes the others.",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job, on the heap, since threads may use it after a failure (job/run.h). */
struct assemble_state {
  struct run *run;
  struct comm *c;
  const struct assemble_options *o;
  struct fit_inputs inputs;
  struct refit_task task;
  struct refit_state state;
  struct classes classes;
  struct all_systems all;
  struct assemble_output out;
  uint64_t fingerprint;
};

static int plan_print(struct assemble_state *j)
{
  const struct refit_task *t = &j->task;
  idx directions = j->o->directions, d = t->atoms->d;
  const struct fit_plan plan = {
      .task = t,
      .directions = directions,
      .bytes_of = all_systems_batch_bytes,
      .disk = systems_max_bytes(t->supports->entries, t->atoms->k, d, d * directions),
      .how_disk = ""};
  return fit_plan_print(j->run, &plan);
}

static int entries_json(const struct assemble_state *j)
{
  const struct systems_shape *s = &j->all.shape;
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "systems", j->all.end);
  json_long(own, "rows", s->row[j->all.end]);
  json_long(own, "classes", j->classes.count);
  json_long(own, "shared_bytes", j->state.shared.bytes);
  json_hash(own, "fingerprint", j->fingerprint);
  return OK;
}

/* Publish systems.h5; called by job_finish() on rank 0. */
static int result_close(void *self)
{
  struct assemble_state *j = self;
  struct run_fact facts[MAX_FACTS];
  char device[64];
  snprintf(device, sizeof device, "cpu %s", j->state.device.variant);
  int n = run_facts(j->run, device, j->task.threads, facts);
  TRY(assemble_output_end(&j->out, &j->fingerprint, facts, n));
  return entries_json(j);
}

static int job_run(struct assemble_state *j)
{
  struct comm *c = j->c;
  double begun = log_seconds();
  TRY(inputs_agree(c, fit_inputs_open(&j->inputs, c, &j->o->names)));
  j->task = fit_inputs_task(&j->inputs, j->run, &j->o->compute);
  j->task.colors = !j->o->names.classes;
  TRY(refit_frames_choose(&j->task, c, j->o->share));
  if (j->o->dry_run) return plan_print(j);
  const struct run_inputs inputs = fit_inputs_files(&j->inputs);
  TRY(comm_agree(c, identity_text_begin(&j->run->identity, j->run->command->options, j->o)));
  j->out.job = (struct job){.run = j->run, .output = j->o->output, .resume = j->o->resume};
  TRY(assemble_output_open(&j->out, &inputs));
  stop_listen();
  TRY(threads_report(j->run, j->o->compute.threads));
  TRY(refit_total_check(&j->task, c, all_systems_batch_bytes, j->o->directions, 0));
  TRY(refit_state_load(&j->state, &j->task, c));
  TRY(comm_agree(c, refit_state_residuals(&j->state)));
  TRY(fit_inputs_classes(&j->inputs, &j->state, NULL, &j->classes));
  TRY(all_systems_open(&j->all, &j->state, &j->classes, j->o->directions));
  j->out.all = &j->all;
  if (j->out.job.is_complete) return job_complete(&j->out.job);
  j->run->max_seconds = j->o->max_seconds;
  j->all.stops = job_stops(&j->out.job);
  TRY(job_begin(&j->out.job));
  TRY(all_systems_write(&j->all, &j->out.file.sink, &j->fingerprint));
  summary_inputs_set(&j->state.inputs);
  TRY(job_finish(&j->out.job, result_close, j));
  log_info("assemble systems=%lld rows=%lld classes=%d ranks=%d device=cpu/%s seconds=%.2f "
           "fingerprint=%016llx",
           (long long)j->all.end, (long long)j->all.shape.row[j->all.end], j->classes.count,
           c->size, j->state.device.variant, log_seconds() - begun,
           (unsigned long long)j->fingerprint);
  log_info("wrote   %s", j->out.job.place.shown);
  return OK;
}

static int assemble_command(struct run *run, const void *options, const char **arguments)
{
  struct assemble_state *j;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  j->run = run;
  j->c = &run->comm;
  j->o = options;
  TRY(job_run(j));
  systems_input_close(&j->out.before);
  all_systems_free(&j->all);
  classes_free(&j->classes);
  refit_state_free(&j->state);
  fit_inputs_close(&j->inputs);
  free(j);
  return OK;
}

const struct command command_assemble = {"assemble",
                                         "supports + dictionary + classes -> arrow systems",
                                         &assemble_set,
                                         sizeof(struct assemble_options),
                                         1,
                                         assemble_command};
