/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: if the ranks of a node share frames, a sweep has the same bits as if each rank has its
 * own, whichever rank is late.  No rank writes a frame that another still reads, and no rank reads
 * a frame that another has not yet written.
 * RUN: np=2 3 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sums.h"
#include "base/status.h"
#include "device/refit.h"
#include "fit_made.h"
#include "model/identity.h"
#include "refit/color.h"
#include "refit/frames.h"
#include "refit/refit.h"
#include "refit/sums.h"
#include "refit/sweep_end.h"
#include "tap.h"

enum { LATE_MICROSECONDS = 1000, DIRECTIONS = 2, SWEEPS = 2 };

/* The linker replaces two functions by these, so that a rank may be late: before it reads frames
 * for the last time in a batch, and while it rounds frames. */
static int is_late;
int __real_device_moves_keep(struct device *dev, const struct moves_job *job);
int __wrap_device_moves_keep(struct device *dev, const struct moves_job *job);
uint64_t __real_items_terms(const float *x, gidx n, gidx p, gidx first);
uint64_t __wrap_items_terms(const float *x, gidx n, gidx p, gidx first);

int __wrap_device_moves_keep(struct device *dev, const struct moves_job *job)
{
  if (is_late) usleep(LATE_MICROSECONDS);
  return __real_device_moves_keep(dev, job);
}

uint64_t __wrap_items_terms(const float *x, gidx n, gidx p, gidx first)
{
  if (is_late) usleep(LATE_MICROSECONDS);
  return __real_items_terms(x, n, p, first);
}

/* The results of a refit on this rank. */
struct given {
  real *frames, *codes;
  float *table;
  struct identity contents;
  gidx shared;
};

static void given_take(struct given *g, const struct refit_state *f)
{
  gidx frames = (gidx)f->k * f->d * f->p, codes = (gidx)f->n * f->s * f->d;
  g->frames = zeros(frames, sizeof *g->frames);
  g->table = zeros(frames, sizeof *g->table);
  g->codes = zeros(codes, sizeof *g->codes);
  memcpy(g->frames, f->frames, (size_t)frames * sizeof *g->frames);
  memcpy(g->table, f->table, (size_t)frames * sizeof *g->table);
  memcpy(g->codes, f->codes, (size_t)codes * sizeof *g->codes);
  g->contents = f->contents;
  g->shared = f->shared.bytes;
}

static void given_free(struct given *g)
{
  free(g->frames);
  free(g->table);
  free(g->codes);
}

static int sweeps_run(struct refit_state *f, struct comm *c, struct given *given)
{
  struct classes classes;
  struct phase phases[REFIT_PHASES];
  struct sweep_counts counts;
  struct metrics metrics;
  struct atom_step *steps = zeros(f->k, sizeof *steps);
  gidx *density = zeros(f->k, sizeof *density);
  int stopped;
  real tss;
  refit_phases(phases);
  TRY(color_state(f, NULL, &classes));
  TRY(refit_tss(c, f->total, f->x, f->p, &tss));
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    const struct sweep_task task = {.classes = &classes, .q = DIRECTIONS, .what = "refit"};
    const struct sweep_end_options end = {.table = f->table};
    TRY(refit_sweep(f, &task, phases, steps, &counts, &stopped));
    TRY(refit_sweep_end(f, &end, density, tss, &metrics, &stopped));
  }
  TRY(refit_frames_sync(f));
  given_take(given, f);
  free(density);
  free(steps);
  classes_free(&classes);
  return OK;
}

/* late: the rank that is late; -1: none. */
static int made_run(struct comm *c, struct made *m, const char *share, int late,
                    struct given *given)
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
                            .threads = 1,
                            .variant = "auto",
                            .has_table = 1};
  struct refit_state f;
  TRY(refit_frames_choose(&task, c, share));
  is_late = c->rank == late;
  TRY(refit_state_load(&f, &task, c));
  TRY(sweeps_run(&f, c, given));
  is_late = 0;
  refit_state_free(&f);
  return OK;
}

static int same(const struct made *m, const struct given *a, const struct given *b, gidx codes)
{
  size_t values = (size_t)m->k * (size_t)m->d * P;
  return !memcmp(a->frames, b->frames, values * sizeof *a->frames) &&
         !memcmp(a->table, b->table, values * sizeof *a->table) &&
         !memcmp(a->codes, b->codes, (size_t)codes * sizeof *a->codes) &&
         !memcmp(&a->contents, &b->contents, sizeof a->contents);
}

static int case_run(struct comm *c, struct made *m)
{
  struct given alone, shared;
  gidx first, codes = refit_rows_partition(N, c->size, c->rank, &first) * S * m->d;
  gidx bytes = (gidx)m->k * m->d * P * (gidx)(sizeof(real) + sizeof(float));
  TRY(made_run(c, m, "no", -1, &alone));
  for (int late = -1; late < c->size; late++) {
    TRY(made_run(c, m, "yes", late, &shared));
    int good = same(m, &alone, &shared, codes) && shared.shared == bytes && !alone.shared;
    int status = good ? OK : status_fail(ERR_ANSWER, __FILE__, __LINE__, "on rank %d", c->rank);
    ok(comm_agree(c, status) == OK,
       "k=%d d=%d: the bits are the same if rank %d is late (-1: none): %s", m->k, m->d, late,
       status_message());
    status_clear();
    given_free(&shared);
  }
  given_free(&alone);
  return OK;
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 99;
  tap_rank = c.rank;
  log_setup(LOG_QUIET, c.rank);
  static const struct {
    idx k, d;
  } cases[] = {{40, 1}, {30, 2}};
  claim_begin("frames that the ranks of a node share give the bits of frames of each rank");
  for (int i = 0; i < LENGTH(cases); i++) {
    struct made m = made_of(cases[i].k, cases[i].d, 0, 0.3);
    int status = case_run(&c, &m);
    if (status == ERR_DEVICE) {
      skip("%s", status_message());
      status_clear();
    } else if (status) {
      ok(0, "%s", status_message());
    }
    made_free(&m);
  }
  claim_end();
  int code = done_testing();
  return comm_close(&c) ? 99 : code;
}
