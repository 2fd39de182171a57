/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta harvest: captured queries, keys and values -> rows.h5. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "job/agreement.h"
#include "cli/captured.h"
#include "cli/command.h"
#include "job/summary.h"
#include "job/threads.h"
#include "harvest/harvest.h"
#include "io/capture.h"
#include "io/rows.h"

struct harvest_options {
  struct general_options general;
  struct output_options output;
  const char *capture, *cpu_variant, *device, *kernels, *cut;
  idx block, threads;
};
#define AT(member) offsetof(struct harvest_options, member)

static const struct option_row input_rows[] = {
    {"capture", OPTION_TEXT, AT(capture), NULL, 0, 0, NULL, "FILE",
     "HDF5 file with /q (N, H, D) and /k, /v (positions, heads, D), or a paged pool /kv, in "
     "float16, bfloat16 or float32",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
};

static const struct option_row speed_rows[] = {
    BLOCK_OPTION(AT(block)),
    {"cut", OPTION_CHOICE, AT(cut), "auto", 0, 0, "auto|queries|positions", NULL,
     "what the ranks share out; positions, in shards of 1,024, is for few queries over long "
     "sequences; auto takes it where a rank would have fewer than 64 queries and can have two "
     "shards",
     .effect = OPTION_RUN},
    THREADS_OPTION(AT(threads)),
    DEVICE_OPTION(AT(device)),
    KERNELS_OPTION(AT(kernels)),
    CPU_VARIANT_OPTION(AT(cpu_variant), "instruction set of the CPU's loops"),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed, never a bit of the result", speed_rows, LENGTH(speed_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set harvest_set = {
    .command = "sagitta harvest",
    .arguments = "[DECK]",
    .doc = "Compute rows from captured attention: the result of every query, all heads side by "
           "side."
           "\v"
           "The capture says what it is: the attributes causal, window, softcap and scale, where "
           "sequences begin, and heads of k and v that several heads of q share (doc/formats.md, "
           "Captures).  A paged pool is read in place, position by position, and gives the bits of "
           "the same keys and values in one piece.\n\n"
           "Ranks share out the queries, or, where these are few and their sequences long, the "
           "positions (--cut).\n\n"
           "A GPU takes heads of up to 256 columns, and holds all keys and values of the capture "
           "as they are stored.  Where they do not fit, or ranks share out the positions, they "
           "come to it in pieces, as float32.\n\n"
           "The result is rows.h5 with /rows (N, H D), for `sagitta seed`, `fit` and `encode`, and "
           "/lse (N, H), the natural logarithm of each sum of weights.\n\n"
           "  mpirun -n 4 sagitta harvest --capture capture.h5 --output rows.h5\n"
           "  sagitta harvest --capture capture.h5 --device cuda --output rows.h5\n"
           "  mpirun -n 4 sagitta fit --rows rows.h5 --atoms 4096 --top-s 16 --output run/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job; struct run says why it is on the heap. */
struct job {
  struct capture_input in;
  struct device device;
  struct output_path place;
  struct matrix_output file; /* rank 0, as is lse */
  struct h5_array lse;
  struct harvest_sink sink;
  struct harvest_task task;
  struct harvest_result result;
  double seconds;
};

static int input_open(struct job *j, const struct harvest_options *o)
{
  CHECK(o->capture, ERR_USAGE,
        "'--capture' is missing: the file with queries, keys and values, as in --capture "
        "capture.h5");
  return capture_input_open(&j->in, o->capture);
}

static int device_start(struct job *j, const struct run *run, const struct harvest_options *o,
                        int threads)
{
  const struct device_options options = {.p = 1,
                                         .d = 1,
                                         .threads = threads,
                                         .variant = o->cpu_variant,
                                         .kind = o->device,
                                         .kernels = o->kernels,
                                         .local_rank = run->comm.local_rank};
  TRY(device_check_fma());
  TRY(device_check_subnormals(threads));
  return captured_device_open(&j->device, &j->in.source, 0, 0, &options);
}

static int block_write(void *self, gidx first, gidx count, const float *rows, const float *lse)
{
  struct job *j = self;
  TRY(matrix_output_write(&j->file, first, count, rows));
  return h5_array_write(&j->lse, first, count, lse);
}

static int result_open(const struct run *run, struct job *j)
{
  const struct capture_source *s = &j->in.source;
  gidx shape[2] = {s->n, s->attention.heads};
  if (run->comm.rank) return OK;
  TRY(rows_output_create(&j->file, j->place.file, s->n, s->attention.heads * s->attention.dv));
  return object_create(&j->file.result.h5, "/lse", 2, shape, 0, &j->lse);
}

static const char *cut_name(const struct job *j)
{
  return j->task.cut == HARVEST_POSITIONS ? "positions" : "queries";
}

static int entries_json(const struct job *j)
{
  const struct capture_source *s = &j->in.source;
  const struct attention *a = &s->attention;
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "rows", s->n);
  json_long(own, "columns", a->heads * a->dv);
  json_long(own, "sequences", s->sequences);
  json_long(own, "heads", a->heads);
  json_long(own, "kv_heads", a->kv_heads);
  json_flag(own, "causal", a->causal);
  json_long(own, "window", a->window);
  json_real(own, "softcap", a->softcap);
  json_real(own, "scale", a->scale);
  json_flag(own, "paged", j->in.table != NULL);
  json_real(own, "pairs", j->result.pairs);
  json_long(own, "blind", j->result.blind);
  json_text(own, "cut", cut_name(j));
  json_hash(own, "fingerprint", j->result.fingerprint);
  return OK;
}

static int result_finish(const struct run *run, struct job *j, int threads)
{
  struct run_fact facts[MAX_FACTS];
  char device[160];
  if (run->comm.rank) return OK;
  captured_device_name(&j->device, device, sizeof device);
  TRY(entries_json(j));
  TRY(h5_array_close(&j->lse));
  return matrix_output_finish(&j->file, facts, run_facts(run, device, threads, facts));
}

static void result_log(const struct run *run, const struct job *j)
{
  const struct capture_source *s = &j->in.source;
  const struct attention *a = &s->attention;
  log_info("harvest rows=%lld columns=%d sequences=%lld heads=%d kv_heads=%d blind=%lld ranks=%d "
           "cut=%s device=%s seconds=%.2f fingerprint=%016llx",
           (long long)s->n, a->heads * a->dv, (long long)s->sequences, a->heads, a->kv_heads,
           (long long)j->result.blind, run->comm.size, cut_name(j), j->device.kind, j->seconds,
           (unsigned long long)j->result.fingerprint);
  if (j->result.blind)
    log_warn("%lld queries see no position, since their sequences have fewer positions than "
             "queries: their rows are 0 and their lse is -infinity",
             (long long)j->result.blind);
}

/* The same on all ranks, some of which may have found no GPU; one rank with a GPU holds all keys
 * and values if it can. */
static enum harvest_cut cut_choose(const struct job *j, const struct harvest_options *o, int ranks)
{
  if (!strcmp(o->cut, "queries")) return HARVEST_QUERIES;
  if (!strcmp(o->cut, "positions")) return HARVEST_POSITIONS;
  return ranks == 1 && device_is_gpu(&j->device) ? HARVEST_QUERIES
                                                 : harvest_cut_choose(&j->in.source, ranks);
}

static int rows_compute(struct run *run, struct job *j, const struct harvest_options *o)
{
  double begun = log_seconds();
  j->sink = (struct harvest_sink){j, block_write};
  j->task = (struct harvest_task){&j->in.source, &j->device, &j->sink, o->block,
                                  cut_choose(j, o, run->comm.size)};
  TRY(harvest_run(&run->comm, &j->task, &j->result));
  j->seconds = log_seconds() - begun;
  result_log(run, j);
  return captured_report(&run->comm, &j->in);
}

static int job_run(struct job *j, struct run *run, const struct harvest_options *o)
{
  struct comm *c = &run->comm;
  TRY(inputs_agree(c, input_open(j, o)));
  TRY(run_begin(run, &o->output, "rows.h5", &(const struct run_inputs){.name = {j->in.path}},
                &j->place));
  TRY(threads_report(run, o->threads));
  int threads = threads_default(run, o->threads);
  TRY(comm_agree(c, device_start(j, run, o, threads)));
  TRY(comm_agree(c, result_open(run, j)));
  TRY(rows_compute(run, j, o));
  TRY(inputs_confirm(c));
  TRY(comm_agree(c, result_finish(run, j, threads)));
  log_info("wrote   %s", j->place.shown);
  return OK;
}

static int harvest_command(struct run *run, const void *options, const char **arguments)
{
  struct job *j;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  TRY(job_run(j, run, options));
  device_close(&j->device);
  capture_input_close(&j->in);
  free(j);
  return OK;
}

const struct command command_harvest = {"harvest",
                                        "attention's queries, keys, values -> rows",
                                        &harvest_set,
                                        sizeof(struct harvest_options),
                                        1,
                                        harvest_command};
