/* SPDX-License-Identifier: BSD-3-Clause
 * All ranks find the directions.  Then rank 0 reads the rows, forms S, reports on it, factors and
 * inverts it. */
#include "terminal/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "model/access.h"
#include "terminal/covariance.h"
#include "terminal/device.h"
#include "terminal/directions.h"
#include "terminal/layout.h"
#include "terminal/slq.h"
#include "terminal/spectrum.h"

static const struct phase phase_names[TERMINAL_PHASES] = {
    [TERMINAL_DIRECTIONS] = {.name = "directions"},
    [TERMINAL_READ] = {.name = "read", .unit = "GB"},
    [TERMINAL_ROWS] = {.name = "rows", .unit = "GMAC"},
    [TERMINAL_ASSEMBLE] = {.name = "assemble", .unit = "GMAC"},
    [TERMINAL_SPECTRUM] = {.name = "spectrum"},
    [TERMINAL_FACTOR] = {.name = "factor", .unit = "GMAC"},
    [TERMINAL_INVERSE] = {.name = "inverse", .unit = "GMAC"},
    [TERMINAL_COVARIANCE] = {.name = "covariance", .unit = "GMAC"},
    [TERMINAL_LANCZOS] = {.name = "lanczos"},
    [TERMINAL_ATOMS] = {.name = "duplicates", .unit = "GMAC"},
};

static int atoms_read(void *argument)
{
  const struct terminal *w = argument;
  const struct atom_source *a = w->t->atoms;
  return a->read(a->self, 0, a->k, w->atoms);
}

int terminal_atoms_alloc(struct terminal *w)
{
  const struct atom_source *a = w->t->atoms;
  return arena_alloc(&w->inputs, &w->atoms, (gidx)a->k * a->d * a->p, sizeof *w->atoms);
}

static int atoms_load(struct terminal *w)
{
  const struct atom_source *a = w->t->atoms;
  struct worker worker;
  TRY(terminal_atoms_alloc(w));
  TRY(worker_open(&worker));
  TRY(worker_run(&worker, atoms_read, w));
  worker_close(&worker);
  return atoms_check(w->atoms, a->k, a->d, a->p, 0, a->name);
}

/* Open the device of rank 0, and set its name in the phases that may use a GPU.  Check that the
 * pass fits in memory. */
static int device_begin(struct terminal *w)
{
  static const enum terminal_phase phases[] = {TERMINAL_ASSEMBLE, TERMINAL_FACTOR, TERMINAL_INVERSE,
                                               TERMINAL_COVARIANCE, TERMINAL_ATOMS};
  if (w->c->rank == 0) TRY(terminal_device_open(&w->device, w->t, w->c));
  for (int i = 0; i < LENGTH(phases); i++) w->phases[phases[i]].device = w->device.kind;
  return terminal_fits(w->t, w->c, &w->device);
}

/* Set sizes and borders of the result, now that the directions are known. */
static int result_begin(struct terminal *w)
{
  const struct terminal_task *t = w->t;
  struct terminal_result *r = w->r;
  r->k = t->atoms->k;
  r->d = t->atoms->d;
  r->p = t->atoms->p;
  r->n = t->rows->n;
  r->bad_pivot = -1;
  r->slq.failed_probe = -1;
  r->directions = w->direction[r->k];
  r->n_border = r->directions * r->d;
  TRY(arena_alloc(&r->arena, &r->border, (gidx)r->k + 1, sizeof *r->border));
  for (idx a = 0; a < r->k; a++) {
    r->border[a + 1] = w->direction[a + 1] * r->d;
    idx width = r->border[a + 1] - r->border[a];
    r->max_k = width > r->max_k ? width : r->max_k;
  }
  w->joint = (struct joint){r->k, r->d, r->p, w->atoms, w->direction, w->e, t->rho};
  return dense_open(&w->dense, &w->device, t->panel, r->n_border);
}

static void phase_close(struct terminal *w, enum terminal_phase which, double work)
{
  phase_end(&w->phases[which], work);
  log_debug("terminal %s done", w->phases[which].name);
}

/* Factor S.  Its determinant is the product of its pivots, in ascending order of columns (N.13). */
static int schur_factor(struct terminal *w)
{
  struct terminal_result *r = w->r;
  struct arena arena = {0};
  real *pivot = NULL;
  idx n = r->n_border, good;
  TRY(arena_alloc(&arena, &pivot, n, sizeof *pivot));
  TRY(dense_cholesky(&w->dense, w->s.device, n, schur_stride(w), pivot, &good));
  r->borders = det_pair_unit;
  for (idx i = 0; i < good; i++) r->borders = det_pair_pivot(r->borders, pivot[i]);
  if (good < n) {
    r->borders = det_pair_failed();
    r->bad_pivot = good;
  }
  r->is_factored = good == n;
  arena_free(&arena);
  return OK;
}

/* Form S, report on it and factor it.  If it is positive definite, read the covariance from its
 * inverse. */
static int schur_evaluate(struct terminal *w, struct joint_sums *sums)
{
  double n = w->r->n_border;
  TRY(terminal_assemble(w, sums));
  phase_begin(&w->phases[TERMINAL_SPECTRUM]);
  TRY(terminal_spectrum(w));
  phase_close(w, TERMINAL_SPECTRUM, 0);
  TRY(joint_phi(sums, w->r->n, w->r->p, w->r->n_border, &w->r->phi));
  phase_begin(&w->phases[TERMINAL_FACTOR]);
  TRY(schur_factor(w));
  phase_close(w, TERMINAL_FACTOR, n * n * n / 6);
  if (!w->r->is_factored) return OK;
  phase_begin(&w->phases[TERMINAL_INVERSE]);
  TRY(dense_inverse(&w->dense, w->s.device, w->r->n_border, schur_stride(w)));
  phase_close(w, TERMINAL_INVERSE, n * n * n / 6);
  phase_begin(&w->phases[TERMINAL_COVARIANCE]);
  TRY(terminal_covariance(w));
  phase_close(w, TERMINAL_COVARIANCE, n * n * n / 6);
  return OK;
}

/* The fingerprint of everything whose bits are guaranteed. */
static uint64_t result_fingerprint(const struct terminal_result *r)
{
  real values[] = {r->half_log_det, r->log_det_rows, r->log_det_border, r->phi, r->rss};
  gidx block = (gidx)r->max_k * r->max_k;
  uint64_t sum = fingerprint(values, LENGTH(values), 8, 0);
  if (r->is_factored) sum += 3 * fingerprint(r->covariance, r->k * block, 8, 0);
  if (r->is_factored) sum += 5 * fingerprint(r->cross_blocks, r->n_cross * block, 8, 0);
  return sum + hash64(r->artifact.sha256, SHA256_HEX);
}

/* Set the log determinants and the RSS, from the sums over rows and the factor of S. */
static void evidence_set(struct terminal *w, const struct joint_sums *sums)
{
  struct terminal_result *r = w->r;
  r->rows = pair_sum_total(&sums->pairs);
  r->rss = row_sum_total(&sums->errors);
  r->codes = sums->codes;
  r->log_det_rows = det_pair_value(r->rows);
  r->log_det_border = det_pair_value(r->borders);
  r->half_log_det = 0.5 * det_pair_value(det_pair_times(r->rows, r->borders));
  if (!(r->borders.m >= 0.5)) r->half_log_det = nan_canonical();
}

/* All that rank 0 does alone. */
static int evaluate(struct terminal *w)
{
  struct joint_sums sums;
  struct terminal_result *r = w->r;
  double vectors = (double)w->t->atoms->k * w->t->atoms->d;
  joint_sums_init(&sums);
  TRY(atoms_load(w));
  TRY(artifact_make(&r->artifact, w->atoms, w->t->atoms->k, w->t->atoms->d, w->t->atoms->p));
  TRY(result_begin(w));
  phase_begin(&w->phases[TERMINAL_ATOMS]);
  TRY(terminal_duplicates(w));
  phase_close(w, TERMINAL_ATOMS, 0.5 * vectors * vectors * w->t->atoms->p);
  if (w->t->evidence == EVIDENCE_SLQ) {
    r->borders = det_pair_failed();
    TRY(terminal_slq(w, &sums));
    TRY(joint_phi(&sums, r->n, r->p, r->n_border, &r->phi));
  } else {
    TRY(schur_evaluate(w, &sums));
  }
  evidence_set(w, &sums);
  r->fingerprint = result_fingerprint(r);
  return OK;
}

static int pass_begin(struct terminal *w)
{
  CHECK(w, ERR_MEMORY, "cannot allocate the state of the pass");
  return device_begin(w);
}

static void ran_note(const struct terminal *w, struct terminal_ran *ran)
{
  *ran = (struct terminal_ran){.device = "", .counts = w->device.counts};
  if (w->c->rank) return;
  ran->device = w->device.kind;
  snprintf(ran->variant, sizeof ran->variant, "%s", w->device.variant);
}

int terminal_run(const struct terminal_task *t, struct comm *c, struct terminal_result *r,
                 struct phase *phases, struct terminal_ran *ran)
{
  /* After a failure w is not freed: a thread may still use it. */
  struct terminal *w = calloc(1, sizeof *w);
  memcpy(phases, phase_names, sizeof phase_names);
  *r = (struct terminal_result){0};
  if (w) *w = (struct terminal){.t = t, .c = c, .r = r, .phases = phases};
  TRY(comm_agree(c, pass_begin(w)));
  phase_begin(&phases[TERMINAL_DIRECTIONS]);
  TRY(terminal_directions(w));
  phase_end(&phases[TERMINAL_DIRECTIONS], 0);
  TRY(comm_agree(c, c->rank ? OK : evaluate(w)));
  ran_note(w, ran);
  buffer_free(&w->device, &w->s);
  dense_close(&w->dense);
  device_close(&w->device);
  arena_free(&w->inputs);
  free(w);
  return OK;
}
