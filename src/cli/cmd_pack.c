/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta pack: captures with tokens -> one capture with a paged pool. */
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "job/summary.h"
#include "harvest/pack.h"
#include "io/capture.h"
#include "io/capture_output.h"
#include "io/rows.h"
#include "io/shards_order.h"

struct pack_options {
  struct general_options general;
  struct output_options output;
  const char *capture;
  idx size;
};
#define AT(member) offsetof(struct pack_options, member)

static const struct option_row input_rows[] = {
    {"capture", OPTION_TEXTS, AT(capture), NULL, 0, 0, NULL, "FILE",
     "captures with /token, the token of each position; " ROWS_SHARDS, .effect = OPTION_BITS,
     .flags = OPTION_INPUT},
};

static const struct option_row pool_rows[] = {
    {"size", OPTION_INT, AT(size), "16", 1, 65536, NULL, "POSITIONS",
     "number of positions in a "
     "block",
     .effect = OPTION_BITS},
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Pool", pool_rows, LENGTH(pool_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set pack_set = {
    .command = "sagitta pack",
    .arguments = "[DECK]",
    .doc = "Put the sequences of captures into one paged pool, in which equal prefixes are stored "
           "once."
           "\v"
           "Sequences share whole blocks, from the first block on, as long as their tokens, keys "
           "and values are equal, to the bit.  So `sagitta harvest` gives the same rows for the "
           "pool as for the captures.  The result is capture.h5, in the number type of the "
           "captures, or in float32 if their types differ.\n\n"
           "  sagitta pack --capture 'prompts/*.h5' --output packed/\n"
           "  mpirun -n 4 sagitta harvest --capture packed/ --output rows.h5",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct pack_job {
  struct shard_names names;
  struct capture_input *in;               /* [names.count] */
  const struct capture_source **captures; /* [names.count] */
  struct rows_input files;                /* has only the names of the captures */
  struct output_path place;
  struct capture_output file;
  struct pack_result result;
};

static int inputs_open(struct pack_job *j, const struct pack_options *o)
{
  CHECK(o->capture, ERR_USAGE, "'--capture' is missing: give the files to pack");
  TRY(shards_open(&j->names, o->capture));
  size_t n = (size_t)j->names.count;
  j->in = calloc(n, sizeof *j->in);
  j->captures = calloc(n, sizeof *j->captures);
  j->files.files = calloc(n, sizeof *j->files.files);
  CHECK(j->in && j->captures && j->files.files, ERR_MEMORY, "cannot allocate %zu captures", n);
  shards_order_warn(&j->names);
  for (int i = 0; i < j->names.count; i++) {
    TRY(capture_input_open(&j->in[i], j->names.list[i].name));
    j->captures[i] = &j->in[i].source;
    j->files.files[j->files.n_files++] = j->in[i].path;
  }
  return OK;
}

static int block_write(void *self, idx block, const float *k, const float *v)
{
  struct pack_job *j = self;
  return capture_output_block(&j->file, block, k, v);
}

static int queries_write(void *self, gidx first, idx count, const float *q)
{
  struct pack_job *j = self;
  return capture_output_queries(&j->file, first, count, q);
}

static int tokens_write(void *self, gidx first, gidx count, const idx *token)
{
  struct pack_job *j = self;
  return h5_array_write(&j->file.token, first, count, token);
}

static double float_bytes(enum h5_type type)
{
  return type == TYPE_F32 ? 4 : 2;
}

/* Bytes of the keys and values of `positions` positions; k and v are their types. */
static double positions_bytes(const struct pack_job *j, gidx positions, enum h5_type k,
                              enum h5_type v)
{
  const struct attention *a = &j->captures[0]->attention;
  return (double)positions * a->kv_heads * (a->d * float_bytes(k) + a->dv * float_bytes(v));
}

/* Bytes of the captures before packing: every sequence has its own keys and values. */
static double captures_bytes(const struct pack_job *j)
{
  double bytes = 0;
  for (int i = 0; i < j->names.count; i++)
    for (gidx s = 0; s < j->captures[i]->sequences; s++)
      bytes += positions_bytes(j, j->captures[i]->length[s], j->in[i].k.type, j->in[i].v.type);
  return bytes;
}

/* Bytes of the pool, in whole blocks. */
static double pool_bytes(const struct pack_job *j, idx size)
{
  return positions_bytes(j, j->result.blocks * size, j->file.k.type, j->file.v.type);
}

/* The shape of the packed capture.  Queries, keys and values each keep their type if all captures
 * have the same one; otherwise they become float32, which holds the values of every type. */
static struct capture_shape shape_find(const struct pack_job *j, idx size)
{
  const struct capture_input *first = &j->in[0];
  struct capture_shape s = {.attention = first->source.attention,
                            .q = first->q.type,
                            .k = first->k.type,
                            .v = first->v.type,
                            .size = size};
  for (int i = 0; i < j->names.count; i++) {
    const struct capture_input *in = &j->in[i];
    s.n += in->source.n;
    s.positions += in->kv_start[in->source.sequences];
    if (in->q.type != s.q) s.q = TYPE_F32;
    if (in->k.type != s.k) s.k = TYPE_F32;
    if (in->v.type != s.v) s.v = TYPE_F32;
  }
  return s;
}

static int captures_pack(struct pack_job *j, const struct pack_options *o)
{
  const struct pack_sink sink = {j, block_write, queries_write, tokens_write};
  const struct pack_task task = {j->captures, j->names.count, o->size, &sink};
  struct capture_shape shape = shape_find(j, o->size);
  pack_bounds(&task, &shape.least, &shape.most);
  TRY(capture_output_create(&j->file, j->place.file, &shape));
  return pack_run(&task, &j->result);
}

static int entries_json(const struct pack_job *j, idx size)
{
  const struct pack_result *r = &j->result;
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "captures", j->names.count);
  json_long(own, "sequences", r->sequences);
  json_long(own, "queries", r->queries);
  json_long(own, "positions", r->positions);
  json_long(own, "size", size);
  json_long(own, "blocks", r->blocks);
  json_long(own, "shared", r->shared);
  json_long(own, "unlike", r->unlike);
  json_real(own, "pool_bytes", pool_bytes(j, size));
  json_real(own, "saved_bytes", captures_bytes(j) - pool_bytes(j, size));
  return OK;
}

static int result_finish(const struct run *run, struct pack_job *j, idx size)
{
  const struct pack_result *r = &j->result;
  const struct capture_sequences s = {r->sequences, r->width, r->table, r->length, r->start};
  struct run_fact facts[MAX_FACTS];
  TRY(entries_json(j, size));
  return capture_output_finish(&j->file, &s, facts, run_facts(run, "cpu", 1, facts));
}

static void result_log(const struct pack_job *j, idx size)
{
  const struct pack_result *r = &j->result;
  log_info("pack    captures=%d sequences=%lld queries=%lld positions=%lld size=%d blocks=%lld "
           "shared=%lld unlike=%lld",
           j->names.count, (long long)r->sequences, (long long)r->queries, (long long)r->positions,
           size, (long long)r->blocks, (long long)r->shared, (long long)r->unlike);
  double all = 1e-6 * captures_bytes(j), saved = all - 1e-6 * pool_bytes(j, size);
  log_info("saved   %.1f of %.1f MB of keys and values", fabs(saved) < 0.05 ? 0 : saved, all);
  if (r->unlike)
    log_warn("%lld prefixes have the tokens of another prefix but other keys or values, so they "
             "are not shared: were they computed in another batch?",
             (long long)r->unlike);
}

static void job_free(struct pack_job *j)
{
  pack_free(&j->result);
  for (int i = 0; i < j->names.count; i++) capture_input_close(&j->in[i]);
  shards_close(&j->names);
  free(j->files.files);
  free(j->captures);
  free(j->in);
  free(j);
}

static int pack_command(struct run *run, const void *options, const char **arguments)
{
  const struct pack_options *o = options;
  struct pack_job *j;
  (void)arguments;
  TRY(struct_alloc(&j, sizeof *j));
  TRY(inputs_agree(&run->comm, inputs_open(j, o)));
  TRY(run_begin(run, &o->output, "capture.h5", &(const struct run_inputs){.rows = &j->files},
                &j->place));
  TRY(captures_pack(j, o));
  result_log(j, o->size);
  TRY(inputs_confirm(&run->comm));
  TRY(result_finish(run, j, o->size));
  log_info("wrote   %s", j->place.shown);
  job_free(j);
  return OK;
}

const struct command command_pack = {"pack",    "captures -> one with a paged pool",
                                     &pack_set, sizeof(struct pack_options),
                                     0,         pack_command};
