/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta merge: the parts of an encoding -> the supports.h5 of the whole.  Rank 0 alone opens the
 * parts, and reads them once: they are verified while they are copied.  Ranges that jobs wrote into
 * one file (--join) also count as parts.  Rank 0 then reads the journals of the ranges, and copies
 * no rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "encode/content.h"
#include "cli/report.h"
#include "encoding/ranges_whole.h"
#include "job/summary.h"
#include "job/threads.h"
#include "io/score_cuts.h"
#include "io/input_file.h"
#include "io/inputs.h"
#include "io/part.h"
#include "io/rows.h"
#include "io/shards.h"
#include "io/supports.h"
#include "io/writer.h"

struct merge_options {
  struct general_options general;
  struct output_options output;
  const char *parts, *rows, *rates;
  int dry_run;
};

static const struct option_row input_rows[] = {
    {"parts", OPTION_TEXTS, offsetof(struct merge_options, parts), NULL, 0, 0, NULL, "FILE",
     "parts, like the arguments PART: files, patterns in quotes, or @LIST (a file with one name "
     "per line); in any order",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"rows", OPTION_TEXTS, offsetof(struct merge_options, rows), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "read all rows, and refuse parts that were made from other rows. Without --rows, merge only "
     "compares what the parts store about their rows: sizes and times of the files, and a hash of "
     "64 rows",
     .effect = OPTION_RUN, .flags = OPTION_INPUT},
    DRY_RUN_OPTION(offsetof(struct merge_options, dry_run)),
    RATES_OPTION(offsetof(struct merge_options, rates)),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, offsetof(struct merge_options, output)},
    {"Job", general_rows, GENERAL_ROWS, offsetof(struct merge_options, general)},
};

static const struct option_set merge_set = {
    .command = "sagitta merge",
    .arguments = "[PART...|FOLDER]",
    .doc = "Join the parts that `sagitta encode --row-range` or `route --row-range` made."
           "\v"
           "The result has the bytes that one job for all rows gives, metrics included.  The "
           "parts may be given in any order.  Every checksum is compared.  Parts are refused if "
           "they overlap, if rows are missing, or if they were made from different inputs or with "
           "different options.\n\n"
           "A single FOLDER is one into which jobs wrote their ranges with --join: when all "
           "ranges are done, their file becomes supports.h5 in that folder.  Of each range only "
           "the first and last chunks are checked; `sagitta verify` checks all rows.  If merge is "
           "interrupted, run it again.\n\n"
           "A single argument that ends in .in is a deck: a text file of options, one `KEY = "
           "VALUE` per line, KEY without --.\n\n"
           "  sagitta encode run.in --row-range 0:65536 --output parts/\n"
           "  sagitta encode run.in --row-range 65536: --output parts/\n"
           "  sagitta merge parts/*.h5 --output whole/\n"
           "  sagitta merge joined/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1 << 20,
    .takes_files = 1,
};

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct merge {
  struct shard_names names;
  struct rows_input rows; /* with --rows */
  int joins;              /* 1: the argument is a folder with ranges of one file */
  struct ranges_whole ranges;
  struct part_input *parts; /* [count]; once all are open, in the order of their rows */
  int count;
  struct output_path place;
  struct supports_output file;
  struct metrics metrics;
  struct identity inputs;
  struct encode_part whole;
  struct arena arena;
  gidx *density;
};

/* Append the arguments to the value of --parts, so that used.in has them. */
static int parts_collect(struct merge_options *o, const char **arguments)
{
  size_t length = o->parts ? strlen(o->parts) + 1 : 0;
  for (const char **a = arguments; *a; a++) length += strlen(*a) + 1;
  CHECK(length, ERR_USAGE,
        "the parts are missing, as in: sagitta merge parts/*.h5 --output whole/");
  char *all = malloc(length), *at = all;
  CHECK(all, ERR_MEMORY, "cannot allocate %zu bytes", length);
  if (o->parts) at += sprintf(at, "%s", o->parts);
  for (const char **a = arguments; *a; a++) {
    CHECK(!strchr(*a, '\n'), ERR_USAGE, "the name '%s' has several lines", *a);
    at += sprintf(at, "%s%s", at > all ? "\n" : "", *a);
  }
  o->parts = all; /* kept for the program's life, like values of options */
  return OK;
}

/* *is <- 1 if the only argument is a folder, and --output is missing or names the same folder.  The
 * folder then has ranges of one file.  ERR_USAGE: *is is 0, and --output is missing without
 * --dry-run.  Rank 0. */
static int folder_find(const struct merge_options *o, gidx *is)
{
  struct stat facts, other;
  const char *output = o->output.output;
  *is = stat(o->parts, &facts) == 0 && S_ISDIR(facts.st_mode);
  *is = *is && (!output || (stat(output, &other) == 0 && other.st_dev == facts.st_dev &&
                            other.st_ino == facts.st_ino));
  return *is || o->dry_run ? OK : output_check_given(output);
}

/* m->joins <- *is of folder_find(), on all ranks.  If it is 1, --output becomes the folder. */
static int folder_use(struct run *run, struct merge_options *o, struct merge *m)
{
  gidx is = 0;
  TRY(comm_agree(&run->comm, run->comm.rank ? OK : folder_find(o, &is)));
  TRY(comm_broadcast(&run->comm, &is, 1, sizeof is));
  m->joins = (int)is;
  if (m->joins) o->output.output = o->parts;
  if (m->joins) ranges_publish();
  return OK;
}

static int row_order(const void *a, const void *b)
{
  gidx x = ((const struct part_input *)a)->part.first;
  gidx y = ((const struct part_input *)b)->part.first;
  return x < y ? -1 : x > y;
}

/* A folder stands for its supports.h5.  Refuse a folder without one: parts have other names. */
static int name_check(const char *name)
{
  char file[MAX_NAME];
  TRY(input_in_folder(name, "supports.h5", file));
  int is_folder = strcmp(name, file) != 0;
  CHECK(!is_folder || input_is_there(file), ERR_IO,
        "'%s' is a folder: name the parts in it, as in '%.*s/part-*.h5'", name,
        (int)(strlen(file) - strlen("/supports.h5")), file);
  return OK;
}

static int parts_open(struct merge *m)
{
  m->parts = calloc((size_t)m->names.count, sizeof *m->parts);
  CHECK(m->parts, ERR_MEMORY, "cannot allocate %d parts", m->names.count);
  for (int i = 0; i < m->names.count; i++) {
    log_info("part    %s", m->names.list[i].name);
    m->count++;
    TRY(name_check(m->names.list[i].name));
    TRY(part_input_open_unread(&m->parts[i], m->names.list[i].name));
    TRY(numerics_check(m->names.list[i].name, "merge with that version, or make this part again"));
  }
  qsort(m->parts, (size_t)m->count, sizeof *m->parts, row_order);
  return OK;
}

/* Open all ranges of the folder, each as a part. */
static int ranges_open(struct merge *m, const char *folder)
{
  TRY(ranges_whole_open(&m->ranges, folder));
  if (m->ranges.is_published) return OK;
  m->parts = calloc((size_t)m->ranges.list.count, sizeof *m->parts);
  CHECK(m->parts, ERR_MEMORY, "cannot allocate %d parts", m->ranges.list.count);
  m->count = m->ranges.list.count;
  return ranges_whole_parts(&m->ranges, m->parts);
}

static int gap_fail(const struct merge *m, gidx first, gidx end)
{
  FAIL(ERR_INPUT,
       "rows %lld to %lld of %lld are in none of the %d parts: encode them with '--row-range "
       "%lld:%lld'",
       (long long)first, (long long)end - 1, (long long)m->parts[0].part.total, m->count,
       (long long)first, (long long)end);
}

/* Check that the identity of a part has the lines of the first part's identity, except the range of
 * rows. */
static int identity_compare(const char *of_first, const char *first, const char *file)
{
  struct identity_difference d;
  struct identity_text is;
  TRY(writer_identity(file, &is.text));
  identity_text_remove(&is, "row-range");
  int differs = identity_text_differs(of_first, is.text, &d);
  identity_text_free(&is);
  CHECK(!differs, ERR_INPUT,
        "'%s' does not belong to '%s': the first was written with %s, the second with %s", file,
        first, d.is, d.was);
  return OK;
}

/* Check that all parts belong to one encoding.  *whole <- its identity. */
static int identities_check(const struct merge *m, struct identity_text *whole)
{
  const char *first = m->parts[0].supports.file;
  TRY(writer_identity(first, &whole->text));
  identity_text_remove(whole, "row-range");
  for (int i = 1; i < m->count; i++)
    TRY(identity_compare(whole->text, first, m->parts[i].supports.file));
  return OK;
}

/* Check that each part begins where the one before it ends, and that no row is missing.  The first
 * part must have the decoder cosine, unless it was encoded with fewer than two atoms or with more
 * than --cosine-limit. */
static int parts_check(const struct merge *m)
{
  const struct part_input *first = &m->parts[0];
  gidx at = 0;
  for (int i = 0; i < m->count; i++) {
    const struct encode_part *part = &m->parts[i].part;
    CHECK(part->first >= at, ERR_INPUT,
          "'%s' and '%s' overlap: both have row %lld; leave one of them out",
          m->parts[i - 1].supports.file, m->parts[i].supports.file, (long long)part->first);
    if (part->first > at) return gap_fail(m, at, part->first);
    at += part->n;
  }
  if (at < first->part.total) return gap_fail(m, at, first->part.total);
  CHECK(!isnan(first->max_decoder_cosine) || first->shape.k < 2 ||
            first->shape.k > first->part.max_cosine,
        ERR_INPUT,
        "'%s' was stopped before its decoder cosine was found: run its command again with --resume",
        first->supports.file);
  return OK;
}

/* Warn if the files of rows of a part differ in size or time from those of the first part. */
static void files_compare(const struct merge *m)
{
  const struct part_input *first = &m->parts[0];
  for (int i = 1; i < m->count; i++) {
    uint64_t a = first->part.rows_files, b = m->parts[i].part.rows_files;
    if (!a || !b || a == b) continue;
    log_warn("the files of rows of '%s' and '%s' differ in size or time: were they the same?  Give "
             "--rows FILE to compare all rows",
             first->supports.file, m->parts[i].supports.file);
    return;
  }
}

static int rows_fit(const struct merge *m)
{
  const struct row_source *rows = &m->rows.source;
  int fits = rows->n == m->parts[0].part.total && rows->p == m->parts[0].part.p;
  CHECK(fits, ERR_INPUT,
        "'%s' has %lld rows of %d columns, the parts are of %lld rows of %d columns", rows->name,
        (long long)rows->n, rows->p, (long long)m->parts[0].part.total, m->parts[0].part.p);
  return OK;
}

static int rows_same(const struct merge *m, uint64_t are)
{
  uint64_t were = 0;
  for (int i = 0; i < m->count; i++) were += m->parts[i].part.rows_terms;
  CHECK(are == were, ERR_INPUT,
        "the parts are not all of the rows of '%s': make those parts again whose rows have changed",
        m->rows.source.name);
  return OK;
}

/* With --rows: check that the parts are of these rows.  Without it, only compare what the parts say
 * about their files of rows.  Collective. */
static int rows_compare(struct run *run, const struct merge *m)
{
  struct comm *c = &run->comm;
  uint64_t are = 0;
  if (!m->rows.count) {
    if (c->rank == 0) files_compare(m);
    return OK;
  }
  TRY(comm_agree(c, c->rank ? OK : rows_fit(m)));
  TRY(rows_content(c, &m->rows.source, 0, &are));
  return comm_agree(c, c->rank ? OK : rows_same(m, are));
}

/* Check that all parts have the same cuts of --l0 (encode/cuts.h), or none.  If they have cuts,
 * check that these were found from the rows of the parts. */
static int cuts_compare(const struct merge *m)
{
  const struct score_cuts *first = &m->parts[0].supports.cuts;
  for (int i = 0; i < m->count; i++) {
    const struct score_cuts *cuts = &m->parts[i].supports.cuts;
    if (cuts->n) TRY(cuts_rows_check(cuts, m->inputs.rows, m->parts[i].supports.file));
    CHECK(cuts_are_same(cuts, first), ERR_INPUT,
          "'%s' and '%s' were encoded with different cuts of '--l0': make one of them again",
          m->parts[0].supports.file, m->parts[i].supports.file);
  }
  return OK;
}

/* Join the metrics of the parts into those of the whole. */
static int metrics_join(struct merge *m)
{
  const struct part_input *first = &m->parts[0];
  const struct supports_shape *shape = &first->shape;
  const struct encode_part **parts;
  TRY(arena_alloc(&m->arena, &m->density, shape->k, sizeof *m->density));
  TRY(arena_alloc(&m->arena, &parts, m->count, sizeof *parts));
  for (int i = 0; i < m->count; i++) {
    for (idx k = 0; k < shape->k; k++) m->density[k] += m->parts[i].density[k];
    parts[i] = &m->parts[i].part;
  }
  TRY(part_join(parts, m->count, &m->arena, &m->whole));
  if (shape->has_codes) TRY(part_metrics(&m->metrics, &m->whole));
  metrics_density(&m->metrics, m->density, m->whole.n, shape->k);
  m->metrics.max_decoder_cosine = first->max_decoder_cosine;
  m->inputs.dictionary = first->supports.inputs.dictionary;
  m->inputs.encoder = first->supports.inputs.encoder;
  m->inputs.rows = content_hash(m->whole.rows_terms, m->whole.n, shape->p, 1);
  return cuts_compare(m);
}

/* Copy the parts into the result, unless they are ranges that are in its file already.  Then join
 * their metrics.  Rank 0. */
static int parts_copy(struct merge *m)
{
  struct supports_shape shape = m->parts[0].shape;
  struct progress progress;
  if (m->joins) {
    TRY(ranges_whole_begin(&m->ranges, m->parts, &m->file));
    return metrics_join(m);
  }
  shape.n = m->parts[0].part.total;
  if (m->parts[0].supports.cuts.n) shape.cuts = &m->parts[0].supports.cuts;
  TRY(supports_output_create(&m->file, m->place.file, &shape));
  progress_start(&progress, "merge", "rows", shape.n);
  for (int i = 0; i < m->count; i++) {
    TRY(part_copy_once(&m->parts[i], &m->file.sink, m->parts[i].part.first));
    progress_show(&progress, m->parts[i].part.first + m->parts[i].part.n);
  }
  return metrics_join(m);
}

/* Bytes: the memory of rank 0 for the program, the open parts and copying; the size of the result;
 * and what is read of the parts. */
struct plan {
  gidx program, parts, copying, disk, read;
};
enum { CHUNKS_BYTES = 6 << 20 }; /* one chunk of each array, read and written */

/* Find the plan.  The memory for copying is that of the largest part; checking the result takes no
 * more. */
static int plan_find(const struct merge *m, struct plan *p)
{
  struct supports_shape shape = m->parts[0].shape;
  gidx entries = 0, size;
  struct arena dry = {.is_dry = 1};
  *p = (struct plan){.program = memory_peak()};
  for (int i = 0; i < m->count && m->joins; i++) p->parts += (gidx)m->parts[i].arena.bytes;
  for (int i = 0; i < m->count && !m->joins; i++) {
    const struct support_source *s = &m->parts[i].supports.source;
    TRY(supports_taking_bytes(&m->parts[i].shape, s->entries, &size));
    p->copying = imax(p->copying, size);
    p->parts += (gidx)m->parts[i].arena.bytes;
    p->read += supports_input_file(&m->parts[i].supports)->input->facts.size;
    entries += s->entries;
  }
  gidx *density;
  TRY(arena_alloc(&dry, &density, shape.k, sizeof *density));
  p->copying += (gidx)dry.bytes + CHUNKS_BYTES;
  p->program -= p->parts;
  shape.n = m->parts[0].part.total;
  if (shape.encoder) shape.s = (idx)imin(ceil_div(entries, shape.n), shape.k - 1);
  p->disk = supports_bytes(&shape);
  return OK;
}

/* Add the times.  A rate is of all ranks together, but rank 0 alone reads the parts, and writes and
 * checks the result.  So a time is multiplied by the number of ranks. */
static void times_find(const struct run *run, const struct plan *p, const struct rates *r,
                       struct times *t)
{
  double ranks = run->comm.size, read = (double)p->read;
  times_add(t, "read", ranks * read / rate_at(r, RATE_READ, 1, 1, 1));
  times_add(t, "write", ranks * read / rate_at(r, RATE_WRITE, 1, 1, 1));
  times_add(t, "check", ranks * read / rate_at(r, RATE_CHECK, 1, 1, 1));
}

static int plan_json(const struct run *run, const struct merge *m, const struct plan *p,
                     const struct plan_rates *rates, const struct times *times)
{
  const struct part_input *first = &m->parts[0];
  struct json j;
  TRY(facts_begin(run, &j));
  json_long(&j, "parts", m->count);
  json_long(&j, "rows", first->part.total);
  json_long(&j, "atoms", first->shape.k);
  json_long(&j, "top_s", first->shape.s);
  json_object(&j, "rank_bytes");
  json_long(&j, "most", p->program + p->parts + p->copying);
  json_long(&j, "program", p->program);
  json_long(&j, "parts", p->parts);
  json_long(&j, "copying", p->copying);
  json_end(&j);
  json_long(&j, "present_bytes", memory_per_process(run->comm.local_size));
  json_long(&j, "read_bytes", p->read);
  json_long(&j, "disk_bytes", p->disk);
  TRY(report_times_json(rates, times, &j));
  return facts_end(&j);
}

/* Print the lines or the object of --dry-run.  Rank 0. */
static int plan_print(const struct run *run, const struct merge *m)
{
  const struct part_input *first = &m->parts[0];
  struct plan p;
  struct plan_rates rates;
  struct times times;
  const struct merge_options *o = run->options;
  TRY(plan_find(m, &p));
  TRY(report_rates_read(run, o->rates, threads_default(run, 0), "cpu", &rates, &times));
  if (rates.path) times_find(run, &p, &rates.rates, &times);
  if (run->wants_json) return plan_json(run, m, &p, &rates, &times);
  gidx most = p.program + p.parts + p.copying;
  printf("parts       %d of %lld rows together, %d atoms, up to %d a row\n", m->count,
         (long long)first->part.total, first->shape.k, first->shape.s);
  printf("memory      %.1f MB on rank 0: program %.1f, parts %.1f, copying %.1f\n",
         1e-6 * (double)most, 1e-6 * (double)p.program, 1e-6 * (double)p.parts,
         1e-6 * (double)p.copying);
  report_present(most, memory_per_process(run->comm.local_size));
  printf("read        up to %.1f MB, once\n", 1e-6 * (double)p.read);
  printf("disk        %.1f MB\n", 1e-6 * (double)p.disk);
  return report_times(&rates, &times);
}

static int entries_json(const struct merge *m)
{
  const struct part_input *first = &m->parts[0];
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "parts", m->count);
  json_long(own, "rows", first->part.total);
  json_long(own, "atoms", first->shape.k);
  json_long(own, "top_s", first->shape.s);
  json_hash(own, "fingerprint", m->whole.fingerprint);
  return OK;
}

/* Publish the result, and report.  Rank 0. */
static int whole_publish(struct run *run, struct merge *m)
{
  const struct part_input *first = &m->parts[0];
  struct run_fact facts[MAX_FACTS];
  struct supports_ending ending = {.metrics = &m->metrics,
                                   .mean = first->supports.mean,
                                   .rho = first->supports.rho,
                                   .rounds = first->supports.rounds,
                                   .normalized = first->normalized,
                                   .inputs = m->inputs};
  TRY(identity_text_hash(&run->identity, "all_rows_hash", m->inputs.rows));
  summary_inputs_set(&m->inputs);
  TRY(entries_json(m));
  TRY(supports_output_finish(&m->file, &ending, facts, run_facts(run, "cpu", 1, facts)));
  log_info("merge   parts=%d rows=%lld atoms=%d top_s=%d fingerprint=%016llx", m->count,
           (long long)first->part.total, first->shape.k, first->shape.s,
           (unsigned long long)m->whole.fingerprint);
  report_metrics(&m->metrics, first->shape.has_codes);
  log_info("wrote   %s", m->place.shown);
  return OK;
}

/* Refuse an output that would overwrite a part, or a file @LIST that names parts.  Rank 0. */
static int path_check(const struct merge *m)
{
  for (int i = 0; i < m->count && !m->joins; i++)
    TRY(outputs_check_inputs(&m->parts[i].supports.file, 1, NULL));
  for (int i = 0; i < m->names.n_files; i++)
    TRY(outputs_check_inputs(&m->names.files[i].path, 1, NULL));
  return OK;
}

/* Open and check the parts.  Rank 0: no other rank reads them. */
static int parts_begin(struct run *run, struct merge *m, const char *folder)
{
  TRY(m->joins ? ranges_open(m, folder) : parts_open(m));
  if (m->ranges.is_published) return OK;
  TRY(identities_check(m, &run->identity));
  TRY(parts_check(m));
  input_files_compared();
  return OK;
}

static void merge_close(struct merge *m)
{
  for (int i = 0; i < m->count; i++) part_input_close(&m->parts[i]);
  rows_input_close(&m->rows);
  shards_close(&m->names);
  ranges_whole_close(&m->ranges);
  arena_free(&m->arena);
  free(m->parts);
  free(m);
}

static int merge_command(struct run *run, const void *options, const char **arguments)
{
  struct merge_options *o = (struct merge_options *)options;
  static const char *none[] = {NULL};
  struct merge *m;
  TRY(struct_alloc(&m, sizeof *m));
  TRY(comm_agree(&run->comm, report_rates_check(o->rates, o->dry_run)));
  TRY(comm_agree(&run->comm, parts_collect(o, run->deck ? none : arguments)));
  TRY(folder_use(run, o, m));
  int is_root = run->comm.rank == 0;
  int status = m->joins ? OK : shards_open(&m->names, o->parts);
  if (!status && o->rows) status = rows_input_open(&m->rows, &run->comm, o->rows);
  TRY(inputs_agree(&run->comm, status));
  TRY(comm_agree(&run->comm, is_root ? parts_begin(run, m, o->parts) : OK));
  gidx published = m->ranges.is_published;
  TRY(comm_broadcast(&run->comm, &published, 1, sizeof published));
  if (published) {
    if (is_root) log_info("'%s' is published already: nothing is left to do", m->ranges.path);
    if (is_root && !o->dry_run) ranges_whole_remove(&m->ranges);
    merge_close(m);
    return OK;
  }
  if (o->dry_run) {
    TRY(comm_agree(&run->comm, is_root ? plan_print(run, m) : OK));
    merge_close(m);
    return OK;
  }
  const struct run_inputs inputs = {.rows = o->rows ? &m->rows : NULL};
  TRY(run_begin(run, &o->output, "supports.h5", &inputs, &m->place));
  TRY(rows_compare(run, m));
  TRY(comm_agree(&run->comm, is_root ? path_check(m) : OK));
  TRY(comm_agree(&run->comm, is_root ? parts_copy(m) : OK));
  TRY(inputs_confirm(&run->comm));
  TRY(comm_agree(&run->comm, is_root ? whole_publish(run, m) : OK));
  if (is_root && m->joins) ranges_whole_remove(&m->ranges);
  merge_close(m);
  return OK;
}

const struct command command_merge = {"merge",    "parts of an encoding -> supports of the whole",
                                      &merge_set, sizeof(struct merge_options),
                                      1,          merge_command};
