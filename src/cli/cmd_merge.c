/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta merge: the parts of an encoding -> the supports.h5 of the whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "cli/agreement.h"
#include "cli/command.h"
#include "cli/report.h"
#include "io/part.h"
#include "io/shards.h"
#include "io/supports.h"

enum { BLOCK_ENTRIES = 1 << 18 };

struct merge_options {
  struct general_options general;
  struct output_options output;
  const char *parts;
};

static const struct option_row input_rows[] = {
    {"parts", OPTION_TEXTS, offsetof(struct merge_options, parts), NULL, 0, 0, NULL, "FILE",
     "parts, as arguments are: files, patterns in quotes, or @LIST; in any order"},
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, offsetof(struct merge_options, output)},
    {"Job", general_rows, GENERAL_ROWS, offsetof(struct merge_options, general)},
};

static const struct option_set merge_set = {
    .command = "sagitta merge",
    .arguments = "[PART...]",
    .doc = "Join the parts that `sagitta encode --row-range` or `route --row-range` made."
           "\v"
           "The result has the bytes that one job for all rows gives, metrics included.  The parts "
           "may be given in any order; parts that overlap, leave rows out, or were made from other "
           "inputs or with other options are refused, and every checksum is compared.\n\n"
           "A single argument that ends in .in is a deck.\n\n"
           "  sagitta encode run.in --row-range 0:65536 --output parts/\n"
           "  sagitta encode run.in --row-range 65536: --output parts/\n"
           "  sagitta merge parts/*.h5 --output whole/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1 << 20,
    .takes_files = 1,
};

/* The state of the job; struct run says why it is on the heap. */
struct merge {
  struct shard_names names;
  struct part_input *parts; /* [count], once all are open in the order of their rows */
  int count;
  struct output_place place;
  struct supports_output file;
  struct metrics metrics;
  struct identity inputs;
  uint64_t fingerprint;
  struct arena arena;
  gidx *density;
  real *total;
  idx *atoms;
  float *score, *codes;
};

/* Put the arguments behind what --parts says, so that used.in has them. */
static int parts_collect(struct merge_options *o, const char **arguments)
{
  size_t length = o->parts ? strlen(o->parts) + 1 : 0;
  for (const char **a = arguments; *a; a++) length += strlen(*a) + 1;
  CHECK(length, ERR_USAGE,
        "the parts are missing, as in: sagitta merge parts/*.h5 --output whole/");
  CHECK(o->output.output, ERR_USAGE, "'--output' is missing: a folder, or a file that ends in .h5");
  char *all = malloc(length), *at = all;
  CHECK(all, ERR_MEMORY, "cannot allocate %zu bytes", length);
  if (o->parts) at += sprintf(at, "%s", o->parts);
  for (const char **a = arguments; *a; a++) {
    CHECK(!strchr(*a, '\n'), ERR_USAGE, "the name '%s' has several lines", *a);
    at += sprintf(at, "%s%s", at > all ? "\n" : "", *a);
  }
  o->parts = all; /* kept for the program's life, as values of options are */
  return OK;
}

static int row_order(const void *a, const void *b)
{
  gidx x = ((const struct part_input *)a)->part.first;
  gidx y = ((const struct part_input *)b)->part.first;
  return x < y ? -1 : x > y;
}

static int parts_open(struct merge *m, const char *names)
{
  TRY(shards_open(&m->names, names));
  m->parts = calloc((size_t)m->names.count, sizeof *m->parts);
  CHECK(m->parts, ERR_MEMORY, "cannot allocate %d parts", m->names.count);
  for (int i = 0; i < m->names.count; i++) {
    log_info("part    %s", m->names.list[i].name);
    m->count++;
    TRY(part_input_open(&m->parts[i], m->names.list[i].name));
  }
  qsort(m->parts, (size_t)m->count, sizeof *m->parts, row_order);
  return OK;
}

static int same_reals(const real *a, const real *b, idx p)
{
  return !a == !b && (!a || memcmp(a, b, (size_t)p * sizeof *a) == 0);
}

/* In what a part differs from the first one; NULL: both are of one encoding. */
static const char *difference_find(const struct part_input *a, const struct part_input *b)
{
  const struct encode_part *x = &a->part, *y = &b->part;
  const struct supports_input *s = &a->supports, *t = &b->supports;
  const struct {
    int differ;
    const char *what;
  } all[] = {
      {x->total != y->total, "another number of rows in the whole"},
      {x->p != y->p, "another number of columns"},
      {a->shape.k != b->shape.k, "another number of atoms"},
      {a->shape.d != b->shape.d, "frames of another size"},
      {s->inputs.dictionary != t->inputs.dictionary, "another dictionary"},
      {x->rows_sample != y->rows_sample, "other rows"},
      {s->source.has_codes != t->source.has_codes, "codes, or none, unlike it"},
      {a->shape.s != b->shape.s, "another --top-s"},
      {s->rounds != t->rounds, "another --rounds"},
      {s->nonnegative != t->nonnegative, "another --codes"},
      {s->rho != t->rho, "another --rho"},
      {a->normalized != b->normalized, "another --normalize"},
      {x->max_cosine != y->max_cosine, "another --cosine-limit"},
      {s->mean_length != t->mean_length || !same_reals(s->mean, t->mean, x->p), "another mean"},
      {!same_reals(x->shift, y->shift, x->p), "other rows at the beginning of the whole"},
  };
  for (int i = 0; i < LENGTH(all); i++)
    if (all[i].differ) return all[i].what;
  return NULL;
}

static int gap_fail(const struct merge *m, gidx first, gidx end)
{
  FAIL(ERR_INPUT,
       "rows %lld to %lld of %lld are in none of the %d parts: make theirs with '--row-range "
       "%lld:%lld'",
       (long long)first, (long long)end - 1, (long long)m->parts[0].part.total, m->count,
       (long long)first, (long long)end);
}

/* The parts are of one encoding, and each begins where the one before it ends. */
static int parts_check(const struct merge *m)
{
  const struct part_input *first = &m->parts[0];
  for (int i = 1; i < m->count; i++) {
    const char *what = difference_find(first, &m->parts[i]);
    CHECK(!what, ERR_INPUT, "'%s' does not belong to '%s': it has %s", m->parts[i].supports.file,
          first->supports.file, what);
  }
  gidx at = 0;
  for (int i = 0; i < m->count; i++) {
    const struct encode_part *part = &m->parts[i].part;
    CHECK(part->first >= at, ERR_INPUT,
          "'%s' and '%s' overlap: both have row %lld; leave one of them out",
          m->parts[i - 1].supports.file, m->parts[i].supports.file, (long long)part->first);
    if (part->first > at) return gap_fail(m, at, part->first);
    at += part->n;
  }
  return at < first->part.total ? gap_fail(m, at, first->part.total) : OK;
}

static int merge_alloc(struct merge *m)
{
  const struct supports_shape *shape = &m->parts[0].shape;
  gidx entries = imax(BLOCK_ENTRIES, shape->s);
  TRY(arena_alloc(&m->arena, &m->density, shape->k, sizeof *m->density));
  TRY(arena_alloc(&m->arena, &m->total, part_width(shape->p), sizeof *m->total));
  TRY(arena_alloc(&m->arena, &m->atoms, entries, sizeof *m->atoms));
  TRY(arena_alloc(&m->arena, &m->score, entries, sizeof *m->score));
  return arena_alloc(&m->arena, &m->codes, entries * shape->d, sizeof *m->codes);
}

/* Copy the supports of a part. */
static int part_copy(struct merge *m, const struct part_input *p)
{
  const struct supports_shape *shape = &p->shape;
  const struct support_source *source = &p->supports.source;
  gidx most = imax(1, BLOCK_ENTRIES / shape->s);
  for (gidx row = 0; row < shape->n; row += most) {
    gidx n = imin(most, shape->n - row);
    float *codes = shape->has_codes ? m->codes : NULL;
    TRY(source->read(source->self, row * shape->s, n * shape->s, m->atoms, m->score, codes));
    struct support_block block = {.first = p->part.first + row,
                                  .n = (idx)n,
                                  .s = shape->s,
                                  .d = shape->d,
                                  .atoms = m->atoms,
                                  .score = m->score,
                                  .codes = codes};
    TRY(m->file.sink.write(m->file.sink.self, &block));
  }
  return OK;
}

/* What the whole has beside its supports, from what the parts have. */
static int metrics_join(struct merge *m)
{
  const struct part_input *first = &m->parts[0];
  const struct supports_shape *shape = &first->shape;
  const struct part_sums **sums;
  struct code_counts codes = {0};
  gidx nonzero = 0;
  uint64_t terms = 0;
  TRY(arena_alloc(&m->arena, &sums, m->count, sizeof *sums));
  for (int i = 0; i < m->count; i++) {
    const struct encode_part *part = &m->parts[i].part;
    for (idx k = 0; k < shape->k; k++) m->density[k] += m->parts[i].density[k];
    sums[i] = &part->sums;
    nonzero += part->nonzero;
    terms += part->rows_terms;
    m->fingerprint += part->fingerprint;
    codes.all += part->codes.all;
    codes.negative += part->codes.negative;
    codes.zero += part->codes.zero;
  }
  if (shape->has_codes) {
    TRY(part_sums_total(sums, m->count, m->total));
    part_metrics(&m->metrics, m->total, first->part.total, shape->p, nonzero);
    metrics_codes(&m->metrics, &codes);
  }
  metrics_density(&m->metrics, m->density, first->part.total, shape->k);
  m->metrics.max_decoder_cosine = first->max_decoder_cosine;
  m->inputs.dictionary = first->supports.inputs.dictionary;
  m->inputs.rows = content_hash(terms, first->part.total, shape->p, 1);
  return OK;
}

/* Write the whole. */
static int whole_write(struct run *run, struct merge *m)
{
  const struct part_input *first = &m->parts[0];
  struct supports_shape shape = first->shape;
  struct run_fact facts[MAX_FACTS];
  struct progress progress;
  shape.n = first->part.total;
  TRY(merge_alloc(m));
  TRY(supports_output_create(&m->file, m->place.file, &shape));
  progress_start(&progress, "merge", "rows", shape.n);
  for (int i = 0; i < m->count; i++) {
    TRY(part_copy(m, &m->parts[i]));
    progress_show(&progress, m->parts[i].part.first + m->parts[i].part.n);
  }
  TRY(metrics_join(m));
  TRY(inputs_confirm(&run->comm));
  struct supports_ending ending = {.metrics = &m->metrics,
                                   .mean = first->supports.mean,
                                   .rho = first->supports.rho,
                                   .rounds = first->supports.rounds,
                                   .normalized = first->normalized,
                                   .inputs = m->inputs};
  return supports_output_finish(&m->file, &ending, facts, run_facts(run, "cpu", 1, facts));
}

/* The parts, and lists of them, are not to be replaced. */
static int place_begin(struct run *run, const struct merge_options *o, struct merge *m)
{
  TRY(run_begin(run, &o->output, "supports.h5", &(const struct run_inputs){.rows = NULL},
                &m->place));
  for (int i = 0; i < m->count; i++) TRY(outputs_check_inputs(&m->parts[i].supports.file, 1, NULL));
  for (int i = 0; i < m->names.n_files; i++)
    TRY(outputs_check_inputs(&m->names.files[i].path, 1, NULL));
  return OK;
}

static int merge_command(struct run *run, const void *options, const char **arguments)
{
  struct merge_options *o = (struct merge_options *)options;
  static const char *none[] = {NULL};
  struct merge *m;
  TRY(struct_alloc(&m, sizeof *m));
  TRY(parts_collect(o, run->deck ? none : arguments));
  TRY(parts_open(m, o->parts));
  TRY(inputs_agree(&run->comm, parts_check(m)));
  TRY(place_begin(run, o, m));
  TRY(whole_write(run, m));
  log_info("merge   parts=%d rows=%lld atoms=%d top_s=%d fingerprint=%016llx", m->count,
           (long long)m->parts[0].part.total, m->parts[0].shape.k, m->parts[0].shape.s,
           (unsigned long long)m->fingerprint);
  report_metrics(&m->metrics, m->parts[0].shape.has_codes);
  log_info("wrote   %s", m->place.shown);
  for (int i = 0; i < m->count; i++) part_input_close(&m->parts[i]);
  shards_close(&m->names);
  arena_free(&m->arena);
  free(m->parts);
  free(m);
  return OK;
}

const struct command command_merge = {"merge",    "parts of an encoding -> supports of the whole",
                                      &merge_set, sizeof(struct merge_options),
                                      0,          merge_command};
