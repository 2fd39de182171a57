/* SPDX-License-Identifier: BSD-3-Clause
 * First each thread takes runs of atoms, and chooses probes among them for all labels.  Then each
 * thread takes labels, and evaluates their probes.  Probes are totally ordered, so the choice does
 * not depend on the threads. */
#include "look/probing.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "model/logistic.h"

enum { RUNS = 64 }; /* runs of consecutive atoms; each has its own choices */

const int probing_sizes[PROBING_SIZES] = {1, 2, 5};

/* Call a function for every positive code, in row order. */
static int codes_visit(struct probing *p, const struct support_source *s,
                       void (*visit)(struct probing *p, int half, idx atom, struct probe_entry e))
{
  gidx begin;
  for (gidx first = 0, count; first < s->n; first += count) {
    struct supports block = {0};
    TRY(supports_block(s, first, s->n - first, &count, &begin));
    int status = supports_load(&block, s, first, count, 1);
    for (gidx i = 0; i < count && !status; i++)
      for (gidx e = block.view.start[i]; e < block.view.start[i + 1]; e++)
        if (block.codes[e] > 0)
          visit(p, first + i >= s->n / 2, block.view.atoms[e],
                (struct probe_entry){block.codes[e], (idx)(first + i)});
    supports_free(&block);
    TRY(status);
  }
  return OK;
}

static void entry_count(struct probing *p, int half, idx atom, struct probe_entry e)
{
  (void)e;
  p->half[half].start[atom + 1]++;
}

/* start[atom + 1] is the position for the next entry of the atom.  At the end it is where the next
 * atom begins. */
static void entry_put(struct probing *p, int half, idx atom, struct probe_entry e)
{
  p->half[half].entries[p->half[half].start[atom + 1]++] = e;
}

/* Turn counts into starts.  The start of an atom is stored in start[atom + 1], for entry_put(). */
static int half_alloc(struct probing *p, struct probing_half *h)
{
  gidx total = 0;
  for (idx a = 0; a < p->k; a++) {
    gidx count = h->start[a + 1];
    h->start[a + 1] = total;
    total += count;
  }
  return arena_alloc(&p->arena, &h->entries, total, sizeof *h->entries);
}

static void atom_sort(void *self, gidx a)
{
  struct probing *p = self;
  for (int h = 0; h < 2; h++)
    probe_sort(p->half[h].entries + p->half[h].start[a],
               p->half[h].start[a + 1] - p->half[h].start[a]);
}

int probing_open(struct probing *p, const struct support_source *codes, int threads)
{
  *p = (struct probing){.n = codes->n, .k = codes->k, .threads = threads};
  CHECK(codes->d == 1, ERR_INPUT,
        "'%s' has frames of %d vectors: labels are predicted by atoms that are one vector each",
        codes->name, codes->d);
  CHECK(codes->n <= INT32_MAX, ERR_INPUT,
        "'%s' has %lld rows: labels are predicted for at most %d rows", codes->name,
        (long long)codes->n, INT32_MAX);
  for (int h = 0; h < 2; h++)
    TRY(arena_alloc(&p->arena, &p->half[h].start, (gidx)p->k + 1, sizeof *p->half[h].start));
  TRY(codes_visit(p, codes, entry_count));
  for (int h = 0; h < 2; h++) TRY(half_alloc(p, &p->half[h]));
  TRY(codes_visit(p, codes, entry_put));
  team_run(threads, p->k, atom_sort, p);
  return OK;
}

void probing_close(struct probing *p)
{
  arena_free(&p->arena);
}

/* Data for one series of labels. */
struct probing_job {
  const struct probing *p;
  struct probe_series series;
  struct probe_choice *choices; /* [RUNS][m] job_run() merges all runs into run 0 */
  struct probe_work work[RUNS];
  struct probing_result *scores; /* [m] F1 of each label */
  int *status;                   /* [m] status of each label */
  struct arena arena;
};

static const struct probe_entry *entries_of(const struct probing *p, int half, idx atom,
                                            gidx *count)
{
  const struct probing_half *h = &p->half[half];
  *count = h->start[atom + 1] - h->start[atom];
  return h->entries + h->start[atom];
}

/* Choose probes among the atoms of a run. */
static void atoms_try(void *self, gidx run)
{
  struct probing_job *j = self;
  struct probe_choice *choices = j->choices + run * j->series.m;
  gidx k = j->p->k, count;
  for (idx a = (idx)(run * k / RUNS); a < (run + 1) * k / RUNS; a++) {
    const struct probe_entry *entries = entries_of(j->p, 0, a, &count);
    probe_atom(&j->series, a, entries, count, &j->work[run], choices);
  }
}

/* F1 of one atom on the second half of the rows; 0 if atom is -1.  The atom fires if its code is at
 * least the threshold. */
static real single_score(const struct probing_job *j, idx label, idx atom, float threshold)
{
  gidx count;
  if (atom < 0) return 0;
  const struct probe_entry *entries = entries_of(j->p, 1, atom, &count);
  return probe_f1(&j->series, label, threshold, entries, count);
}

/* The rows of a half in which at least one of k atoms has a positive code.  Each row is listed
 * once: first the rows of the first atom in the order of its entries, then those that the second
 * atom adds, and so on. */
struct row_scores {
  gidx count;
  idx *row;
  float *score;         /* [count][k] codes */
  unsigned char *label; /* [count] 1 if the row has the label */
};

/* Fill `out`.  position[row] is 0 if the row is not listed yet, otherwise 1 + its index in the
 * list.  arena_alloc() sets all positions to 0. */
static int rows_list(const struct probing_job *j, int half, idx label, int k,
                     const struct probe *atoms, struct arena *arena, struct row_scores *out)
{
  gidx total = 0, count[LOGISTIC_MOST];
  const struct probe_entry *entries[LOGISTIC_MOST];
  idx *position;
  for (int i = 0; i < k; total += count[i++])
    entries[i] = entries_of(j->p, half, atoms[i].atom, &count[i]);
  TRY(arena_alloc(arena, &position, j->p->n, sizeof *position));
  TRY(arena_alloc(arena, &out->row, total, sizeof *out->row));
  TRY(arena_alloc(arena, &out->score, total * k, sizeof *out->score));
  TRY(arena_alloc(arena, &out->label, total, 1));
  out->count = 0;
  for (int i = 0; i < k; i++)
    for (gidx e = 0; e < count[i]; e++) {
      idx row = entries[i][e].row;
      if (!position[row]) {
        out->row[out->count] = row;
        out->label[out->count] = j->series.of_row[row] == label;
        position[row] = (idx)++out->count;
      }
      out->score[(gidx)(position[row] - 1) * k + i] = entries[i][e].score;
    }
  return OK;
}

/* The listed rows of a half, and two counts of its other rows, in which the k atoms have no code:
 * how many there are, and how many of these have the label. */
static struct logistic_rows logistic_rows_of(const struct probing_job *j, int half, idx label,
                                             int k, const struct row_scores *rows)
{
  const struct probe_series *s = &j->series;
  gidx labels = s->count[half][label], all = half ? s->n - s->half : s->half;
  for (gidx r = 0; r < rows->count; r++) labels -= rows->label[r];
  return (struct logistic_rows){.k = k,
                                .listed = rows->count,
                                .score = rows->score,
                                .label = rows->label,
                                .others = all - rows->count,
                                .others_label = labels};
}

/* *f1 <- F1 on the second half of the rows, of a regression on k atoms.  It is fitted on the first
 * half. */
static int logistic_score_find(const struct probing_job *j, idx label, int k,
                               const struct probe *atoms, struct arena *arena, real *f1)
{
  static const float zero[LOGISTIC_MOST];
  struct row_scores rows;
  real weight[LOGISTIC_MOST + 1];
  gidx hits = 0, said = 0;
  TRY(rows_list(j, 0, label, k, atoms, arena, &rows));
  const struct logistic_rows first = logistic_rows_of(j, 0, label, k, &rows);
  logistic_fit(&first, weight);
  TRY(rows_list(j, 1, label, k, atoms, arena, &rows));
  const struct logistic_rows second = logistic_rows_of(j, 1, label, k, &rows);
  for (gidx r = 0; r < rows.count; r++)
    if (logistic_score(k, weight, rows.score + r * k) > 0) {
      said++;
      hits += rows.label[r];
    }
  if (logistic_score(k, weight, zero) > 0) {
    said += second.others;
    hits += second.others_label;
  }
  *f1 = hits ? 2 * (real)hits / (real)(said + j->series.count[1][label]) : 0;
  return OK;
}

static int label_score(struct probing_job *j, idx label)
{
  const struct probe_choice *c = &j->choices[label];
  struct probing_result *r = &j->scores[label];
  struct arena arena = {0};
  int status = OK;
  r->threshold = single_score(j, label, c->best[0].atom, c->best[0].threshold);
  r->fires = single_score(j, label, c->fires.atom, 0);
  for (int i = 0; i < PROBING_SIZES && !status; i++) {
    int k = 0;
    while (k < probing_sizes[i] && c->best[k].atom >= 0) k++;
    if (k) status = logistic_score_find(j, label, k, c->best, &arena, &r->logistic[i]);
  }
  arena_free(&arena);
  return status;
}

static void label_run(void *self, gidx label)
{
  struct probing_job *j = self;
  j->status[label] = label_score(j, (idx)label);
  status_clear(); /* of this thread */
}

static int job_alloc(struct probing_job *j, const gidx *labels, int shift)
{
  TRY(probe_series_init(&j->series, labels, j->p->n, shift, &j->arena));
  idx m = j->series.m;
  TRY(arena_alloc(&j->arena, &j->choices, (gidx)RUNS * m, sizeof *j->choices));
  TRY(arena_alloc(&j->arena, &j->scores, m, sizeof *j->scores));
  TRY(arena_alloc(&j->arena, &j->status, m, sizeof *j->status));
  for (gidx i = 0; i < (gidx)RUNS * m; i++) probe_choice_init(&j->choices[i]);
  for (int run = 0; run < RUNS; run++) TRY(probe_work_init(&j->work[run], m, &j->arena));
  return OK;
}

static int job_run(struct probing_job *j)
{
  idx m = j->series.m;
  team_run(j->p->threads, RUNS, atoms_try, j);
  for (int run = 1; run < RUNS; run++)
    for (idx c = 0; c < m; c++) probe_choice_merge(&j->choices[c], &j->choices[run * m + c]);
  team_run(j->p->threads, m, label_run, j);
  for (idx c = 0; c < m; c++)
    CHECK(!j->status[c], ERR_MEMORY, "cannot allocate memory for the probes of a label");
  return OK;
}

/* *out <- the means over all labels. */
static void means_find(const struct probing_job *j, struct probing_result *out)
{
  idx m = j->series.m;
  *out = (struct probing_result){.labels = m};
  for (idx c = 0; c < m; c++) {
    out->threshold += j->scores[c].threshold;
    out->fires += j->scores[c].fires;
    for (int i = 0; i < PROBING_SIZES; i++) out->logistic[i] += j->scores[c].logistic[i];
  }
  out->threshold = m ? out->threshold / m : nan_canonical();
  out->fires = m ? out->fires / m : nan_canonical();
  for (int i = 0; i < PROBING_SIZES; i++)
    out->logistic[i] = m ? out->logistic[i] / m : nan_canonical();
}

int probing_run(const struct probing *p, const gidx *labels, int shift,
                struct probing_result *result)
{
  struct probing_job *j;
  TRY(struct_alloc(&j, sizeof *j));
  j->p = p;
  int status = job_alloc(j, labels, shift);
  if (!status) status = job_run(j);
  if (!status) means_find(j, result);
  arena_free(&j->arena);
  free(j);
  return status;
}
