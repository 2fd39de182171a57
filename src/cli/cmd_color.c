/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta color: supports -> classes.h5. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "job/summary.h"
#include "job/threads.h"
#include "io/classes.h"
#include "io/supports_input.h"
#include "refit/color.h"

struct color_options {
  struct general_options general;
  struct output_options output;
  const char *supports;
  idx threads;
};
#define AT(member) offsetof(struct color_options, member)

static const struct option_row input_rows[] = {
    {"supports", OPTION_TEXT, AT(supports), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "supports, a CSR matrix as encode, scipy or AnnData write it (default path: /supports)",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
};

static const struct option_row speed_rows[] = {
    THREADS_OPTION(AT(threads)),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed; no bit of the result changes", speed_rows, LENGTH(speed_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set color_set = {
    .command = "sagitta color",
    .arguments = "[DECK]",
    .doc = "Sort the atoms into classes: no row has two atoms of a class, so the atoms of a class "
           "can be refitted side by side."
           "\v"
           "Atoms are sorted by the number of their rows, the largest first.  Each gets the first "
           "class in which no atom shares a row with it.  Atoms in no row are dead and get no "
           "class.  The result is classes.h5.\n\n"
           "  mpirun -n 2 sagitta color --supports run/supports.h5 --output run/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job, on the heap, since threads may use it after a failure (job/run.h). */
struct color_job {
  struct supports_input in;
  struct color_result result;
};

static void report_print(const struct class_report *r)
{
  log_info("%-22s %lld", "classes", (long long)r->classes);
  log_info("%-22s %lld (the most atoms in a row)", "classes needed at least",
           (long long)r->longest_row);
  log_info("%-22s %lld", "dead_atoms", (long long)r->dead);
  if (r->classes == 0) return;
  color_log(r);
  for (int bin = 0; bin < LENGTH(r->histogram); bin++) {
    char name[64];
    long long low = 1ll << bin, high = (2ll << bin) - 1;
    if (r->histogram[bin] == 0) continue;
    snprintf(name, sizeof name, low == high ? "  %lld" : "  %lld to %lld", low, high);
    log_info("%-22s %lld classes, %lld atoms", name, (long long)r->histogram[bin],
             (long long)r->atoms[bin]);
  }
}

static int entries_json(const struct support_source *s, const struct color_result *result)
{
  const struct class_report *r = &result->report;
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "rows", s->n);
  json_long(own, "atoms", s->k);
  json_long(own, "entries", s->entries);
  json_long(own, "classes", r->classes);
  json_long(own, "longest_row", r->longest_row);
  json_long(own, "dead_atoms", r->dead);
  json_array(own, "sizes");
  for (int bin = 0; bin < LENGTH(r->histogram); bin++) {
    if (r->histogram[bin] == 0) continue;
    json_object(own, NULL);
    json_long(own, "least", (gidx)1 << bin);
    json_long(own, "largest", ((gidx)2 << bin) - 1);
    json_long(own, "classes", r->histogram[bin]);
    json_long(own, "atoms", r->atoms[bin]);
    json_end(own);
  }
  json_end(own);
  json_hash(own, "fingerprint", result->fingerprint);
  return OK;
}

static int result_write(const struct run *run, const char *path, const struct color_job *j,
                        int threads)
{
  const struct color_result *result = &j->result;
  struct run_fact facts[MAX_FACTS];
  if (run->comm.rank) return OK;
  TRY(entries_json(&j->in.source, result));
  summary_inputs_set(&result->inputs);
  return classes_write(path, &result->classes, result->report.longest_row, &result->inputs, facts,
                       run_facts(run, "cpu", threads, facts));
}

static int input_open(struct supports_input *in, const struct color_options *o)
{
  CHECK(o->supports, ERR_USAGE, "'--supports' is missing: make them with `sagitta encode`");
  return supports_input_open(in, o->supports);
}

static int job_run(struct color_job *j, struct run *run, const struct color_options *o)
{
  struct comm *c = &run->comm;
  struct output_path place;
  const struct support_source *source = &j->in.source;
  TRY(inputs_agree(c, input_open(&j->in, o)));
  TRY(run_begin(run, &o->output, "classes.h5", &(const struct run_inputs){.name = {j->in.file}},
                &place));
  TRY(threads_report(run, o->threads));
  int threads = threads_default(run, o->threads);
  TRY(color_supports(c, source, threads, &j->result));
  log_info("color   rows=%lld atoms=%d entries=%lld ranks=%d read=%.2f seconds=%.2f "
           "fingerprint=%016llx",
           (long long)source->n, source->k, (long long)source->entries, c->size,
           j->result.read_seconds, j->result.color_seconds,
           (unsigned long long)j->result.fingerprint);
  if (c->rank == 0) report_print(&j->result.report);
  TRY(inputs_confirm(c));
  TRY(comm_agree(c, result_write(run, place.file, j, threads)));
  log_info("wrote   %s", place.shown);
  return OK;
}

static int color_command(struct run *run, const void *options, const char **arguments)
{
  struct color_job *j;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  TRY(job_run(j, run, options));
  color_free(&j->result);
  supports_input_close(&j->in);
  free(j);
  return OK;
}

const struct command command_color = {"color",    "supports -> classes of atoms that share no row",
                                      &color_set, sizeof(struct color_options),
                                      1,          color_command};
