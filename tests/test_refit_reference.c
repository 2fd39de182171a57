/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: directions, systems and a sweep over all ranks have the bits of the reference, for frames,
 * penalties, absent sum blocks, atoms in a single row, equal atoms, and more directions than exist.
 * A class takes few collective operations.
 * RUN: np=1 3, full=1 2 3 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "fit_made.h"
#include "model/assembly.h"
#include "model/step.h"
#include "refit/batch_systems.h"
#include "refit/color.h"
#include "refit/refit.h"
#include "refit/step.h"
#include "tap.h"
#include "variants.h"

enum { SWEEPS = 2 };

/* The same state on one rank, in plain form.  The last four members are for the current atom. */
struct plain {
  const struct made *m;
  real *frames, *codes, *residual;
  gidx *row;            /* its rows */
  real *t;              /* their codes */
  gidx *entry;          /* the numbers of these codes */
  real **rows_residual; /* the residuals of the rows */
};

static struct plain plain_of(const struct made *m)
{
  struct plain w = {.m = m};
  gidx frame = (gidx)m->d * P;
  w.frames = zeros(m->k * frame, sizeof(real));
  w.codes = zeros((gidx)N * S * m->d, sizeof(real));
  w.residual = zeros((gidx)N * P, sizeof(real));
  w.row = zeros(N, sizeof *w.row);
  w.entry = zeros(N, sizeof *w.entry);
  w.t = zeros((gidx)N * m->d, sizeof(real));
  w.rows_residual = zeros(N, sizeof *w.rows_residual);
  for (gidx i = 0; i < m->k * frame; i++) w.frames[i] = m->frames[i];
  for (gidx i = 0; i < (gidx)N * S * m->d; i++) w.codes[i] = m->codes[i];
  return w;
}

static void plain_residuals(struct plain *w)
{
  const struct made *m = w->m;
  for (gidx i = 0; i < N; i++) {
    const real *frames[S];
    for (idx j = 0; j < S; j++) frames[j] = w->frames + (gidx)m->atoms[i * S + j] * m->d * P;
    residual_row(m->x + i * P, frames, w->codes + i * S * m->d, S, m->d, P, w->residual + i * P);
  }
}

static void plain_free(struct plain *w)
{
  free(w->frames);
  free(w->codes);
  free(w->residual);
  free(w->row);
  free(w->entry);
  free(w->t);
  free(w->rows_residual);
}

static struct atom_view view_of(struct plain *w, idx atom)
{
  idx d = w->m->d;
  struct atom_view v = {.d = d, .p = P, .rho = w->m->rho, .row = w->row, .codes = w->t};
  v.frame = w->frames + (gidx)atom * d * P;
  v.residual = (const real *const *)w->rows_residual;
  for (gidx e = 0; e < (gidx)N * S; e++) {
    if (w->m->atoms[e] != atom) continue;
    w->row[v.n] = e / S;
    w->entry[v.n] = e;
    w->rows_residual[v.n] = w->residual + e / S * P;
    memcpy(w->t + v.n++ * d, w->codes + e * d, (size_t)d * sizeof(real));
  }
  return v;
}

static int same(const void *a, const void *b, gidx count)
{
  return count == 0 || memcmp(a, b, (size_t)count * sizeof(real)) == 0;
}

/* Compare a batch of all atoms that have rows with the reference: directions, and this rank's
 * systems. */
static int systems_compare(struct refit_state *f, struct plain *w, const struct classes *classes,
                           idx q)
{
  struct atom_batch b;
  struct batch_systems a;
  int good = 1;
  TRY(atom_batch_make(&b, f, classes->atoms, (idx)classes->start[classes->count]));
  TRY(batch_systems_make(&a, f, &b, q));
  for (idx m = 0; m < b.count; m++) {
    struct arena arena = {0};
    struct arrow_system s;
    struct atom_view v = view_of(w, b.atom[m]);
    real *e = zeros((gidx)q * P, sizeof *e);
    idx kept, own = m - b.mine_first;
    TRY(directions_reference(&v, q, e, &kept));
    good &= kept == a.kept[m] && same(e, a.e + (gidx)m * q * P, kept * P);
    TRY(assembly_reference(&v, e, kept, &arena, &s));
    if (own >= 0 && own < b.mine) {
      const struct arrow_system *t = a.system + own;
      good &= s.n == t->n && s.k == t->k && same(s.h, t->h, s.n * s.d * s.d);
      good &= same(s.b, t->b, s.n * s.d * s.k) && same(s.g, t->g, s.n * s.d);
      good &= same(s.c, t->c, (gidx)s.k * s.k) && same(s.g_b, t->g_b, s.k);
    }
    arena_free(&arena);
    free(e);
  }
  batch_systems_free(&a);
  atom_batch_free(&b);
  return comm_agree(f->c, good ? OK : status_fail(ERR_ANSWER, __FILE__, __LINE__, "differ"));
}

/* Make one sweep by the reference, and compare the outcomes with steps[].  *accepted grows by the
 * number of accepted steps. */
static int sweep_reference(struct plain *w, const struct classes *classes, idx q,
                           const struct atom_step *steps, gidx *accepted)
{
  idx d = w->m->d;
  int good = 1;
  for (gidx i = 0; i < classes->start[classes->count]; i++) {
    idx atom = classes->atoms[i];
    struct atom_view v = view_of(w, atom);
    struct step_outcome out;
    real *codes = zeros(v.n * d, sizeof *codes);
    memcpy(codes, w->t, (size_t)(v.n * d) * sizeof *codes);
    if (step_reference(&v, q, w->frames + (gidx)atom * d * P, codes, w->rows_residual, &out))
      return 0;
    for (gidx e = 0; e < v.n; e++)
      memcpy(w->codes + w->entry[e] * d, codes + e * d, (size_t)d * sizeof(real));
    *accepted += out.accepted;
    good &= out.accepted == steps[atom].accepted && out.arrow.retries == steps[atom].retries;
    good &= same(&out.arrow.log_det, &steps[atom].log_det, 1);
    free(codes);
  }
  return good;
}

static int state_compare(const struct refit_state *f, const struct plain *w)
{
  gidx entries = (gidx)f->n * S * f->d, at = f->first * S * f->d;
  return same(f->frames, w->frames, (gidx)f->k * f->d * P) &&
         same(f->codes, w->codes + at, entries) &&
         same(f->residual, w->residual + f->first * P, (gidx)f->n * P);
}

/* If the objective before a step is set to 0, every step is a rise.  There are 22 retries, each
 * with ten times the last ridge, and the state does not change. */
static int rises_check(struct refit_state *f, const struct classes *classes, idx q)
{
  struct atom_batch b;
  struct batch_systems a;
  struct phase phases[REFIT_PHASES] = {{0}};
  struct atom_step *steps = zeros(f->k, sizeof *steps);
  int good = 1;
  TRY(atom_batch_make(&b, f, classes->atoms, (idx)classes->start[1]));
  TRY(batch_systems_make(&a, f, &b, q));
  for (idx i = 0; i < b.mine; i++) a.before[i] = 0;
  TRY(atom_batch_step(f, &b, &a, &phases[REFIT_SOLVE], &phases[REFIT_MOVE], steps));
  for (idx m = 0; m < b.count; m++)
    good &= !steps[m].accepted && steps[m].retries == ARROW_MAX_RETRIES && steps[m].ridge > 1e12;
  for (idx i = 0; i < b.mine; i++) {
    real max = 0, ridge;
    const struct arrow_system *s = a.system + i;
    if (s->k > 0 && f->d == 1) {
      for (idx j = 0; j < s->n; j++) max = fmax(max, fabs(s->h[j]));
      ridge = 1e-3 * max;
      for (int r = 1; r < ARROW_MAX_RETRIES; r++) ridge = 10 * ridge;
      good &= ridge == steps[b.mine_first + i].ridge;
    }
  }
  free(steps);
  batch_systems_free(&a);
  atom_batch_free(&b);
  return comm_agree(f->c, good ? OK : status_fail(ERR_ANSWER, __FILE__, __LINE__, "accepted"));
}

/* The last rank fails inside a sweep, in lockstep.  All ranks come to the end, and learn of the
 * failure there.  Their state is then of no use. */
static int failure_check(struct refit_state *f, const struct classes *classes, idx q)
{
  struct phase phases[REFIT_PHASES] = {{0}};
  struct comm *c = f->c;
  struct atom_step *steps = zeros(f->k, sizeof *steps);
  for (int later = 0; later < 2; later++) {
    struct atom_batch b;
    struct batch_systems a;
    int fails = c->rank == c->size - 1;
    TRY(atom_batch_make(&b, f, classes->atoms, (idx)classes->start[1]));
    comm_lockstep_begin(c);
    if (fails && !later) comm_record(c, status_fail(ERR_MEMORY, __FILE__, __LINE__, "as asked"));
    TRY(batch_systems_make(&a, f, &b, q));
    if (fails && later) comm_record(c, status_fail(ERR_MEMORY, __FILE__, __LINE__, "as asked"));
    TRY(atom_batch_step(f, &b, &a, &phases[REFIT_SOLVE], &phases[REFIT_MOVE], steps));
    comm_lockstep_end(c);
    int status = comm_agree(c, OK);
    ok(status == ERR_MEMORY && strstr(status_message(), "as asked"), "a rank that fails: %s",
       status_message());
    comm_recover(c);
    status_clear();
    batch_systems_free(&a);
    atom_batch_free(&b);
  }
  free(steps);
  return OK;
}

/* The most collective operations of a sweep: three outside of the classes; and for each class two
 * per direction, one for rows, and three each time that steps are proposed. */
static gidx calls_most(const struct classes *classes, const struct atom_step *steps, idx q)
{
  gidx calls = 3;
  for (idx color = 0; color < classes->count; color++) {
    idx most = 0;
    for (gidx i = classes->start[color]; i < classes->start[color + 1]; i++)
      if (steps[classes->atoms[i]].retries > most) most = steps[classes->atoms[i]].retries;
    calls += 2 * q + 1 + 3 * (1 + most);
  }
  return calls;
}

static void calls_check(const struct comm *c, gidx calls, const struct classes *classes,
                        const struct atom_step *steps, idx q, const char *name)
{
  gidx most = c->size > 1 ? calls_most(classes, steps, q) : 0;
  ok(calls <= most, "%s: %lld collective operations, at most %lld", name, (long long)calls,
     (long long)most);
  if (c->rank == 0 && c->size > 1)
    printf("# %s: %d directions, %.1f collective operations per class\n", name, q,
           (double)calls / classes->count);
}

static int case_run(struct comm *c, struct made *m, idx q, const char *variant, const char *name)
{
  struct row_source rows = {.n = N, .p = P, .name = "rows", .self = m, .read = rows_read};
  struct atom_source atoms = {
      .k = m->k, .d = m->d, .p = P, .name = "atoms", .self = m, .read = atoms_read};
  struct support_source supports = {.n = N,
                                    .entries = (gidx)N * S,
                                    .k = m->k,
                                    .d = m->d,
                                    .has_codes = 1,
                                    .name = "supports",
                                    .self = m,
                                    .starts = starts_read,
                                    .read = entries_read};
  struct refit_task task = {.rows = &rows,
                            .atoms = &atoms,
                            .supports = &supports,
                            .rho = m->rho,
                            .top_s = S,
                            .threads = c->size == 1 ? 2 : 1,
                            .variant = variant};
  struct plain w = plain_of(m);
  struct refit_state f;
  struct classes classes;
  struct phase phases[REFIT_PHASES];
  struct sweep_counts counts;
  struct atom_step *steps = zeros(m->k, sizeof *steps);
  refit_phases(phases);
  int status = refit_state_load(&f, &task, c);
  if (status == ERR_DEVICE) {
    skip("%s: this processor lacks %s", name, variant);
    status_clear();
    return OK;
  }
  TRY(status);
  TRY(color_state(&f, NULL, &classes));
  TRY(refit_state_residuals(&f));
  plain_residuals(&w);
  ok(systems_compare(&f, &w, &classes, q) == OK, "%s: directions and systems", name);
  for (int sweep = 1; sweep <= SWEEPS; sweep++) {
    const struct sweep_task sweep_of = {.classes = &classes, .q = q, .what = "refit"};
    gidx accepted = 0;
    int stopped;
    gidx before = c->calls;
    TRY(refit_sweep(&f, &sweep_of, phases, steps, &counts, &stopped));
    calls_check(c, c->calls - before, &classes, steps, q, name);
    plain_residuals(&w);
    ok(sweep_reference(&w, &classes, q, steps, &accepted),
       "%s: sweep %d, outcomes and log determinants", name, sweep);
    ok(accepted == counts.accepted, "%s: %lld of %d steps accepted, %lld escalated", name,
       (long long)accepted, m->k - 1, (long long)counts.escalated);
  }
  ok(state_compare(&f, &w), "%s: frames, codes and residuals", name);
  ok(rises_check(&f, &classes, q) == OK && state_compare(&f, &w), "%s: rises are given up", name);
  if (c->size > 1) TRY(failure_check(&f, &classes, q));
  free(steps);
  classes_free(&classes);
  refit_state_free(&f);
  plain_free(&w);
  return OK;
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 99;
  tap_rank = c.rank;
  log_setup(LOG_QUIET, c.rank);
  const struct {
    idx k, d, q;
    real rho, noise;
    const char *variant, *name;
  } cases[] = {
      {40, 1, 4, 0, 0.3, "auto", "atoms"},
      {40, 1, 1, 0.25, 0.3, NARROW_VARIANT, "atoms, rho, one direction, narrow"},
      {40, 1, 4, 0.25, 0.3, NARROW_VARIANT, "atoms, rho, narrow"},
      {40, 1, 4, 0, 0, "auto", "an exact fit"},
      {30, 2, 3, 0, 0.3, NARROW_VARIANT, "frames of 2, narrow"},
      {30, 3, 20, 0.125, 0.3, WIDE_VARIANT, "frames of 3, more directions than columns, avx512"},
  };
  const char *sanitized = getenv("SANITIZED"); /* then leave out the last case, which is slow */
  int count = LENGTH(cases) - (sanitized && *sanitized && c.size > 1);
  for (int i = 0; i < count; i++) {
    struct made m = made_of(cases[i].k, cases[i].d, cases[i].rho, cases[i].noise);
    claim_begin("%s: the reference's bits", cases[i].name);
    int status = case_run(&c, &m, cases[i].q, cases[i].variant, cases[i].name);
    ok(status == OK, "%s: %s", cases[i].name, status ? status_message() : "ran");
    if (!claim_end()) break;
    made_free(&m);
  }
  int failed = done_testing();
  if (comm_close(&c)) return 99;
  return failed;
}
