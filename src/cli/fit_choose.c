/* SPDX-License-Identifier: BSD-3-Clause
 * Each candidate is fitted on both halves of the rows.  The atoms of the first half are evaluated
 * with the first CHOOSING_ROWS rows of the second half, to which they were not fitted. */
#include "cli/fit_choose.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "cli/fit_atoms.h"
#include "fit/quiet.h"
#include "io/inputs.h"
#include "look/kept_codes.h"
#include "look/pairs.h"
#include "look/probing.h"
#include "model/route.h"

enum { CHOOSING_SWEEPS = 20, CHOOSING_ROWS = 16384 /* rows that evaluate */, STABLE_S = 8 };

/* The default of --top-s: 32 with --find codes; otherwise STABLE_S, which was the best measured
 * number (doc/features.md), or --encode-s if that is less. */
static const char *top_s_default(const struct fit_options *o)
{
  static char few[12]; /* options outlive the job */
  snprintf(few, sizeof few, "%d", (int)(o->encode_s ? imin(o->encode_s, STABLE_S) : STABLE_S));
  return strcmp(o->find, "codes") ? few : "32";
}

/* Set encode_s if --find implies it and it is not given.  With --top-s auto, which tries encode_s,
 * half of it, and so on, encode_s becomes 4 STABLE_S, or --atoms if that is less. */
static void numbers_default(struct fit_options *o)
{
  idx wanted = 4 * (o->top_s ? o->top_s : STABLE_S);
  if (o->encode_s || !strcmp(o->find, "codes")) return;
  o->encode_s = (idx)imax(o->top_s, imin(wanted, imin(MAX_TOP_S, o->asked.k)));
  o->encode_wanted = 4 * o->top_s;
}

int fit_numbers_settle(struct fit_options *o)
{
  const char *text = o->top_s_text = o->top_s_text ? o->top_s_text : top_s_default(o);
  char *end;
  int is_auto = !strcmp(text, "auto");
  long number = is_auto ? 0 : strtol(text, &end, 10);
  CHECK(is_auto || (isdigit((unsigned char)*text) && !*end), ERR_USAGE,
        "'%s' of 'top-s' is not a whole number: give one, or auto", text);
  CHECK(is_auto || (number >= 1 && number <= MAX_TOP_S), ERR_USAGE,
        "'top-s' is %ld, not in 1 .. %d", number, MAX_TOP_S);
  o->top_s = (idx)number;
  numbers_default(o);
  CHECK(!is_auto || o->encode_s, ERR_USAGE,
        "'--top-s auto' chooses among parts of '--encode-s': give the number of atoms per row as "
        "'--encode-s', such as 32");
  CHECK(is_auto || !o->labels, ERR_USAGE,
        "'--labels' is for '--top-s auto', which chooses by labels: leave '--labels' out");
  return OK;
}

/* The two halves, and the results of a candidate.  struct run says why it is on the heap. */
struct choosing {
  struct fit_job *j;
  struct row_part half[2], unseen_part;
  struct row_source rows[2], unseen; /* rows[h]: half h; unseen: the evaluating rows */
  float *atoms[2];                   /* [k][p] fitted on each half */
  real *mean[2];                     /* [p] */
  struct kept_codes kept;            /* rank 0, with labels */
  struct encode_task encode;
  struct encode_result encoded;
  struct arena arena;
};

static int nothing_write(void *self, const struct support_block *block)
{
  (void)self;
  (void)block;
  return OK;
}

/* Divide the rows.  If there are at least two sum blocks of rows (base/sums.h), the first half
 * consists of whole sum blocks. */
static int halves_open(struct choosing *w)
{
  const struct fit_job *j = w->j;
  const struct row_source *all = &j->rows.source;
  gidx middle = all->n / 2, k = j->task.k;
  if (middle >= ROW_BLOCK) middle -= middle % ROW_BLOCK;
  CHECK(middle >= k, ERR_INPUT,
        "'--top-s auto' fits %lld atoms on half of the %lld rows: give more rows, or a number",
        (long long)k, (long long)all->n);
  part_source(&w->half[0], all, 0, middle, &w->rows[0]);
  part_source(&w->half[1], all, middle, all->n - middle, &w->rows[1]);
  part_source(&w->unseen_part, all, middle, imin(all->n - middle, CHOOSING_ROWS), &w->unseen);
  for (int h = 0; h < 2; h++) {
    TRY(arena_alloc(&w->arena, &w->atoms[h], k * all->p, sizeof *w->atoms[h]));
    TRY(arena_alloc(&w->arena, &w->mean[h], all->p, sizeof *w->mean[h]));
  }
  return j->run->comm.rank ? OK : pairs_memory_check(k, k);
}

static int half_fit(struct choosing *w, idx top_s, int half)
{
  const struct fit_job *j = w->j;
  char name[64], why[1024];
  struct fit_task task = j->task;
  struct fit_quiet quiet = {.name = name, .atoms = w->atoms[half], .mean = w->mean[half]};
  task.rows = &w->rows[half];
  task.held = NULL;
  task.held_out_fraction = 0;
  task.top_s = top_s;
  task.rounds = (idx)imin(j->o->asked.rounds, imin(top_s, task.k));
  task.seed += (uint64_t)half;
  task.sweeps = imin(task.sweeps, CHOOSING_SWEEPS);
  task.max_seconds = 0;
  task.no_advice = 1;
  task.minibatch = j->parts.rows;
  if (task.minibatch < 0)
    TRY(fit_parts_choose(&task, &j->run->comm, &task.minibatch, why, sizeof why));
  snprintf(name, sizeof name, "top-s %d, half %d", top_s, half + 1);
  return fit_quiet_run(&task, &j->run->comm, &quiet);
}

static struct atom_array half_of(const struct choosing *w, int half)
{
  return (struct atom_array){w->atoms[half], w->j->task.k, 1, w->rows[0].p};
}

static int halves_compare(struct choosing *w, real *pw_mcc)
{
  const struct atom_array own = half_of(w, 0), other = half_of(w, 1);
  struct arena arena = {0};
  float *cosine;
  TRY(comm_agree(&w->j->run->comm, arena_alloc(&arena, &cosine, own.k, sizeof *cosine)));
  TRY(fit_atoms_pair(w->j, &own, "the first half", &other, "the second half", cosine, pw_mcc));
  arena_free(&arena);
  return OK;
}

/* *f1 <- how well single atoms predict the labels of the evaluating rows.  Rank 0. */
static int labels_probe(struct choosing *w, real *f1)
{
  struct probing p;
  struct probing_result result;
  gidx first = w->rows[0].n;
  int status = probing_open(&p, &w->kept.source, w->j->task.threads);
  if (!status) status = probing_run(&p, w->j->labels + first, 0, &result);
  if (!status) *f1 = result.threshold;
  probing_close(&p);
  return status;
}

/* Encode the evaluating rows with the atoms of the first half. */
static int unseen_encode(struct choosing *w, struct candidate *found)
{
  static const struct support_sink nowhere = {NULL, nothing_write};
  const struct fit_job *j = w->j;
  const struct fit_task *t = &j->task;
  struct comm *c = &j->run->comm;
  const struct atom_array half = half_of(w, 0);
  const struct atom_source own = atom_array_source(&half, "the first half");
  char reason[128];
  int keeps = j->labels && c->rank == 0, status = OK;
  idx s = (idx)imin(j->o->encode_s, t->k);
  if (keeps) status = kept_codes_open(&w->kept, w->unseen.n, s, t->k);
  TRY(comm_agree(c, status));
  w->encode = (struct encode_task){.rows = &w->unseen,
                                   .atoms = &own,
                                   .mean = t->center ? w->mean[0] : NULL,
                                   .sink = keeps ? &w->kept.sink : &nowhere,
                                   .top_s = s,
                                   .rounds = (idx)imin(j->o->asked.rounds, s),
                                   .threads = t->threads,
                                   .device = t->device,
                                   .variant = t->variant,
                                   .filter = t->filter,
                                   .codes = 1,
                                   .nonnegative = t->nonnegative,
                                   .no_cosine = 1};
  TRY(encode_grid_choose(&w->encode, c, reason, sizeof reason));
  TRY(encode_run(&w->encode, c, &w->encoded));
  found->explained = w->encoded.metrics.explained_variance;
  found->f1 = nan_canonical();
  if (keeps) status = labels_probe(w, &found->f1);
  encode_free(&w->encoded);
  kept_codes_close(&w->kept);
  return comm_agree(c, status);
}

static int candidate_measure(struct choosing *w, struct candidate *found)
{
  for (int half = 0; half < 2; half++) TRY(half_fit(w, found->top_s, half));
  TRY(halves_compare(w, &found->pw_mcc));
  TRY(unseen_encode(w, found));
  return comm_broadcast(&w->j->run->comm, found, 1, sizeof *found);
}

/* *top_s <- the number of the earlier run; 0: there is no earlier run, or no --resume.  Rank 0. */
static int earlier_read(const struct fit_job *j, idx *top_s)
{
  char value[32];
  TRY(job_earlier_value(&j->files.job, "top-s", value, sizeof value));
  *top_s = (idx)strtol(value, NULL, 10);
  return OK;
}

static int candidates_measure(struct fit_job *j)
{
  struct comm *c = &j->run->comm;
  struct choosing *w;
  TRY(comm_agree(c, struct_alloc(&w, sizeof *w)));
  w->j = j;
  TRY(comm_agree(c, halves_open(w)));
  j->candidates = candidates_make((idx)imin(j->o->encode_s, j->task.k), j->candidate);
  for (int i = 0; i < j->candidates; i++) TRY(candidate_measure(w, &j->candidate[i]));
  arena_free(&w->arena);
  free(w);
  return OK;
}

int fit_top_s_choose(struct fit_job *j)
{
  struct comm *c = &j->run->comm;
  struct fit_options *o = (struct fit_options *)j->o;
  static char text[12]; /* options outlive the job */
  if (o->top_s) return OK;
  TRY(comm_agree(c, c->rank ? OK : earlier_read(j, &o->top_s)));
  TRY(comm_broadcast(c, &o->top_s, 1, sizeof o->top_s));
  if (!o->top_s) {
    TRY(candidates_measure(j));
    j->chosen = candidate_choose(j->candidate, j->candidates);
    o->top_s = j->candidate[j->chosen].top_s;
  }
  snprintf(text, sizeof text, "%d", o->top_s);
  o->top_s_text = text;
  j->task.top_s = o->top_s;
  j->task.rounds = (idx)imin(o->asked.rounds, imin(o->top_s, o->asked.k));
  return OK;
}

static const char *why_not(const struct candidate *c)
{
  return !c->explains ? ", its atoms explain too little"
         : !c->tells  ? ", its atoms predict labels worse"
                      : "";
}

void fit_top_s_log(const struct fit_job *j)
{
  const struct fit_options *o = j->o;
  if (o->encode_wanted)
    log_info("numbers top-s %d, to fit with; encode-s %d, to describe with: %s", o->top_s,
             (int)imin(o->encode_s, o->asked.k),
             o->encode_s == o->encode_wanted ? "four times as many"
                                             : "as many as --atoms, and 256 at most");
  for (int i = 0; i < j->candidates; i++) {
    const struct candidate *c = &j->candidate[i];
    char label[32] = "";
    if (!isnan(c->f1)) snprintf(label, sizeof label, " label_f1=%.4f", c->f1);
    log_info("choose  top-s %d: pw_mcc=%.4f explained=%.4f%s%s", c->top_s, c->pw_mcc, c->explained,
             label, i == j->chosen ? ", chosen" : why_not(c));
  }
  if (j->candidates)
    log_info("choose  --top-s %d: its atoms agree most between the halves, among those that "
             "explain enough (with %d atoms per row, atoms that leave at most a fifth more "
             "unexplained than the best)",
             j->o->top_s, (int)imin(j->o->encode_s, j->task.k));
}
