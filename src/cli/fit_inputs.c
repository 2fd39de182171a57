/* SPDX-License-Identifier: BSD-3-Clause
 * Opening, and what can be checked before anything is read. */
#include "cli/fit_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/status.h"
#include "cli/command.h"
#include "io/classes.h"
#include "stage/fit_memory.h"
#include "stage/refit.h"

const struct option_row fit_name_rows[FIT_NAME_ROWS] = {
    {"rows", OPTION_TEXT, offsetof(struct fit_names, rows), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "activation rows (N, P), those that were encoded (default path: /rows)"},
    {"dictionary", OPTION_TEXT, offsetof(struct fit_names, dictionary), NULL, 0, 0, NULL,
     "FILE[:/PATH]", "atoms (K, P) or frames (K, d, P), unit norm (default path: /atoms)"},
    {"supports", OPTION_TEXT, offsetof(struct fit_names, supports), NULL, 0, 0, NULL,
     "FILE[:/PATH]", "supports and codes, from `sagitta encode` (default path: /supports)"},
    {"classes", OPTION_TEXT, offsetof(struct fit_names, classes), NULL, 0, 0, NULL, "FILE",
     "classes, from `sagitta color`; when not given they are found again"},
};

const struct option_row fit_compute_rows[FIT_COMPUTE_ROWS] = {
    {"threads", OPTION_INT, offsetof(struct fit_compute, threads), "0", 0, 4096, NULL, "COUNT",
     "threads in a rank; 0: the rank's share of the cores"},
    {"cpu-variant", OPTION_CHOICE, offsetof(struct fit_compute, cpu_variant), "auto", 0, 0,
     "auto|baseline|avx2|avx512vl|avx512", NULL, "instruction set of the loops"},
};

/* The mean that rows lose: the dictionary's or the supports', which must agree. */
static int mean_choose(struct fit_inputs *in)
{
  const struct supports_input *s = &in->supports;
  const struct atom_source *atoms = &in->dictionary.source;
  const real *mean = in->dictionary.mean;
  gidx p = atoms->p;
  CHECK(!s->mean || s->mean_length == p, ERR_INPUT,
        "'/mean' of '%s' has %lld columns, the atoms of '%s' have %lld", s->source.name,
        (long long)s->mean_length, atoms->name, (long long)p);
  CHECK(!mean || s->mean || s->top_s < 0, ERR_INPUT,
        "'%s' brings a mean, the codes of '%s' were solved without one", atoms->name,
        s->source.name);
  CHECK(!mean || !s->mean || memcmp(mean, s->mean, (size_t)p * sizeof *mean) == 0, ERR_INPUT,
        "the means of '%s' and '%s' differ", atoms->name, s->source.name);
  in->mean = mean ? mean : s->mean;
  return OK;
}

int fit_inputs_open(struct fit_inputs *in, const struct fit_names *names)
{
  *in = (struct fit_inputs){0};
  CHECK(names->rows, ERR_USAGE, "'--rows' is missing: the file with the activation rows");
  CHECK(names->dictionary, ERR_USAGE, "'--dictionary' is missing: make one with `sagitta seed`");
  CHECK(names->supports, ERR_USAGE, "'--supports' is missing: make them with `sagitta encode`");
  TRY(rows_open(&in->rows, names->rows));
  TRY(dictionary_open(&in->dictionary, names->dictionary));
  TRY(supports_open(&in->supports, names->supports));
  return mean_choose(in);
}

void fit_inputs_close(struct fit_inputs *in)
{
  rows_close(&in->rows);
  dictionary_close(&in->dictionary);
  supports_input_close(&in->supports);
  *in = (struct fit_inputs){0};
}

struct fit_task fit_task_of(const struct fit_inputs *in, const struct comm *c,
                            const struct fit_compute *compute)
{
  idx top_s = in->supports.top_s;
  return (struct fit_task){.rows = &in->rows.source,
                           .atoms = &in->dictionary.source,
                           .supports = &in->supports.source,
                           .mean = in->mean,
                           .rho = in->supports.rho,
                           .top_s = top_s > 0 ? top_s : 1,
                           .threads = threads_choose(c, compute->threads),
                           .variant = compute->cpu_variant};
}

static int plan_print(const struct comm *c, const struct fit_task *t, idx directions, gidx more)
{
  struct fit_memory m;
  gidx first, share = fit_rows(t->rows->n, c->size, 0, &first);
  TRY(fit_task_check(t));
  if (c->rank) return OK;
  fit_memory(t, c, directions, &m);
  printf("rows        %lld x %d, up to %lld a rank: whole blocks of %d\n", (long long)t->rows->n,
         t->rows->p, (long long)share, ROW_BLOCK);
  printf("atoms       %d of %d x %d, %d directions each: borders up to %d\n", t->atoms->k,
         t->atoms->d, t->rows->p, directions, t->atoms->d * directions);
  printf("supports    %lld atoms in all rows, %d a row\n", (long long)t->supports->entries,
         fit_support(t));
  printf("memory      up to %.1f MB a rank: rows %.1f, supports %.1f, atoms %.1f; then one of "
         "reading %.1f, classes %.1f, a batch %.1f, a sweep's end %.1f\n",
         1e-6 * (double)(m.total + more), 1e-6 * (double)m.rows, 1e-6 * (double)m.supports,
         1e-6 * (double)m.frames, 1e-6 * (double)m.load, 1e-6 * (double)m.classes,
         1e-6 * (double)(m.batch + more), 1e-6 * (double)m.round);
  printf("present     %.1f MB a rank\n", 1e-6 * (double)memory_share(c->local_size));
  return OK;
}

int fit_plan_print(struct comm *c, const struct fit_task *task, idx directions, gidx more)
{
  return comm_agree(c, plan_print(c, task, directions, more));
}

/* Own rows against classes of any origin. */
static int own_rows_check(const struct fit *f, const struct classes *classes, const char *file)
{
  struct arena arena = {0};
  gidx *start;
  int status = arena_take(&arena, &start, (gidx)f->n + 1, sizeof *start);
  for (gidx i = 0; i <= f->n && !status; i++) start[i] = i * f->s;
  struct support_view view = {f->n, f->k, status ? NULL : start, f->atoms};
  if (!status) status = classes_check(classes, &view, f->first, file);
  arena_free(&arena);
  return status;
}

int fit_classes(const struct fit *f, const char *file, struct classes *classes)
{
  if (!file) return refit_classes(f, classes);
  TRY(comm_agree(f->c, classes_read(classes, file, f->k)));
  return comm_agree_at(f->c, own_rows_check(f, classes, file), f->first);
}
