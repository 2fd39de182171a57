/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta attribute: supports, their dictionary and a capture -> the positions and heads that each
 * score comes from. */
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "io/input_agreement.h"
#include "cli/captured.h"
#include "cli/command.h"
#include "job/summary.h"
#include "job/threads.h"
#include "harvest/attribute.h"
#include "io/attribution.h"
#include "io/capture.h"
#include "io/dictionary.h"
#include "io/supports_input.h"

struct attribute_options {
  struct general_options general;
  struct output_options output;
  const char *supports, *dictionary, *capture, *cpu_variant, *device, *kernels;
  int normalize;
  idx top, block, threads;
};
#define AT(member) offsetof(struct attribute_options, member)

static const struct option_row input_rows[] = {
    {"supports", OPTION_TEXT, AT(supports), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "supports of `sagitta encode` or `route` (default path: /supports)", .effect = OPTION_BITS,
     .flags = OPTION_INPUT},
    {"dictionary", OPTION_TEXT, AT(dictionary), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "the dictionary (K, P) that the rows were encoded with (default path: /atoms)",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"capture", OPTION_TEXT, AT(capture), NULL, 0, 0, NULL, "FILE",
     "the capture whose rows were encoded: queries, keys and values of attention",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"normalize", OPTION_FLAG, AT(normalize), "no", 0, 1, NULL, NULL,
     "first scale the atoms to unit norm, as `encode --normalize` did", .effect = OPTION_BITS},
};

static const struct option_row list_rows[] = {
    {"top", OPTION_INT, AT(top), "10", 1, MAX_TOP_ROWS, NULL, "COUNT",
     "number of contributions to keep for each row and atom", .effect = OPTION_BITS},
};

static const struct option_row speed_rows[] = {
    BLOCK_OPTION(AT(block)),
    THREADS_OPTION(AT(threads)),
    DEVICE_OPTION(AT(device)),
    KERNELS_OPTION(AT(kernels)),
    CPU_VARIANT_OPTION(AT(cpu_variant), "instruction set of CPU loops"),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Lists", list_rows, LENGTH(list_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed; no bit of the result changes", speed_rows, LENGTH(speed_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set attribute_set = {
    .command = "sagitta attribute",
    .arguments = "[DECK]",
    .doc =
        "Say where the score of each routed atom comes from: the positions and heads of attention "
        "that contribute most to it."
        "\v"
        "A row is the result of a query, all heads side by side.  Its score with an atom is a "
        "sum: each head, at each position that the query sees, contributes its attention weight "
        "times the inner product of the value there with the atom's columns of that head.  For "
        "every row and every atom of its support, the contributions with the largest absolute "
        "values are written, and the sum of all contributions.\n\n"
        "The contributions explain the score of the row without centring.  The score by which the "
        "first round chose an atom is that of the row less the mean: the sum of contributions, "
        "less the inner product of mean and atom, which is written too.  Later rounds chose atoms "
        "by their scores with the residual; their sums still explain the score of the row "
        "itself.  As a check, each sum is compared with the routed score for an atom of the first "
        "round, and otherwise with the score of the row itself.\n\n"
        "A GPU takes heads of up to 256 columns.  It holds the atoms, and all keys and values of "
        "the capture, or some of the keys and values at a time if it has no room for all.\n\n"
        "  mpirun -n 4 sagitta attribute --supports run/ --dictionary run/ \\\n"
        "      --capture capture.h5 --top 10 --output run/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job, on the heap, since threads may use it after a failure (job/run.h). */
struct attribute_job {
  struct supports_input supports;
  struct dictionary_input dictionary;
  struct capture_input capture;
  struct device device;
  struct output_path place;
  struct attribution_output file; /* rank 0 */
  struct attribute_sink sink;
  struct attribute_task task;
  struct attribute_result result;
  double seconds;
};

static int options_check(const struct attribute_options *o)
{
  CHECK(o->supports, ERR_USAGE, "'--supports' is missing: make them with `sagitta encode`");
  CHECK(o->dictionary, ERR_USAGE,
        "'--dictionary' is missing: give the one that the rows were encoded with");
  CHECK(o->capture, ERR_USAGE,
        "'--capture' is missing: give the file with the queries, keys and values whose rows were "
        "encoded");
  return OK;
}

/* Refuse supports that an encoder gave, whose scores come from its own weights.  Refuse a
 * dictionary with another number of columns than the mean. */
static int scores_check(const struct attribute_job *j)
{
  const struct supports_input *s = &j->supports;
  CHECK(!s->encoder, ERR_INPUT,
        "'%s' has codes of an imported %s encoder, whose scores come from its own weights: encode "
        "the rows with `sagitta encode --dictionary`, and explain those supports",
        s->file, s->encoder);
  CHECK(!s->mean || s->mean_length == j->dictionary.source.p, ERR_INPUT,
        "the mean of '%s' has %lld numbers, the atoms of '%s' have %d: give the dictionary that "
        "the rows were encoded with",
        s->file, (long long)s->mean_length, j->dictionary.source.name, j->dictionary.source.p);
  return OK;
}

static int inputs_open(struct attribute_job *j, const struct attribute_options *o)
{
  TRY(options_check(o));
  TRY(supports_input_open(&j->supports, o->supports));
  TRY(dictionary_input_open(&j->dictionary, o->dictionary));
  TRY(capture_input_open(&j->capture, o->capture));
  return scores_check(j);
}

/* Returns for how many atoms of a row the sum of contributions can be compared with the routed
 * score: the atoms of the first round.  0 if another program wrote the file, the atoms were
 * refitted since, or there are no scores. */
static idx compared_count(const struct supports_input *s)
{
  if (s->top_s < 0 || s->sweeps > 0 || !supports_have_scores(s)) return 0;
  return (idx)imax(s->top_s / s->rounds, 1);
}

static int block_write(void *self, const struct attributed_block *b)
{
  struct attribute_job *j = self;
  return attribution_output_write(&j->file, b->rows, b->sequence, b->sum, b->top);
}

static struct attribute_task task_make(const struct run *run, struct attribute_job *j,
                                       const struct attribute_options *o)
{
  j->sink = (struct attribute_sink){j, block_write};
  return (struct attribute_task){.capture = &j->capture.source,
                                 .supports = &j->supports.source,
                                 .atoms = &j->dictionary.source,
                                 .mean = j->supports.mean,
                                 .inputs = j->supports.inputs,
                                 .compared = compared_count(&j->supports),
                                 .nonnegative = j->supports.nonnegative,
                                 .normalize = o->normalize,
                                 .top = o->top,
                                 .threads = threads_default(run, o->threads),
                                 .device = &j->device,
                                 .sink = &j->sink,
                                 .block = o->block};
}

static int device_start(const struct run *run, struct attribute_job *j,
                        const struct attribute_options *o)
{
  const struct device_options options = {.p = 1,
                                         .d = 1,
                                         .threads = j->task.threads,
                                         .variant = o->cpu_variant,
                                         .kind = o->device,
                                         .kernels = o->kernels,
                                         .work = attribute_work(&j->task),
                                         .local_rank = run->comm.local_rank};
  TRY(device_check_fma());
  TRY(device_check_subnormals(j->task.threads));
  return captured_device_open(&j->device, &j->capture.source,
                              attribute_queries(&j->task, run->comm.size),
                              attribute_bytes(&j->task, run->comm.size), &options);
}

static int result_open(const struct run *run, struct attribute_job *j, idx top)
{
  const struct capture_source *c = &j->capture.source;
  struct attribution_shape shape = {.n = c->n,
                                    .pairs = j->supports.source.entries,
                                    .heads = c->attention.heads,
                                    .k = j->supports.source.k,
                                    .top = top};
  if (run->comm.rank) return OK;
  for (gidx i = 0; i < c->sequences; i++) shape.longest = imax(shape.longest, c->length[i]);
  return attribution_output_create(&j->file, j->place.file, &shape);
}

static int entries_json(const struct attribute_job *j)
{
  const struct attribute_result *r = &j->result;
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "rows", j->capture.source.n);
  json_long(own, "atoms", j->supports.source.k);
  json_long(own, "heads", j->capture.source.attention.heads);
  json_long(own, "pairs", r->pairs);
  json_long(own, "kept", r->kept);
  json_long(own, "compared", r->compared);
  json_long(own, "beyond", r->beyond);
  json_real(own, "error", r->error);
  json_hash(own, "fingerprint", r->fingerprint);
  return OK;
}

static int result_finish(const struct run *run, struct attribute_job *j)
{
  struct run_fact facts[MAX_FACTS];
  char device[160];
  const struct attribute_result *r = &j->result;
  if (run->comm.rank) return OK;
  captured_device_name(&j->device, device, sizeof device);
  const struct attribution_ending ending = {.mean = r->mean,
                                            .error = r->error,
                                            .compared = r->compared,
                                            .beyond = r->beyond,
                                            .inputs = r->inputs};
  TRY(entries_json(j));
  summary_inputs_set(&r->inputs);
  return attribution_output_finish(&j->file, &ending, facts,
                                   run_facts(run, device, j->task.threads, facts));
}

static void result_log(const struct run *run, const struct attribute_job *j)
{
  const struct attribute_result *r = &j->result;
  log_info("attribute rows=%lld pairs=%lld kept=%lld compared=%lld beyond=%lld error=%.2g ranks=%d "
           "device=%s seconds=%.2f fingerprint=%016llx",
           (long long)j->capture.source.n, (long long)r->pairs, (long long)r->kept,
           (long long)r->compared, (long long)r->beyond, r->error, run->comm.size, j->device.kind,
           j->seconds, (unsigned long long)r->fingerprint);
  if (!r->compared && r->pairs)
    log_warn("no sum was compared with a routed score: '%s' has no scores of the first round of "
             "routing%s",
             j->supports.file,
             j->supports.sweeps > 0 ? ", because its atoms were refitted since" : "");
}

static int lists_compute(struct run *run, struct attribute_job *j)
{
  double begun = log_seconds();
  TRY(attribute_run(&run->comm, &j->task, &j->result));
  j->seconds = log_seconds() - begun;
  result_log(run, j);
  return captured_report(&run->comm, &j->capture);
}

static int job_run(struct attribute_job *j, struct run *run, const struct attribute_options *o)
{
  struct comm *c = &run->comm;
  TRY(inputs_agree(c, inputs_open(j, o)));
  const struct run_inputs inputs = {
      .name = {j->supports.file, j->dictionary.file, j->capture.path}};
  TRY(run_begin(run, &o->output, "attribution.h5", &inputs, &j->place));
  TRY(threads_report(run, o->threads));
  j->task = task_make(run, j, o);
  TRY(comm_agree(c, device_start(run, j, o)));
  TRY(comm_agree(c, result_open(run, j, o->top)));
  TRY(lists_compute(run, j));
  TRY(inputs_confirm(c));
  TRY(comm_agree(c, result_finish(run, j)));
  log_info("wrote   %s", j->place.shown);
  return OK;
}

static int attribute_command(struct run *run, const void *options, const char **arguments)
{
  struct attribute_job *j;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  TRY(job_run(j, run, options));
  attribution_output_close(&j->file);
  attribute_free(&j->result);
  device_close(&j->device);
  capture_input_close(&j->capture);
  dictionary_input_close(&j->dictionary);
  supports_input_close(&j->supports);
  free(j);
  return OK;
}

const struct command command_attribute = {"attribute",
                                          "routed scores -> the positions and heads they come from",
                                          &attribute_set,
                                          sizeof(struct attribute_options),
                                          1,
                                          attribute_command};
