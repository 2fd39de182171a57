/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta top: supports -> the strongest rows of every atom. */
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "job/summary.h"
#include "io/supports_input.h"
#include "io/top.h"
#include "look/top.h"

struct top_options {
  struct general_options general;
  struct output_options output;
  const char *supports;
  idx rows;
};
#define AT(member) offsetof(struct top_options, member)

static const struct option_row input_rows[] = {
    {"supports", OPTION_TEXT, AT(supports), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "supports with codes, a CSR matrix as encode, scipy or AnnData write it (default path: "
     "/supports)",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
};

static const struct option_row list_rows[] = {
    {"rows", OPTION_INT, AT(rows), "10", 1, MAX_TOP_ROWS, NULL, "COUNT",
     "number of rows to write "
     "for each atom",
     .effect = OPTION_BITS},
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Lists", list_rows, LENGTH(list_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set top_set = {
    .command = "sagitta top",
    .arguments = "[DECK]",
    .doc = "Write the strongest rows of every atom: those with its largest codes."
           "\v"
           "Rows with a larger |code| come first; of rows with equal |code|, the lower row "
           "number.  Codes of 0 do not count.  Memory grows with the number of atoms, not of "
           "rows.  The result is top.h5.  If rows are in the order of the text, the row numbers "
           "say where in the text an atom fires.\n\n"
           "  sagitta top --supports run/ --output run/top.h5\n"
           "  mpirun -n 4 sagitta top --supports run/ --rows 100 --output run/top.h5",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct top_job {
  struct supports_input in;
  struct top_result result;
  struct output_path place;
};

static int input_open(struct top_job *j, const struct top_options *o)
{
  CHECK(o->supports, ERR_USAGE, "'--supports' is missing: make them with `sagitta encode`");
  return supports_input_open(&j->in, o->supports);
}

static int entries_json(const struct top_job *j)
{
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "rows", j->in.source.n);
  json_long(own, "atoms", j->in.source.k);
  json_long(own, "entries", j->result.entries);
  json_long(own, "dead", j->result.dead);
  json_long(own, "lists", j->result.top.r);
  json_hash(own, "fingerprint", j->result.fingerprint);
  return OK;
}

static int result_write(const struct run *run, const struct top_job *j)
{
  struct run_fact facts[MAX_FACTS];
  const struct top_result *r = &j->result;
  if (run->comm.rank) return OK;
  TRY(entries_json(j));
  summary_inputs_set(&r->inputs);
  return top_write(j->place.file, &r->top, j->in.source.n, &r->inputs, facts,
                   run_facts(run, "cpu", 1, facts));
}

static int job_run(struct top_job *j, struct run *run, const struct top_options *o)
{
  struct comm *c = &run->comm;
  const struct support_source *s = &j->in.source;
  TRY(inputs_agree(c, input_open(j, o)));
  TRY(run_begin(run, &o->output, "top.h5", &(const struct run_inputs){.name = {j->in.file}},
                &j->place));
  double begun = log_seconds();
  TRY(top_find(c, s, o->rows, &j->result));
  log_info("top     rows=%lld atoms=%d entries=%lld dead=%lld lists=%d ranks=%d seconds=%.2f "
           "fingerprint=%016llx",
           (long long)s->n, s->k, (long long)j->result.entries, (long long)j->result.dead, o->rows,
           c->size, log_seconds() - begun, (unsigned long long)j->result.fingerprint);
  TRY(inputs_confirm(c));
  TRY(comm_agree(c, result_write(run, j)));
  log_info("wrote   %s", j->place.shown);
  return OK;
}

static int top_command(struct run *run, const void *options, const char **arguments)
{
  struct top_job *j;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  TRY(job_run(j, run, options));
  top_free(&j->result);
  supports_input_close(&j->in);
  free(j);
  return OK;
}

const struct command command_top = {"top",    "supports -> the strongest rows of every atom",
                                    &top_set, sizeof(struct top_options),
                                    1,        top_command};
