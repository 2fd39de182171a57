/* SPDX-License-Identifier: BSD-3-Clause
 * Inputs are opened, and checked as far as is possible before the data are read. */
#include "cli/fit_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sums.h"
#include "base/num.h"
#include "base/status.h"
#include "job/summary.h"
#include "job/threads.h"
#include "io/classes.h"
#include "io/inputs.h"
#include "refit/color.h"
#include "refit/layout.h"

const struct option_row fit_name_rows[FIT_NAME_ROWS] = {
    {"rows", OPTION_TEXTS, offsetof(struct fit_names, rows), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "the activation rows (N, P) that were encoded (default path: /rows); " ROWS_SHARDS,
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"dictionary", OPTION_TEXT, offsetof(struct fit_names, dictionary), NULL, 0, 0, NULL,
     "FILE[:/PATH]",
     "atoms of unit norm (K, P), or atoms of d orthonormal vectors each (K, d, "
     "P) (default path: /atoms)",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"supports", OPTION_TEXT, offsetof(struct fit_names, supports), NULL, 0, 0, NULL,
     "FILE[:/PATH]", "supports and codes, from `sagitta encode` (default path: /supports)",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"classes", OPTION_TEXT, offsetof(struct fit_names, classes), NULL, 0, 0, NULL, "FILE",
     "result of `sagitta color`: classes of atoms that share no row; without this option they are "
     "computed",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
};

const struct option_row fit_compute_rows[FIT_COMPUTE_ROWS] = {
    THREADS_OPTION(offsetof(struct fit_compute, threads)),
    CPU_VARIANT_OPTION(offsetof(struct fit_compute, cpu_variant), "instruction set of the loops"),
};

/* Refuse supports whose rows have different numbers of atoms, as those of imported encoders may. */
static int lengths_check(const struct supports_input *s)
{
  const struct support_source *source = &s->source;
  CHECK(
      !s->encoder || source->entries == source->n * s->top_s, ERR_INPUT,
      "'%s' has codes of an imported encoder, %s, with %.4g atoms per row on average, but all rows "
      "must have the same number: use `sagitta refit --keep-supports`, or encode with "
      "'--dictionary' instead of '--encoder'",
      source->name, s->encoder, (real)source->entries / (real)imax(source->n, 1));
  return OK;
}

int fit_inputs_open(struct fit_inputs *in, struct comm *c, const struct fit_names *names)
{
  *in = (struct fit_inputs){0};
  CHECK(names->rows, ERR_USAGE, "'--rows' is missing: give the file with the activation rows");
  CHECK(names->dictionary, ERR_USAGE, "'--dictionary' is missing: make one with `sagitta seed`");
  CHECK(names->supports, ERR_USAGE, "'--supports' is missing: make them with `sagitta encode`");
  TRY(rows_input_open(&in->rows, c, names->rows));
  TRY(dictionary_input_open(&in->dictionary, names->dictionary));
  TRY(supports_input_open(&in->supports, names->supports));
  TRY(lengths_check(&in->supports));
  if (names->classes) {
    TRY(input_of_folder(names->classes, "classes.h5", in->classes_file));
    TRY(h5_open(&in->classes, in->classes_file));
  }
  return supports_mean_find(&in->supports, in->dictionary.source.name, in->dictionary.mean,
                            in->dictionary.source.p, &in->mean);
}

void fit_inputs_close(struct fit_inputs *in)
{
  rows_input_close(&in->rows);
  dictionary_input_close(&in->dictionary);
  supports_input_close(&in->supports);
  h5_close(&in->classes);
  *in = (struct fit_inputs){0};
}

struct run_inputs fit_inputs_files(const struct fit_inputs *in)
{
  return (struct run_inputs){
      .name = {in->dictionary.file, in->supports.file, in->classes.id ? in->classes_file : NULL},
      .rows = &in->rows};
}

struct refit_task fit_inputs_task(const struct fit_inputs *in, const struct run *run,
                                  const struct fit_compute *compute)
{
  idx top_s = in->supports.top_s;
  return (struct refit_task){.rows = &in->rows.source,
                             .atoms = &in->dictionary.source,
                             .supports = &in->supports.source,
                             .mean = in->mean,
                             .rho = in->supports.rho,
                             .nonnegative = in->supports.nonnegative,
                             .named = in->supports.inputs,
                             .top_s = top_s > 0 ? top_s : 1,
                             .threads = threads_default(run, compute->threads),
                             .variant = compute->cpu_variant};
}

static int plan_json(const struct run *run, const struct fit_plan *plan,
                     const struct refit_memory *m, gidx share)
{
  const struct refit_task *t = plan->task;
  struct json j;
  TRY(facts_begin(run, &j));
  json_long(&j, "rows", t->rows->n);
  json_long(&j, "columns", t->rows->p);
  json_long(&j, "rank_rows", share);
  json_long(&j, "atoms", t->atoms->k);
  json_long(&j, "frame", t->atoms->d);
  json_long(&j, "directions", plan->directions);
  json_long(&j, "entries", t->supports->entries);
  json_long(&j, "top_s", refit_task_support(t));
  json_object(&j, "rank_bytes");
  json_long(&j, "most", m->total);
  json_long(&j, "rows", m->held.rows);
  json_long(&j, "supports", m->held.supports);
  json_long(&j, "atoms", m->held.frames + m->part);
  json_long(&j, "reading", m->load);
  json_long(&j, "classes", m->classes);
  json_long(&j, "batch", m->batch);
  json_long(&j, "sweep_end", m->sweep_end);
  json_end(&j);
  json_long(&j, "shared_bytes", m->held.shared);
  json_long(&j, "present_bytes", memory_per_process(run->comm.local_size));
  json_long(&j, "disk_bytes", plan->disk);
  if (plan->rates) TRY(report_times_json(plan->rates, plan->times, &j));
  return facts_end(&j);
}

static void plan_lines(const struct comm *c, const struct fit_plan *plan,
                       const struct refit_memory *m, gidx share)
{
  const struct refit_task *t = plan->task;
  idx d = t->atoms->d;
  printf("rows        %lld x %d, up to %lld a rank: whole blocks of %d rows\n",
         (long long)t->rows->n, t->rows->p, (long long)share, ROW_BLOCK);
  printf("atoms       %d of %d x %d, %d directions each; systems have borders up to %d\n",
         t->atoms->k, d, t->rows->p, plan->directions, d * plan->directions);
  printf("supports    %lld atoms in all rows, %d per row\n", (long long)t->supports->entries,
         refit_task_support(t));
  printf("memory      up to %.1f MB a rank: rows %.1f, supports %.1f, atoms %.1f; then one of "
         "reading %.1f, classes %.1f, a batch %.1f, a sweep's end %.1f\n",
         1e-6 * (double)m->total, 1e-6 * (double)m->held.rows, 1e-6 * (double)m->held.supports,
         1e-6 * (double)(m->held.frames + m->part), 1e-6 * (double)m->load,
         1e-6 * (double)m->classes, 1e-6 * (double)m->batch, 1e-6 * (double)m->sweep_end);
  if (m->held.shared)
    printf("shared      %.1f MB once per node: atoms; each of its %d ranks counts an equal part\n",
           1e-6 * (double)m->held.shared, c->local_size);
  printf("present     %.1f MB a rank\n", 1e-6 * (double)memory_per_process(c->local_size));
  printf("disk        %.1f MB%s\n", 1e-6 * (double)plan->disk, plan->how_disk);
}

static int plan_print(const struct run *run, const struct fit_plan *plan)
{
  const struct refit_task *t = plan->task;
  const struct comm *c = plan->rows ? plan->rows : &run->comm;
  struct refit_memory m;
  gidx first, share = refit_rows_partition(t->rows->n, c->size, 0, &first);
  TRY(refit_task_check(t));
  if (run->comm.rank) return OK;
  TRY(refit_memory(t, c, plan->bytes_of, plan->directions, &m));
  if (run->wants_json) return plan_json(run, plan, &m, share);
  plan_lines(c, plan, &m, share);
  return plan->rates ? report_times(plan->rates, plan->times) : OK;
}

int fit_plan_print(struct run *run, const struct fit_plan *plan)
{
  return comm_agree(&run->comm, plan_print(run, plan));
}

/* Check that no two atoms of a class share a row of this rank: any program may have written the
 * file. */
static int own_rows_check(const struct refit_state *f, const struct classes *classes,
                          const char *file)
{
  struct arena arena = {0};
  gidx *start;
  int status = arena_alloc(&arena, &start, (gidx)f->n + 1, sizeof *start);
  for (gidx i = 0; i <= f->n && !status; i++) start[i] = i * f->s;
  struct support_view view = {f->n, f->k, status ? NULL : start, f->atoms};
  if (!status) status = classes_check(classes, &view, f->first, file);
  arena_free(&arena);
  return status;
}

int fit_inputs_classes(const struct fit_inputs *in, const struct refit_state *f,
                       const struct color_looker *looker, struct classes *classes)
{
  if (!in->classes.id) return color_state(f, looker, classes);
  TRY(comm_agree(f->c, classes_read(classes, &in->classes, f->k)));
  return comm_agree_at(f->c, own_rows_check(f, classes, in->classes.path), f->first);
}
