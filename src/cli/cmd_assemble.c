/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta assemble: rows + dictionary + supports + classes -> systems.h5. */
#include <stdio.h>

#include "base/log.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/fit_inputs.h"
#include "io/systems.h"
#include "model/directions.h"
#include "stage/assemble_all.h"

struct assemble_options {
  struct job_options job;
  struct output_options output;
  struct fit_names names;
  struct fit_compute compute;
  idx directions;
  int dry_run;
};
#define AT(member) offsetof(struct assemble_options, member)

static const struct option_row assemble_rows[] = {
    {"directions", OPTION_INT, AT(directions), "4", 0, DIRECTIONS_MOST, NULL, "COUNT",
     "directions in which a frame may move: the border has so many times the frame's vectors"},
    {"dry-run", OPTION_FLAG, AT(dry_run), "no", 0, 1, NULL, NULL,
     "print the memory and disk needed and how the rows are split, and do nothing"},
};

static const struct option_table tables[] = {
    {"Input", fit_name_rows, FIT_NAME_ROWS, AT(names)},
    {"Systems", assemble_rows, LENGTH(assemble_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed, never a bit of the result", fit_compute_rows, FIT_COMPUTE_ROWS, AT(compute)},
    {"Job", job_rows, JOB_ROWS, AT(job)},
};

static const struct option_set assemble_set = {
    .command = "sagitta assemble",
    .arguments = "[DECK]",
    .doc = "Assemble the K = 1 arrow system of every atom from the residuals of its rows."
           "\v"
           "The result is systems.h5, classes in order and atoms ascending in them; `sagitta "
           "solve` solves it.\n\n"
           "  mpirun -n 4 sagitta assemble --rows acts.h5 --dictionary dict/dictionary.h5 \\\n"
           "      --supports run/supports.h5 --classes run/classes.h5 --output run/",
    .tables = tables,
    .count = LENGTH(tables),
    .most_arguments = 1,
    .has_deck = 1,
};

static int plan_print(struct comm *c, const struct fit_task *t, idx directions)
{
  TRY(fit_plan_print(c, t, directions, assembled_memory(t, directions)));
  if (c->rank == 0)
    printf("disk        %.1f MB\n",
           1e-6 * (double)systems_bytes_most(t->supports->entries, t->atoms->k, t->atoms->d,
                                             t->atoms->d * directions));
  return OK;
}

static int result_write(struct run *run, const char *path, struct assembled *all, uint64_t *mark)
{
  static struct systems_result file; /* outlives a write that passed the deadline */
  struct comm *c = &run->comm;
  const struct fit *f = all->fit;
  struct run_fact facts[FACTS_MOST];
  char device[64];
  TRY(comm_agree(c, c->rank ? OK
                            : systems_create(&file, path, &all->shape, all->atom, all->color, 1)));
  TRY(assembled_run(all, &file.sink, mark));
  snprintf(device, sizeof device, "cpu %s", f->device.variant);
  int n = run_facts(run, device, f->task->threads, facts);
  return comm_agree(c, c->rank ? OK : systems_finish(&file, facts, n));
}

static int assemble_command(struct run *run, const void *options, const char **arguments)
{
  const struct assemble_options *o = options;
  static struct fit_inputs in; /* outlives a read that passed the deadline */
  static struct fit_task task;
  struct comm *c = &run->comm;
  struct output_place place;
  struct fit fit;
  struct classes classes;
  struct assembled all;
  uint64_t mark = 0;
  double begun = log_seconds();
  (void)arguments;
  TRY(comm_agree(c, fit_inputs_open(&in, &o->names)));
  task = fit_task_of(&in, c, &o->compute);
  if (o->dry_run) return plan_print(c, &task, o->directions);
  TRY(run_begin(run, &o->output, "systems.h5", &place));
  TRY(fit_load(&fit, &task, c));
  TRY(comm_agree(c, fit_residuals(&fit)));
  TRY(fit_classes(&fit, o->names.classes, &classes));
  TRY(assembled_open(&all, &fit, &classes, o->directions));
  TRY(result_write(run, place.file, &all, &mark));
  log_info("assemble systems=%lld rows=%lld classes=%d ranks=%d device=cpu/%s seconds=%.2f "
           "fingerprint=%016llx",
           (long long)all.shape.count, (long long)all.shape.row[all.shape.count], classes.count,
           c->size, fit.device.variant, log_seconds() - begun, (unsigned long long)mark);
  log_info("wrote   %s", place.file);
  assembled_free(&all);
  classes_free(&classes);
  fit_free(&fit);
  fit_inputs_close(&in);
  return OK;
}

const struct command command_assemble = {"assemble",
                                         "supports + dictionary + classes -> arrow systems",
                                         &assemble_set,
                                         sizeof(struct assemble_options),
                                         1,
                                         assemble_command};
