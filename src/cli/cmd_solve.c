/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta solve: systems.h5 -> solutions.h5. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/stop.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "cli/report.h"
#include "job/checkpoint.h"
#include "job/summary.h"
#include "results/systems_output.h"
#include "job/threads.h"
#include "io/inputs.h"
#include "io/systems.h"
#include "solve/solve.h"

struct solve_options {
  struct general_options general;
  struct output_options output;
  const char *systems, *cpu_variant, *device, *kernels, *rates;
  real ridge_t, ridge_b, max_seconds;
  gidx batch;
  idx threads;
  int escalate, strict, resume, dry_run;
};
#define AT(member) offsetof(struct solve_options, member)

static const struct option_row input_rows[] = {
    {"systems", OPTION_TEXT, AT(systems), NULL, 0, 0, NULL, "FILE",
     "file of arrow systems (doc/formats.md) from `sagitta assemble`, `sagitta synth --systems` "
     "or another program",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"ridge-t", OPTION_REAL, AT(ridge_t), "0", 0, 1e300, NULL, "RIDGE",
     "number added to the diagonal of every row block", .effect = OPTION_BITS},
    {"ridge-b", OPTION_REAL, AT(ridge_b), "0", 0, 1e300, NULL, "RIDGE",
     "number added to the diagonal of every border", .effect = OPTION_BITS},
    {"escalate", OPTION_FLAG, AT(escalate), "no", 0, 1, NULL, NULL,
     "if a system fails, try it again with larger ridges, ten times larger each time, at most 22 "
     "times",
     .effect = OPTION_BITS},
    {"strict", OPTION_FLAG, AT(strict), "no", 0, 1, NULL, NULL,
     "exit with 1 if a system failed; exit with 65, without a result, if a system is not finite",
     .effect = OPTION_RUN},
};

static const struct option_row end_rows[] = {
    RESUME_OPTION(AT(resume)),
    MAX_SECONDS_OPTION(AT(max_seconds), "a batch"),
};

static const struct option_row speed_rows[] = {
    {"batch", OPTION_LONG, AT(batch), "0", 0, 0x1p40, NULL, "ROWS",
     "number of rows that are in memory at a time, at least those of one system; 0: chosen for "
     "speed",
     .effect = OPTION_RUN},
    THREADS_OPTION(AT(threads)),
    CPU_VARIANT_OPTION(AT(cpu_variant), "instruction set; baseline takes the loops of avx2"),
    DEVICE_OPTION(AT(device)),
    KERNELS_OPTION(AT(kernels)),
    {"dry-run", OPTION_FLAG, AT(dry_run), "no", 0, 1, NULL, NULL,
     "print the memory and disk that the whole job needs, then end; neither --output nor an "
     "earlier run there is looked at",
     .effect = OPTION_RUN},
    RATES_OPTION(AT(rates)),
};

static const struct option_table tables[] = {
    {"Systems", input_rows, LENGTH(input_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"When it ends", end_rows, LENGTH(end_rows), 0},
    {"Speed and memory; no bit of the result changes", speed_rows, LENGTH(speed_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set solve_set = {
    .command = "sagitta solve",
    .arguments = "[DECK]",
    .doc =
        "Solve arrow systems: find the steps of rows and border, and the log-determinant, of each."
        "\v"
        "The result, solutions.h5, holds for each system its steps, its log-determinant, and its "
        "status.  A system that is not positive definite fails alone: the result has the place of "
        "the failure, and suggests a bump, a number which, added to the diagonal, would mend the "
        "system.  The bytes of a system depend neither on the number of ranks, batches or "
        "threads, nor on the device, nor on the other systems of the file.\n\n"
        "--max-seconds stops a job after a given time.  To stop a running job, create a file STOP "
        "beside the result, " STOP_SIGNALS
        "A stopped job ends with exit code 75 after the current batch.  Its result has the first "
        "systems, and --resume computes the others.\n\n"
        "  mpirun -n 4 sagitta solve --systems run/systems.h5 --escalate --output run/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct solve_state {
  const struct run *run; /* borrowed */
  char path[MAX_NAME];   /* of the systems */
  struct systems_input systems;
  struct solve_task task;
  struct solve_output out;
  struct solve_result result;
};

static int systems_ready(struct solve_state *job, const struct solve_options *o)
{
  CHECK(o->systems, ERR_USAGE, "'--systems' is missing: give the file with the arrow systems");
  TRY(report_rates_check(o->rates, o->dry_run));
  if (!o->dry_run) TRY(output_check_given(o->output.output));
  TRY(input_of_folder(o->systems, "systems.h5", job->path));
  return systems_input_open(&job->systems, job->path);
}

static void task_fill(const struct run *run, const struct solve_options *o, struct solve_state *job)
{
  const struct systems_input *f = &job->systems;
  job->task = (struct solve_task){.systems = &f->source,
                                  .sink = &job->out.file.sink,
                                  .options = {o->ridge_t, o->ridge_b, o->escalate},
                                  .batch = o->batch ? o->batch
                                                    : solve_batch_rows(&f->shape, run->comm.size),
                                  .threads = threads_default(run, o->threads),
                                  .variant = o->cpu_variant,
                                  .device = o->device,
                                  .kernels = o->kernels};
}

/* Add the times.  A rate is of all ranks together: all ranks read and solve, but rank 0 alone
 * writes and checks. */
static void times_find(const struct run *run, const struct systems_shape *s, const struct rates *r,
                       struct times *t)
{
  double ranks = run->comm.size, count = (double)imax(s->count, 1), d = 0, rows;
  double read = 8 * (double)systems_reals(s, 0, s->count);
  double written = 8 * (double)(s->g[s->count] + s->border[s->count]);
  for (gidx a = 0; a < s->count; a++) d += s->d[a] / count;
  rows = fmax((double)s->row[s->count] / count, 1);
  times_add(t, "solve", (read + written) / rate_at(r, RATE_SOLVE, fmax(d, 1), rows, 1));
  times_beside(t, "read", read / rate_at(r, RATE_READ, 1, 1, 1));
  times_beside(t, "write", ranks * written / rate_at(r, RATE_WRITE, 1, 1, 1));
  times_add(t, "check", ranks * written / rate_at(r, RATE_CHECK, 1, 1, 1));
}

static int plan_json(const struct run *run, const struct systems_shape *s,
                     const struct solve_result *plan, const struct plan_rates *rates,
                     const struct times *times)
{
  struct json j;
  TRY(facts_begin(run, &j));
  json_long(&j, "systems", s->count);
  json_long(&j, "rows", s->row[s->count]);
  json_long(&j, "numbers", systems_reals(s, 0, s->count));
  json_long(&j, "batches", plan->batches);
  json_real(&j, "multiply_adds", solve_work(s));
  json_long(&j, "memory_bytes", plan->memory);
  json_long(&j, "gpu_bytes", plan->gpu);
  json_long(&j, "present_bytes", memory_per_process(run->comm.local_size));
  json_long(&j, "disk_bytes", solutions_bytes(s));
  TRY(report_times_json(rates, times, &j));
  return facts_end(&j);
}

/* Print the lines or the object of --dry-run.  Other ranks than 0 return at once. */
static int plan_print(const struct run *run, const struct solve_task *t)
{
  const struct systems_shape *s = t->systems->shape;
  const struct solve_options *o = run->options;
  struct solve_result plan;
  struct plan_rates rates;
  struct times times;
  if (run->comm.rank) return OK;
  TRY(report_rates_read(run, o->rates, t->threads, t->device, &rates, &times));
  if (rates.path) times_find(run, s, &rates.rates, &times);
  TRY(solve_plan(t, run->comm.size, &plan));
  if (run->wants_json) return plan_json(run, s, &plan, &rates, &times);
  printf("systems  %lld of %lld rows, %.3g numbers in %lld batches\n", (long long)s->count,
         (long long)s->row[s->count], (double)systems_reals(s, 0, s->count),
         (long long)plan.batches);
  printf("work     %.3g multiply-adds\n", solve_work(s));
  printf("memory   %.1f MB a rank\n", 1e-6 * (double)plan.memory);
  if (plan.gpu > 0) printf("GPU      %.1f MB a rank, if a GPU is there\n", 1e-6 * (double)plan.gpu);
  printf("present  %.1f MB a rank\n", 1e-6 * (double)memory_per_process(run->comm.local_size));
  printf("disk     %.1f MB\n", 1e-6 * (double)solutions_bytes(s));
  return report_times(&rates, &times);
}

/* Number of systems without a solution. */
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
               (long long)r->first_offset[status]);
  }
  if (r->retries > 0)
    log_info("%-28s %lld tries, %lld systems mended", "escalated", (long long)r->retries,
             (long long)r->mended);
}

/* Warn about systems whose steps and log-determinants have few correct digits because of
 * cancellation, although they have the bits of (N.7) to (N.13). */
static void loss_report(const struct solve_result *r)
{
  if (r->most_lost > 0)
    log_info("%-28s %lld of 53 by cancellation, system %lld", "bits lost at most",
             (long long)r->most_lost, (long long)r->most_lost_at);
  if (r->few > 0)
    log_warn("cancellation takes more than %d of 53 bits of %lld of the systems, %lld of system "
             "%lld: their steps have only the other bits (lost_bits); larger ridges leave more",
             FEW_LOST, (long long)r->few, (long long)r->most_lost, (long long)r->most_lost_at);
}

static int finite_check(const struct solve_options *o, const struct solve_result *r)
{
  CHECK(!o->strict || r->counts[ARROW_NOT_FINITE] == 0, ERR_INPUT,
        "system %lld of '%s' is not finite at entry %lld of its blocks, gradients and border",
        (long long)r->first[ARROW_NOT_FINITE], o->systems,
        (long long)r->first_offset[ARROW_NOT_FINITE]);
  return OK;
}

static int entries_json(const struct solve_state *job)
{
  const struct systems_shape *s = &job->systems.shape;
  const struct solve_result *r = &job->result;
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "systems", r->end);
  json_long(own, "rows", s->row[r->end]);
  json_long(own, "failed", failed(r));
  json_array(own, "outcomes");
  for (int status = 0; status < ARROW_STATUSES; status++) {
    if (status != ARROW_OK && r->counts[status] == 0) continue;
    json_object(own, NULL);
    json_text(own, "outcome", arrow_status_name(status));
    json_long(own, "systems", r->counts[status]);
    if (status != ARROW_OK) json_long(own, "first", r->first[status]);
    if (status != ARROW_OK) json_long(own, "place", r->first_offset[status]);
    json_end(own);
  }
  json_end(own);
  json_long(own, "retries", r->retries);
  json_long(own, "mended", r->mended);
  json_long(own, "few_digits", r->few);
  json_long(own, "most_lost_bits", r->most_lost);
  json_hash(own, "fingerprint", r->fingerprint);
  return OK;
}

/* Publish solutions.h5; called by job_finish() on rank 0. */
static int result_close(void *self)
{
  struct solve_state *job = self;
  const struct run *run = job->run;
  struct run_fact facts[MAX_FACTS];
  const struct device_counts *counts = &job->result.device_counts;
  char device[300];
  snprintf(device, sizeof device, "%s %s", job->result.device, job->result.variant);
  int n = run_facts(run, device, job->task.threads, facts);
  facts[n++] = (struct run_fact){"kernels", NULL, (double)counts->kernels};
  facts[n++] = (struct run_fact){"bytes_to_device", NULL, (double)counts->put};
  facts[n++] = (struct run_fact){"bytes_from_device", NULL, (double)counts->got};
  facts[n++] = (struct run_fact){"systems_declined", NULL, (double)counts->declined};
  facts[n++] = (struct run_fact){"systems_retried", NULL, (double)counts->retried};
  summary_inputs_set(&job->systems.inputs);
  TRY(entries_json(job));
  return solve_output_end(&job->out, &job->result, facts, n);
}

/* Claim the output path, and begin with what an earlier run has solved. */
static int result_open(struct run *run, const struct solve_options *o, struct solve_state *job)
{
  struct solve_output *f = &job->out;
  struct solve_task *t = &job->task;
  f->systems = &job->systems;
  f->options = &t->options;
  f->job = (struct job){.run = run, .output = o->output, .resume = o->resume};
  TRY(solve_output_open(f, job->path));
  if (f->job.is_complete) return OK;
  stop_listen();
  TRY(threads_report(run, o->threads));
  TRY(job_begin(&f->job));
  t->first = f->job.done;
  run->max_seconds = o->max_seconds;
  t->stops = job_stops(&f->job);
  return OK;
}

static int strict_check(const struct solve_options *o, const struct solve_state *job,
                        const struct solve_result *r)
{
  gidx bad = failed(r);
  CHECK(!o->strict || bad == 0, ERR_ANSWER, "%lld of %lld systems failed", (long long)bad,
        (long long)job->systems.shape.count);
  return OK;
}

/* An earlier run has completed the result.  --strict gives the errors that a new run would give. */
static int complete_end(struct run *run, const struct solve_options *o, struct solve_state *job)
{
  struct comm *c = &run->comm;
  const struct solve_result *counted = &job->out.counted; /* on rank 0 */
  TRY(job_complete(&job->out.job));
  TRY(comm_agree(c, c->rank ? OK : finite_check(o, counted)));
  return comm_agree(c, c->rank ? OK : strict_check(o, job, counted));
}

static void job_free(struct solve_state *job)
{
  systems_input_close(&job->systems);
  free(job);
}

static int solve_command(struct run *run, const void *options, const char **arguments)
{
  const struct solve_options *o = options;
  struct comm *c = &run->comm;
  struct solve_state *job;
  (void)arguments;
  TRY(comm_agree(c, struct_alloc(&job, sizeof *job)));
  job->run = run;
  TRY(inputs_agree(c, systems_ready(job, o)));
  task_fill(run, o, job);
  if (o->dry_run) {
    TRY(comm_agree(c, plan_print(run, &job->task)));
    job_free(job);
    return OK;
  }
  TRY(comm_agree(c, identity_text_begin(&run->identity, run->command->options, o)));
  TRY(result_open(run, o, job));
  if (job->out.job.is_complete) {
    TRY(complete_end(run, o, job));
    job_free(job);
    return OK;
  }
  double begun = log_seconds();
  TRY(solve_run(&job->task, c, &job->result));
  const struct systems_shape *shape = &job->systems.shape;
  struct solve_result *r = &job->result;
  solve_join(r, &job->out.counted);
  int gpu = strcmp(r->device, "cpu") != 0; /* solve_run() has logged the names of GPUs */
  log_info("solve   systems=%lld rows=%lld failed=%lld ranks=%d device=%s%s%s seconds=%.2f "
           "fingerprint=%016llx",
           (long long)r->end, (long long)shape->row[r->end], (long long)failed(r), c->size,
           r->device, gpu ? "" : "/", gpu ? "" : r->variant, log_seconds() - begun,
           (unsigned long long)r->fingerprint);
  TRY(report_phases(c, r->phases, SOLVE_PHASES));
  TRY(report_counts(c, &r->device_counts));
  outcomes_report(r);
  loss_report(r);
  TRY(comm_agree(c, finite_check(o, r)));
  TRY(job_finish(&job->out.job, result_close, job));
  log_info("wrote   %s", job->out.job.place.shown);
  if (!run->stopped) TRY(comm_agree(c, strict_check(o, job, r)));
  job_free(job);
  return OK;
}

const struct command command_solve = {"solve",    "arrow systems -> steps, log-determinants",
                                      &solve_set, sizeof(struct solve_options),
                                      1,          solve_command};
