/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta terminal: the final state of a fit -> terminal.h5. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/memory.h"
#include "base/status.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "cli/fit_inputs.h"
#include "cli/report.h"
#include "job/summary.h"
#include "job/threads.h"
#include "io/artifact_dump.h"
#include "io/input_file.h"
#include "io/terminal.h"
#include "model/directions.h"
#include "terminal/device.h"
#include "terminal/terminal.h"

struct terminal_options {
  struct general_options general;
  struct output_options output;
  struct fit_names names;
  struct fit_compute compute;
  const char *dump, *evidence, *spectrum, *device, *kernels;
  idx directions, cross, panel, workspace, memory;
  real weak, duplicate;
  int strict, dry_run;
};
#define AT(member) offsetof(struct terminal_options, member)

static const struct option_row direction_rows[] = {
    {"directions", OPTION_INT, AT(directions), "4", 1, MAX_DIRECTIONS, NULL, "COUNT",
     "number of directions in which an atom may move, as in refit", .effect = OPTION_BITS},
};

static const struct option_row report_rows[] = {
    {"evidence", OPTION_CHOICE, AT(evidence), "exact", 0, 0, "exact|slq", NULL,
     "exact: form and factor S; slq: estimate log|S| by stochastic Lanczos quadrature, without "
     "forming S",
     .effect = OPTION_BITS},
    {"cross", OPTION_INT, AT(cross), "100", 0, 1 << 20, NULL, "PAIRS",
     "number of covariance blocks between two atoms to keep, the strongest ones",
     .effect = OPTION_BITS},
    {"spectrum", OPTION_CHOICE, AT(spectrum), "full", 0, 0, "full|inertia|none", NULL,
     "what LAPACK computes of S. full: eigenvalues and weak directions; inertia: only the signs "
     "of the eigenvalues; none: nothing",
     .effect = OPTION_BITS},
    {"weak", OPTION_REAL, AT(weak), "1e-8", 0, 1, NULL, "PART",
     "a direction whose stiffness is at most this part of the largest is undetermined",
     .effect = OPTION_BITS},
    {"duplicate", OPTION_REAL, AT(duplicate), "0.99", 0, 1, NULL, "COSINE",
     "atoms with at least this cosine are near duplicates", .effect = OPTION_BITS},
    {"dump-artifact", OPTION_TEXT, AT(dump), NULL, 0, 0, NULL, "FILE",
     "write the bytes whose SHA-256 is artifact_sha256 to FILE, and the bytes of each atom to "
     "FILE.atoms",
     .effect = OPTION_RUN, .flags = OPTION_OUTPUT},
    {"strict", OPTION_FLAG, AT(strict), "no", 0, 1, NULL, NULL,
     "exit with 1 if S is not positive definite, or if the estimate did not converge",
     .effect = OPTION_RUN},
    {"dry-run", OPTION_FLAG, AT(dry_run), "no", 0, 1, NULL, NULL,
     "print the memory that the job needs, then end; --output is not looked at",
     .effect = OPTION_RUN},
};

static const struct option_row device_rows[] = {
    DEVICE_OPTION(AT(device)),
    KERNELS_OPTION(AT(kernels)),
};

static const struct option_row memory_rows[] = {
    {"panel", OPTION_INT, AT(panel), "256", DENSE_MIN_PANEL, DENSE_MAX_PANEL, NULL, "COLUMNS",
     "number of columns of S that a CPU factors at a time", .effect = OPTION_RUN},
    {"workspace", OPTION_INT, AT(workspace), "1024", 1, 1 << 24, NULL, "MIB",
     "memory for rows, packed panels and Lanczos vectors, in addition to S", .effect = OPTION_RUN},
    {"memory-limit", OPTION_INT, AT(memory), "0", 0, 1 << 24, NULL, "MIB",
     "memory that the ranks of a machine may use; 0: all that is free", .effect = OPTION_RUN},
};

static const struct option_table tables[] = {
    {"Input", fit_name_rows, FIT_NAME_ROWS - 1, AT(names)}, /* the last row is --classes */
    {"Model", direction_rows, LENGTH(direction_rows), 0},
    {"Report", report_rows, LENGTH(report_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed; no bit of the result changes", fit_compute_rows, FIT_COMPUTE_ROWS, AT(compute)},
    {"Device; no bit of the result changes", device_rows, LENGTH(device_rows), 0},
    {"Memory; no bit of the result changes", memory_rows, LENGTH(memory_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set terminal_set = {
    .command = "sagitta terminal",
    .arguments = "[DECK]",
    .doc = "Evaluate the final state of a fit once: the joint system of all codes and borders, "
           "its Schur complement S, 1/2 log|H|, covariance, what the data do not determine, and "
           "the hash that names the dictionary."
           "\v"
           "All ranks find directions; then rank 0 works alone, and the others wait without using "
           "a core.  A GPU assembles, factors and inverts S, which stays in its memory; a CPU "
           "computes the factors of the rows, and all of --evidence slq.  The result is "
           "terminal.h5, which `sagitta inspect` shows.\n\n"
           "  mpirun -n 4 sagitta terminal --rows acts.h5 --dictionary fit/dictionary.h5 \\\n"
           "      --supports fit/supports.h5 --output fit/\n"
           "  sagitta inspect fit/terminal.h5",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

static int inputs_open(struct fit_inputs *in, struct comm *c, const struct terminal_options *o)
{
  CHECK(o->output.output || o->dry_run, ERR_USAGE,
        "'--output' is missing: give a folder, or a file that ends in .h5");
  CHECK(strcmp(o->evidence, "slq") != 0 || strcmp(o->device, "cuda") != 0, ERR_USAGE,
        "'--evidence slq' computes on CPUs alone: leave '--device' out");
  return fit_inputs_open(in, c, &o->names);
}

static struct terminal_task task_of(const struct run *run, const struct terminal_options *o,
                                    const struct fit_inputs *in)
{
  gidx mib = 1 << 20;
  return (struct terminal_task){.rows = &in->rows.source,
                                .atoms = &in->dictionary.source,
                                .supports = &in->supports.source,
                                .mean = in->mean,
                                .nonnegative = in->supports.nonnegative,
                                .rho = in->supports.rho,
                                .named = in->supports.inputs,
                                .top_s = in->supports.top_s > 0 ? in->supports.top_s : 1,
                                .directions = o->directions,
                                .evidence =
                                    strcmp(o->evidence, "slq") == 0 ? EVIDENCE_SLQ : EVIDENCE_EXACT,
                                .spectrum = strcmp(o->spectrum, "none") == 0      ? SPECTRUM_NONE
                                            : strcmp(o->spectrum, "inertia") == 0 ? SPECTRUM_INERTIA
                                                                                  : SPECTRUM_FULL,
                                .cross = o->cross,
                                .weak = o->weak,
                                .duplicate = o->duplicate,
                                .panel = o->panel,
                                .threads = threads_default(run, o->compute.threads),
                                .workspace = o->workspace * mib,
                                .present = o->memory ? o->memory * mib : memory_available(),
                                .variant = o->compute.cpu_variant,
                                .device = o->device,
                                .kernels = o->kernels};
}

static int plan_json(const struct run *run, const struct terminal_task *t,
                     const struct terminal_memory *m)
{
  struct json j;
  TRY(facts_begin(run, &j));
  json_long(&j, "border", m->border);
  json_long(&j, "atoms", t->atoms->k);
  json_long(&j, "directions", t->directions);
  json_long(&j, "frame", t->atoms->d);
  json_long(&j, "ranks_here", m->ranks);
  json_long(&j, "directions_bytes", m->fit);
  json_object(&j, "root_bytes");
  json_long(&j, "inputs", m->inputs);
  json_long(&j, "duplicates", m->duplicates);
  json_long(&j, "schur", m->schur);
  json_long(&j, "lapack", m->lapack);
  json_long(&j, "workspace", m->workspace);
  json_long(&j, "workspace_least", m->min);
  json_long(&j, "results", m->results);
  json_end(&j);
  json_object(&j, "gpu_bytes"); /* of rank 0's GPU, 0 if it uses none */
  json_long(&j, "schur", m->gpu_schur);
  json_long(&j, "factor", m->gpu_factor);
  json_long(&j, "rows", m->gpu_rows);
  json_long(&j, "all", m->gpu);
  json_end(&j);
  json_long(&j, "memory_bytes", m->total);
  json_long(&j, "present_bytes", t->present);
  return facts_end(&j);
}

static int plan_print(const struct run *run, const struct terminal_task *t)
{
  struct terminal_memory m;
  struct device dev;
  struct comm c = run->comm;
  TRY(terminal_device_dry(&dev, t, &c));
  TRY(terminal_memory(t, &c, &dev, &m));
  if (c.rank) return OK;
  if (run->wants_json) return plan_json(run, t, &m);
  printf("border      up to %lld: %d atoms, %d directions, frames of %d\n", (long long)m.border,
         t->atoms->k, t->directions, t->atoms->d);
  printf("directions  %.1f MB on each of %d ranks of this machine\n", 1e-6 * (double)m.fit,
         m.ranks);
  printf("rank 0      inputs %.1f MB, near duplicates %.1f; then S %.1f, LAPACK %.1f, workspace "
         "%.1f of which %.1f are needed at least, results %.1f\n",
         1e-6 * (double)m.inputs, 1e-6 * (double)m.duplicates, 1e-6 * (double)m.schur,
         1e-6 * (double)m.lapack, 1e-6 * (double)m.workspace, 1e-6 * (double)m.min,
         1e-6 * (double)m.results);
  if (m.gpu > 0)
    printf("GPU         %.1f MB on the GPU of rank 0: S %.1f, factor %.1f, rows and panels %.1f\n",
           1e-6 * (double)m.gpu, 1e-6 * (double)m.gpu_schur, 1e-6 * (double)m.gpu_factor,
           1e-6 * (double)m.gpu_rows);
  printf("memory      %.1f MB at most, %.1f MB are present\n", 1e-6 * (double)m.total,
         1e-6 * (double)t->present);
  return OK;
}

static void evidence_report(const struct terminal_task *t, const struct terminal_result *r)
{
  log_info("%-22s %.10g", "half_log_det", r->half_log_det);
  log_info("%-22s %.10g of %lld codes", "log_det_rows", r->log_det_rows, (long long)r->codes);
  if (t->evidence == EVIDENCE_SLQ)
    log_info("%-22s %.10g +- %.3g, estimated in %d steps", "log_det_border", r->slq.estimate,
             r->slq.error, r->slq.steps);
  else
    log_info("%-22s %.10g of %d borders", "log_det_border", r->log_det_border, r->n_border);
  log_info("%-22s %.6g", "phi", r->phi);
  log_info("%-22s %s", "artifact_sha256", r->artifact.sha256);
}

static void findings_report(const struct terminal_result *r)
{
  const struct spectrum *s = &r->spectrum;
  if (s->has_inertia)
    log_info("%-22s %d positive, %d negative, %d zero", "inertia of S", s->inertia[0],
             s->inertia[1], s->inertia[2]);
  if (s->has_values) log_info("%-22s %d, condition %.3g", "undetermined", s->weak, s->condition);
  if (r->bad_pivot >= 0)
    log_warn("S is not positive definite: pivot %d of %d; no covariance, log det NaN", r->bad_pivot,
             r->n_border);
  if (r->duplicates > 0)
    log_warn("%lld pairs of atoms are near duplicates: %d and %d have cosine %.9g",
             (long long)r->duplicates, r->duplicate[0].first, r->duplicate[0].second,
             r->duplicate[0].cosine);
}

static void spectrum_json(const struct spectrum *s, struct json *own)
{
  json_array(own, "inertia"); /* numbers of positive, negative and zero eigenvalues */
  for (int i = 0; i < 3 && s->has_inertia; i++) json_long(own, NULL, s->inertia[i]);
  json_end(own);
  if (s->has_values)
    json_long(own, "undetermined", s->weak);
  else
    json_text(own, "undetermined", NULL);
  json_real(own, "condition", s->has_values ? s->condition : nan_canonical());
}

static int entries_json(const struct terminal_task *t, const struct terminal_result *r)
{
  int is_estimate = t->evidence == EVIDENCE_SLQ;
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "rows", t->rows->n);
  json_long(own, "atoms", t->atoms->k);
  json_long(own, "codes", r->codes);
  json_long(own, "border", r->n_border);
  json_real(own, "half_log_det", r->half_log_det);
  json_real(own, "log_det_rows", r->log_det_rows);
  json_real(own, "log_det_border", is_estimate ? r->slq.estimate : r->log_det_border);
  if (is_estimate) json_real(own, "standard_error", r->slq.error);
  json_real(own, "phi", r->phi);
  json_text(own, "artifact_sha256", r->artifact.sha256);
  spectrum_json(&r->spectrum, own);
  json_long(own, "bad_pivot", r->bad_pivot);
  json_long(own, "near_duplicates", r->duplicates);
  json_hash(own, "fingerprint", r->fingerprint);
  return OK;
}

static int result_write(const struct run *run, const char *path, const struct terminal_task *t,
                        const struct terminal_result *r, const struct terminal_ran *ran)
{
  struct run_fact facts[MAX_FACTS];
  char device[300];
  if (run->comm.rank) return OK;
  TRY(entries_json(t, r));
  snprintf(device, sizeof device, "%s %s", ran->device, ran->variant);
  int n = run_facts(run, device, t->threads, facts);
  facts[n++] = (struct run_fact){"kernels", NULL, (double)ran->counts.kernels};
  facts[n++] = (struct run_fact){"bytes_to_device", NULL, (double)ran->counts.put};
  facts[n++] = (struct run_fact){"bytes_from_device", NULL, (double)ran->counts.got};
  summary_inputs_set(&r->inputs);
  return terminal_write(path, r, t->rho, facts, n);
}

/* With --dump-artifact: rank 0 reads the atoms again, and writes the bytes that were hashed. */
static int dump_write(const struct run *run, const struct artifact_path *place,
                      const struct terminal_task *t, const struct terminal_result *r)
{
  const struct atom_source *a = t->atoms;
  struct arena arena = {0};
  float *atoms = NULL;
  if (run->comm.rank || !place->path[0][0]) return OK;
  TRY(arena_alloc(&arena, &atoms, (gidx)a->k * a->d * a->p, sizeof *atoms));
  TRY(a->read(a->self, 0, a->k, atoms));
  TRY(input_files_recheck());
  TRY(artifact_dump(place, &r->artifact, atoms, a->k, a->d, a->p));
  arena_free(&arena);
  return OK;
}

static int verdict(const struct run *run, const struct terminal_options *o,
                   const struct terminal_result *r)
{
  if (run->comm.rank || !o->strict) return OK;
  CHECK(r->bad_pivot < 0, ERR_ANSWER, "S is not positive definite: pivot %d of %d", r->bad_pivot,
        r->n_border);
  CHECK(!r->slq.is_there || r->slq.is_converged, ERR_ANSWER,
        "the estimate of log|S| did not converge in %d steps", r->slq.steps);
  return OK;
}

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct terminal_job {
  struct fit_inputs inputs;
  struct terminal_task task;
  struct terminal_result result;
  struct terminal_ran ran;
  struct phase phases[TERMINAL_PHASES];
  struct output_path place;
  struct artifact_path dump; /* empty paths: no dump */
};

static int result_report(struct terminal_job *j, struct comm *c, double seconds, gidx held)
{
  const struct terminal_result *r = &j->result;
  log_info("terminal rows=%lld atoms=%d border=%d ranks=%d threads=%d device=%s/%s seconds=%.2f "
           "fingerprint=%016llx",
           (long long)j->task.rows->n, j->task.atoms->k, r->n_border, c->size, j->task.threads,
           j->ran.device, j->ran.variant, seconds, (unsigned long long)r->fingerprint);
  TRY(report_phases(c, j->phases, TERMINAL_PHASES));
  TRY(report_counts(c, &j->ran.counts));
  log_info("%-22s %.1f MB, %.1f MB of them before the work", "peak_memory",
           1e-6 * (double)memory_peak(), 1e-6 * (double)held);
  if (c->rank) return OK;
  evidence_report(&j->task, r);
  findings_report(r);
  return OK;
}

static int paths_claim(struct terminal_job *j, const struct run *run,
                       const struct terminal_options *o)
{
  int force = o->output.force;
  if (run->comm.rank) return OK;
  TRY(output_path(&j->place, o->output.output, "terminal.h5", force));
  return o->dump ? artifact_dump_claim(&j->dump, o->dump, force) : OK;
}

static int job_run(struct terminal_job *j, struct run *run, const struct terminal_options *o)
{
  struct comm *c = &run->comm;
  TRY(inputs_agree(c, inputs_open(&j->inputs, c, o)));
  j->task = task_of(run, o, &j->inputs);
  if (o->dry_run) return comm_agree(c, plan_print(run, &j->task));
  TRY(comm_agree(c, paths_claim(j, run, o)));
  const struct run_inputs inputs = fit_inputs_files(&j->inputs);
  TRY(run_begin_at(run, &j->place, &inputs, 0));
  TRY(threads_report(run, o->compute.threads));
  double begun = log_seconds();
  gidx held = memory_peak();
  TRY(terminal_run(&j->task, c, &j->result, j->phases, &j->ran));
  TRY(result_report(j, c, log_seconds() - begun, held));
  TRY(inputs_confirm(c));
  TRY(comm_agree(c, dump_write(run, &j->dump, &j->task, &j->result))); /* reads inputs: first */
  TRY(comm_agree(c, result_write(run, j->place.file, &j->task, &j->result, &j->ran)));
  log_info("wrote   %s", j->place.shown);
  return comm_agree(c, verdict(run, o, &j->result));
}

static int terminal_command(struct run *run, const void *options, const char **arguments)
{
  struct terminal_job *j;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  TRY(job_run(j, run, options));
  terminal_result_free(&j->result);
  fit_inputs_close(&j->inputs);
  free(j);
  return OK;
}

const struct command command_terminal = {
    "terminal",
    "final state -> 1/2 log|H|, covariance, identifiability, hash",
    &terminal_set,
    sizeof(struct terminal_options),
    1,
    terminal_command};
