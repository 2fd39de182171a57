/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta solve: systems.h5 -> solutions.h5. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/report.h"
#include "io/systems.h"
#include "stage/solve.h"

struct solve_options {
  struct job_options job;
  struct output_options output;
  const char *systems, *cpu_variant;
  real ridge_t, ridge_b;
  gidx batch;
  idx threads;
  int escalate, strict, dry_run;
};
#define AT(member) offsetof(struct solve_options, member)

static const struct option_row input_rows[] = {
    {"systems", OPTION_TEXT, AT(systems), NULL, 0, 0, NULL, "FILE",
     "arrow systems, as doc/formats.md has them: from `sagitta assemble`, `sagitta synth "
     "--systems` "
     "or another program"},
    {"ridge-t", OPTION_REAL, AT(ridge_t), "0", 0, 1e300, NULL, "RIDGE",
     "added to the diagonal of every row block"},
    {"ridge-b", OPTION_REAL, AT(ridge_b), "0", 0, 1e300, NULL, "RIDGE",
     "added to the diagonal of every border"},
    {"escalate", OPTION_FLAG, AT(escalate), "no", 0, 1, NULL, NULL,
     "try a system that fails again with larger ridges, ten times larger each time, at most 22 "
     "times"},
    {"strict", OPTION_FLAG, AT(strict), "no", 0, 1, NULL, NULL,
     "exit 1 when a system failed; exit 65, without a result, when one is not finite"},
};

static const struct option_row speed_rows[] = {
    {"batch", OPTION_LONG, AT(batch), "0", 0, 0x1p40, NULL, "ROWS",
     "rows held at a time, at least one system; 0: as many as pay"},
    {"threads", OPTION_INT, AT(threads), "0", 0, 4096, NULL, "COUNT",
     "threads in a rank; 0: the rank's share of the cores"},
    {"cpu-variant", OPTION_CHOICE, AT(cpu_variant), "auto", 0, 0,
     "auto|baseline|avx2|avx512vl|avx512", NULL,
     "instruction set; baseline takes the loops of avx2"},
    {"dry-run", OPTION_FLAG, AT(dry_run), "no", 0, 1, NULL, NULL,
     "print the memory and disk needed, and do nothing"},
};

static const struct option_table tables[] = {
    {"Systems", input_rows, LENGTH(input_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed and memory, never a bit of the result", speed_rows, LENGTH(speed_rows), 0},
    {"Job", job_rows, JOB_ROWS, AT(job)},
};

static const struct option_set solve_set = {
    .command = "sagitta solve",
    .arguments = "[DECK]",
    .doc =
        "Solve arrow systems: steps of rows and border, and the log-determinant, of each."
        "\v"
        "The result, solutions.h5, holds for each system its steps, its log-determinant, and what "
        "became of it: a system that is not positive definite fails by itself, with the place and "
        "the bump that would mend it, and never touches another.  The bytes do not depend on the "
        "number of ranks, batches or threads, nor on the other systems of the file.\n\n"
        "  mpirun -n 4 sagitta solve --systems run/systems.h5 --escalate --output run/",
    .tables = tables,
    .count = LENGTH(tables),
    .most_arguments = 1,
    .has_deck = 1,
};

static int systems_ready(struct systems_file *f, const struct solve_options *o)
{
  CHECK(o->systems, ERR_USAGE, "'--systems' is missing: the file with the arrow systems");
  CHECK(o->output.output || o->dry_run, ERR_USAGE,
        "'--output' is missing: a folder, or a file that ends in .h5");
  return systems_open(f, o->systems);
}

static struct solve_task task_of(const struct run *run, const struct solve_options *o,
                                 const struct systems_file *f)
{
  return (struct solve_task){.systems = &f->source,
                             .options = {o->ridge_t, o->ridge_b, o->escalate},
                             .batch = o->batch ? o->batch : solve_batch(&f->shape),
                             .threads = threads_choose(&run->comm, o->threads),
                             .variant = o->cpu_variant};
}

static int plan_print(const struct run *run, const struct solve_task *t)
{
  const struct systems_shape *s = t->systems->shape;
  struct solve_result plan;
  if (run->comm.rank) return OK;
  TRY(solve_plan(t, &run->comm, &plan));
  printf("systems  %lld of %lld rows, %.3g numbers in %lld batches\n", (long long)s->count,
         (long long)s->row[s->count], (double)systems_reals(s, 0, s->count),
         (long long)plan.batches);
  printf("memory   %.1f MB a rank\n", 1e-6 * (double)plan.memory);
  printf("disk     %.1f MB\n", 1e-6 * (double)solutions_bytes(s));
  return OK;
}

static gidx failed(const struct solve_result *r)
{
  return r->counts[ARROW_ROW_NOT_PD] + r->counts[ARROW_SCHUR_NOT_PD] + r->counts[ARROW_NOT_FINITE];
}

static void outcomes_report(const struct solve_result *r)
{
  for (int status = 0; status < ARROW_STATUSES; status++) {
    const char *place = status == ARROW_ROW_NOT_PD     ? "row"
                        : status == ARROW_SCHUR_NOT_PD ? "pivot"
                                                       : "entry";
    if (status == ARROW_OK)
      log_info("%-28s %lld", arrow_status_name(status), (long long)r->counts[status]);
    else if (r->counts[status] > 0)
      log_info("%-28s %lld, first system %lld at %s %lld", arrow_status_name(status),
               (long long)r->counts[status], (long long)r->first[status], place,
               (long long)r->first_place[status]);
  }
  if (r->retries > 0)
    log_info("%-28s %lld tries, %lld systems mended", "escalated", (long long)r->retries,
             (long long)r->mended);
}

static int finite_check(const struct solve_options *o, const struct solve_result *r)
{
  CHECK(!o->strict || r->counts[ARROW_NOT_FINITE] == 0, ERR_INPUT,
        "system %lld of '%s' is not finite at entry %lld of its blocks, gradients and border",
        (long long)r->first[ARROW_NOT_FINITE], o->systems,
        (long long)r->first_place[ARROW_NOT_FINITE]);
  return OK;
}

static int result_close(const struct run *run, struct solutions_result *file,
                        const struct solve_task *t, const struct solve_result *result)
{
  struct run_fact facts[FACTS_MOST];
  char device[64];
  if (run->comm.rank) return OK;
  snprintf(device, sizeof device, "cpu %s", result->variant);
  int n = run_facts(run, device, t->threads, facts);
  return solutions_finish(file, facts, n);
}

static int result_open(const struct run *run, struct solutions_result *file,
                       const struct output_place *place, const struct solve_task *t)
{
  return run->comm.rank ? OK : solutions_create(file, place->file, t->systems->shape, &t->options);
}

static int solve_command(struct run *run, const void *options, const char **arguments)
{
  const struct solve_options *o = options;
  static struct systems_file systems; /* static: a worker may be at work when the job fails */
  static struct solve_task task;
  static struct solutions_result file;
  static struct solve_result result;
  struct output_place place;
  (void)arguments;
  TRY(comm_agree(&run->comm, systems_ready(&systems, o)));
  const struct systems_shape *shape = &systems.shape;
  task = task_of(run, o, &systems);
  if (o->dry_run) return comm_agree(&run->comm, plan_print(run, &task));
  TRY(run_begin(run, &o->output, "solutions.h5", &place));
  TRY(comm_agree(&run->comm, result_open(run, &file, &place, &task)));
  task.sink = &file.sink;
  double begun = log_seconds();
  TRY(solve_run(&task, &run->comm, &result));
  log_info("solve   systems=%lld rows=%lld failed=%lld ranks=%d device=cpu/%s seconds=%.2f "
           "fingerprint=%016llx",
           (long long)shape->count, (long long)shape->row[shape->count], (long long)failed(&result),
           run->comm.size, result.variant, log_seconds() - begun,
           (unsigned long long)result.fingerprint);
  TRY(report_phases(&run->comm, result.phases, SOLVE_PHASES));
  outcomes_report(&result);
  TRY(comm_agree(&run->comm, finite_check(o, &result)));
  TRY(comm_agree(&run->comm, result_close(run, &file, &task, &result)));
  log_info("wrote   %s", place.file);
  gidx count = shape->count, bad = failed(&result);
  systems_close(&systems);
  int status = OK;
  if (o->strict && bad > 0)
    status = status_fail(ERR_DIFFER, __FILE__, __LINE__, "%lld of %lld systems failed",
                         (long long)bad, (long long)count);
  return comm_agree(&run->comm, status);
}

const struct command command_solve = {"solve",    "arrow systems -> steps, log-determinants",
                                      &solve_set, sizeof(struct solve_options),
                                      1,          solve_command};
