/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta harvest: captured queries, keys and values, or tokens of a gated delta net -> rows.h5. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "io/input_agreement.h"
#include "cli/captured.h"
#include "cli/command.h"
#include "job/summary.h"
#include "job/threads.h"
#include "harvest/harvest.h"
#include "harvest/mixer.h"
#include "io/capture.h"
#include "io/capture_objects.h"
#include "io/mixer_capture.h"
#include "io/mixer_state.h"
#include "io/rows.h"

struct harvest_options {
  struct general_options general;
  struct output_options output;
  const char *capture, *mixer, *cpu_variant, *device, *kernels, *cut;
  idx block, threads;
};
#define AT(member) offsetof(struct harvest_options, member)

static const struct option_row input_rows[] = {
    {"capture", OPTION_TEXT, AT(capture), NULL, 0, 0, NULL, "FILE",
     "HDF5 file with /q (N, H, D) and /k, /v (positions, heads, D), or a paged pool /kv, in "
     "float16, bfloat16 or float32; or the capture of a gated delta net",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"mixer", OPTION_CHOICE, AT(mixer), "auto", 0, 0, "auto|attention|gated-delta", NULL,
     "what was captured; auto: what the attribute `mixer` of the capture says, attention if "
     "there is none",
     .effect = OPTION_RUN},
};

static const struct option_row speed_rows[] = {
    BLOCK_OPTION(AT(block)),
    {"cut", OPTION_CHOICE, AT(cut), "auto", 0, 0, "auto|queries|positions", NULL,
     "what is divided among the ranks. positions: shards of 1,024 positions, which suit few "
     "queries over long sequences; auto: positions if a rank would have fewer than 64 queries and "
     "can have two shards, otherwise queries",
     .effect = OPTION_RUN},
    THREADS_OPTION(AT(threads)),
    DEVICE_OPTION(AT(device)),
    KERNELS_OPTION(AT(kernels)),
    CPU_VARIANT_OPTION(AT(cpu_variant), "instruction set of CPU loops"),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed; no bit of the result changes", speed_rows, LENGTH(speed_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set harvest_set = {
    .command = "sagitta harvest",
    .arguments = "[DECK]",
    .doc = "Compute rows from a capture, a file of what a model computed.  A row is the output of "
           "attention for one query, or of a gated delta net for one token, with all heads "
           "concatenated."
           "\v"
           "The result depends on the capture alone.  The capture has the attributes causal, "
           "window, softcap and scale, says where sequences begin, and may have fewer heads of k "
           "and v than of q (doc/formats.md, Captures).  A paged pool, the KV cache of an "
           "inference server, is read as it is, and gives the same bits as keys and values that "
           "are stored in one piece.\n\n"
           "The queries are divided among the ranks, or the positions if the queries are few and "
           "their sequences long (--cut).\n\n"
           "A GPU takes heads of up to 256 columns, and holds all keys and values of the capture "
           "as they are stored.  If these do not fit, or if the positions are divided among "
           "ranks, the GPU gets them in pieces, as float32.\n\n"
           "The capture of a gated delta net has the tokens of sequences, decays, weights of the "
           "convolution, and perhaps a pool of states from which sequences begin.  If sequences "
           "also write states to the pool, --output is a folder, which gets these states in "
           "slots.h5.\n\n"
           "The result is rows.h5 with /rows (N, H D), for `sagitta seed`, `fit` and `encode`, "
           "and for attention /lse (N, H), the natural logarithm of each softmax denominator.\n\n"
           "  mpirun -n 4 sagitta harvest --capture capture.h5 --output rows.h5\n"
           "  sagitta harvest --capture capture.h5 --device cuda --output rows.h5\n"
           "  mpirun -n 4 sagitta fit --rows rows.h5 --atoms 4096 --top-s 16 --output run/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job, on the heap, since threads may use it after a failure (job/run.h). */
struct harvest_job {
  struct capture_input in;
  struct device device;
  struct output_path place;
  struct matrix_output file; /* rank 0: rows.h5 */
  struct h5_array lse;       /* rank 0: /lse of rows.h5 */
  struct harvest_sink sink;
  struct harvest_task task;
  struct harvest_result result;
  double seconds;
};

static int input_open(struct harvest_job *j, const struct harvest_options *o)
{
  CHECK(o->capture, ERR_USAGE,
        "'--capture' is missing: give the file with queries, keys and values, as in --capture "
        "capture.h5");
  return capture_input_open(&j->in, o->capture);
}

static int device_start(struct harvest_job *j, const struct run *run,
                        const struct harvest_options *o, int threads)
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
  struct harvest_job *j = self;
  TRY(matrix_output_write(&j->file, first, count, rows));
  return h5_array_write(&j->lse, first, count, lse);
}

static int result_open(const struct run *run, struct harvest_job *j)
{
  const struct capture_source *s = &j->in.source;
  gidx shape[2] = {s->n, s->attention.heads};
  if (run->comm.rank) return OK;
  TRY(rows_output_create(&j->file, j->place.file, s->n, s->attention.heads * s->attention.dv));
  return object_create(&j->file.result.h5, "/lse", 2, shape, 0, &j->lse);
}

static const char *cut_name(const struct harvest_job *j)
{
  return j->task.cut == HARVEST_POSITIONS ? "positions" : "queries";
}

static int entries_json(const struct harvest_job *j)
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

static int result_finish(const struct run *run, struct harvest_job *j, int threads)
{
  struct run_fact facts[MAX_FACTS];
  char device[160];
  if (run->comm.rank) return OK;
  captured_device_name(&j->device, device, sizeof device);
  TRY(entries_json(j));
  TRY(h5_array_close(&j->lse));
  return matrix_output_finish(&j->file, facts, run_facts(run, device, threads, facts));
}

static void result_log(const struct run *run, const struct harvest_job *j)
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

/* What ranks divide, queries or positions: as --cut says, or with `auto` the choice is made here.
 * All ranks must choose the same, and some may have no GPU, so with several ranks the device does
 * not matter.  A single rank with a GPU takes queries, because its GPU can then hold all keys and
 * values. */
static enum harvest_cut cut_choose(const struct harvest_job *j, const struct harvest_options *o,
                                   int ranks)
{
  if (!strcmp(o->cut, "queries")) return HARVEST_QUERIES;
  if (!strcmp(o->cut, "positions")) return HARVEST_POSITIONS;
  return ranks == 1 && device_is_gpu(&j->device) ? HARVEST_QUERIES
                                                 : harvest_cut_choose(&j->in.source, ranks);
}

static int rows_compute(struct run *run, struct harvest_job *j, const struct harvest_options *o)
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

static int job_run(struct harvest_job *j, struct run *run, const struct harvest_options *o)
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

/* The state of a job on a gated delta net. */
struct mixer_job_files {
  struct mixer_input in;
  struct device device;
  struct output_path place, state_path;
  struct matrix_output file; /* rank 0: rows.h5 */
  struct state_output state; /* rank 0: slots.h5, if sequences keep their states */
  struct mixer_sink sink;
  struct mixer_task task;
  struct mixer_result result;
};

static int mixer_rows_write(void *self, gidx first, gidx count, const float *rows)
{
  return matrix_output_write(&((struct mixer_job_files *)self)->file, first, count, rows);
}

static int mixer_state_write(void *self, idx slot, const float *s, const float *taps)
{
  return state_output_write(&((struct mixer_job_files *)self)->state, slot, s, taps);
}

/* Open the device.  If --device is `auto` and the GPU has no kernel for the net, the CPU is opened,
 * and the log says why. */
static int mixer_device_open(struct mixer_job_files *j, struct device_options *options)
{
  options->work += mixer_work(&j->in.source);
  TRY(device_check_fma());
  TRY(device_check_subnormals(options->threads));
  TRY(device_open(&j->device, options));
  int status = mixer_device_check(&j->in.source, &j->device);
  if (status != ERR_DEVICE || strcmp(options->kind, "auto") != 0) return status;
  log_info("harvest: no GPU is used: %s", status_message());
  device_close(&j->device);
  status_clear();
  options->kind = "cpu";
  return device_open(&j->device, options);
}

static int mixer_result_open(const struct run *run, struct mixer_job_files *j)
{
  const struct mixer_source *s = &j->in.source;
  if (run->comm.rank) return OK;
  TRY(rows_output_create(&j->file, j->place.file, s->n, s->net.heads * s->net.dv));
  return mixer_kept(s) ? state_output_create(&j->state, j->state_path.file, &s->net, s->slots) : OK;
}

static int mixer_entries_json(const struct mixer_job_files *j)
{
  const struct mixer_source *s = &j->in.source;
  struct json *own;
  TRY(summary_entries(&own));
  json_text(own, "mixer", "gated-delta");
  json_long(own, "rows", s->n);
  json_long(own, "columns", s->net.heads * s->net.dv);
  json_long(own, "sequences", s->sequences);
  json_long(own, "heads", s->net.heads);
  json_long(own, "key_heads", s->net.heads_k);
  json_long(own, "slots", s->slots);
  json_long(own, "kept", j->result.kept);
  json_hash(own, "fingerprint", j->result.fingerprint);
  return OK;
}

/* Publish the states before the rows: the next tokens of a sequence need its state, so rows without
 * the states would be of no use. */
static int mixer_result_finish(const struct run *run, struct mixer_job_files *j, int threads)
{
  struct run_fact facts[MAX_FACTS];
  char device[160];
  if (run->comm.rank) return OK;
  captured_device_name(&j->device, device, sizeof device);
  TRY(mixer_entries_json(j));
  int n = run_facts(run, device, threads, facts);
  if (j->result.kept) TRY(state_output_finish(&j->state, facts, n));
  return matrix_output_finish(&j->file, facts, n);
}

/* Claim the path of slots.h5, if a sequence keeps its state. */
static int mixer_path_check(struct mixer_job_files *j, const struct harvest_options *o)
{
  const char *output = o->output.output;
  if (!mixer_kept(&j->in.source)) return OK;
  TRY(output_check_given(output));
  size_t length = strlen(output);
  CHECK(length < 3 || strcmp(output + length - 3, ".h5") != 0, ERR_USAGE,
        "'%s' keeps states (/slot_out): give a folder as '--output', for rows.h5 and slots.h5",
        j->in.path);
  return output_path(&j->state_path, output, "slots.h5", o->output.force);
}

static int mixer_run_all(struct mixer_job_files *j, struct run *run,
                         const struct harvest_options *o)
{
  struct comm *c = &run->comm;
  TRY(inputs_agree(c, mixer_input_open(&j->in, o->capture)));
  TRY(comm_agree(c, c->rank ? OK : mixer_path_check(j, o)));
  TRY(run_begin(run, &o->output, "rows.h5", &(const struct run_inputs){.name = {j->in.path}},
                &j->place));
  TRY(threads_report(run, o->threads));
  int threads = threads_default(run, o->threads);
  struct device_options options = {.p = 1,
                                   .d = 1,
                                   .threads = threads,
                                   .variant = o->cpu_variant,
                                   .kind = o->device,
                                   .kernels = o->kernels,
                                   .local_rank = c->local_rank};
  TRY(comm_agree(c, mixer_device_open(j, &options)));
  TRY(comm_agree(c, mixer_result_open(run, j)));
  double begun = log_seconds();
  j->sink = (struct mixer_sink){j, mixer_rows_write, mixer_state_write};
  j->task = (struct mixer_task){&j->in.source, &j->device, &j->sink, o->block};
  TRY(mixer_rows_run(c, &j->task, &j->result));
  const struct mixer_source *s = &j->in.source;
  log_info("harvest mixer=gated-delta rows=%lld columns=%d sequences=%lld heads=%d key_heads=%d "
           "slots=%d kept=%d ranks=%d device=%s seconds=%.2f fingerprint=%016llx",
           (long long)s->n, s->net.heads * s->net.dv, (long long)s->sequences, s->net.heads,
           s->net.heads_k, s->slots, j->result.kept, c->size, j->device.kind, log_seconds() - begun,
           (unsigned long long)j->result.fingerprint);
  TRY(inputs_confirm(c));
  TRY(comm_agree(c, mixer_result_finish(run, j, threads)));
  log_info("wrote   %s", j->place.shown);
  return OK;
}

static int mixer_command(struct run *run, const struct harvest_options *o)
{
  struct mixer_job_files *j;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  TRY(mixer_run_all(j, run, o));
  device_close(&j->device);
  mixer_input_close(&j->in);
  free(j);
  return OK;
}

/* *is_gated <- is the capture of a gated delta net?  --mixer says so, or with `auto` the
 * capture. */
static int mixer_choose(const struct harvest_options *o, uint64_t *is_gated)
{
  char mixer[64];
  *is_gated = !strcmp(o->mixer, "gated-delta");
  if (!o->capture || strcmp(o->mixer, "auto") != 0) return OK;
  TRY(capture_mixer_find(o->capture, mixer, sizeof mixer));
  *is_gated = !strcmp(mixer, "gated-delta");
  return OK;
}

static int harvest_command(struct run *run, const void *options, const char **arguments)
{
  struct harvest_job *j;
  uint64_t is_gated;
  (void)arguments;
  int status = mixer_choose(options, &is_gated);
  TRY(comm_agree_flags(&run->comm, status, COMM_NO_KEY, &is_gated));
  if (is_gated) return mixer_command(run, options);
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
