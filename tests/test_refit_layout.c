/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the memory that a refit forecasts before it begins is what its arenas then hold.  This is
 * exact for reading, on the rank that takes most.  The forecast is an upper bound for colouring,
 * whose number of classes is not known before, and for batches, whose rows are not known before.
 * RUN: np=1 3 */
#include <stdio.h>

#include "base/log.h"
#include "base/num.h"
#include "fit_made.h"
#include "refit/all_systems.h"
#include "refit/color.h"
#include "refit/frames.h"
#include "refit/layout.h"
#include "refit/refit.h"
#include "refit/sums.h"
#include "tap.h"

/* Bytes in all arenas of this rank now, and at most.  The linker replaces functions of
 * base/memory.h by these. */
static gidx held, peak;
int __real_arena_alloc(struct arena *arena, void *pointer, gidx count, size_t size);
int __wrap_arena_alloc(struct arena *arena, void *pointer, gidx count, size_t size);
void __real_arena_free(struct arena *arena);
void __wrap_arena_free(struct arena *arena);

int __wrap_arena_alloc(struct arena *arena, void *pointer, gidx count, size_t size)
{
  size_t before = arena->bytes;
  int status = __real_arena_alloc(arena, pointer, count, size);
  if (!arena->is_dry) held += (gidx)(arena->bytes - before);
  peak = imax(peak, held);
  return status;
}

void __wrap_arena_free(struct arena *arena)
{
  if (!arena->is_dry) held -= (gidx)arena->bytes;
  __real_arena_free(arena);
}

struct figures {
  struct refit_memory plan; /* the forecast */
  gidx state, load;         /* of this rank: bytes of the state; more bytes while it is read */
  gidx color;               /* more bytes while classes are found */
};

/* Read and colour, and measure the memory of this rank. */
static int figures_find(struct refit_state *f, const struct refit_task *task, struct comm *c,
                        struct classes *classes, struct figures *out)
{
  held = peak = 0;
  TRY(refit_state_load(f, task, c));
  gidx device = held - (gidx)f->arena.bytes; /* of the device, which is no part of the layout */
  out->state = (gidx)f->arena.bytes;
  out->load = peak - device - out->state;
  gidx before = peak = held;
  TRY(color_state(f, NULL, classes));
  out->color = peak - before;
  return OK;
}

/* *good <- does every batch of the classes keep its bound, and its own forecast? */
static int batches_check(struct refit_state *f, const struct classes *classes, idx q, int *good)
{
  idx max;
  *good = 1;
  TRY(atom_batch_max(f, refit_batch_bytes, q, &max));
  for (idx color = 0; color < classes->count; color++) {
    struct atom_batch b, bound;
    struct batch_systems a;
    struct batch_systems_bytes said;
    idx count = (idx)imin(classes->start[color + 1] - classes->start[color], max);
    int all_kept = 1;
    TRY(atom_batch_make(&b, f, classes->atoms + classes->start[color], count));
    TRY(atom_batch_bound(&bound, f, count, ROWS_OF_CLASS));
    *good &= b.arena.bytes <= bound.arena.bytes && b.own_rows <= bound.own_rows;
    *good &= b.owner_rows <= bound.owner_rows && b.segments <= bound.segments;
    *good &= b.mine == bound.mine;
    TRY(batch_systems_make(&a, f, &b, q));
    TRY(batch_systems_bytes(f, &b, q, &said));
    for (idx m = 0; m < count; m++) all_kept &= a.kept[m] == q;
    gidx took = (gidx)(a.arena.bytes + a.directions.bytes);
    *good &= all_kept ? took == said.held : took <= said.held;
    batch_systems_free(&a);
    atom_batch_free(&b);
  }
  return OK;
}

static int case_run(struct comm *c, struct made *m, idx q, const char *share)
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
                            .colors = 1,
                            .has_table = 1};
  struct refit_state f;
  struct classes classes;
  struct figures got;
  TRY(refit_frames_choose(&task, c, share));
  TRY(refit_memory(&task, c, refit_batch_bytes, q, &got.plan));
  TRY(figures_find(&f, &task, c, &classes, &got));
  const struct refit_resident_bytes *h = &got.plan.held;
  gidx state = h->rows + h->supports + h->frames, load = 0, sums = 0;
  TRY(refit_state_load_bytes(&f, &load));
  TRY(refit_sums_bytes(&f, &sums));
  int good = got.load == load && got.plan.load >= load && got.plan.load >= sums;
  good &= c->rank ? got.state <= state : got.state == state;
  good &= f.shared.bytes == h->shared && (h->shared > 0) == task.shares;
  good &= got.plan.part * c->local_size >= h->shared && (h->frames == 0) == task.shares;
  int status = good ? OK
                    : status_fail(ERR_ANSWER, __FILE__, __LINE__,
                                  "%lld and %lld, not %lld and %lld", (long long)got.state,
                                  (long long)got.load, (long long)state, (long long)load);
  ok(comm_agree(c, status) == OK, "k=%d d=%d: state and reading %s", m->k, m->d, status_message());
  /* The forecast counts a class for each atom, because the number of classes is not yet known. */
  gidx classes_spared = sizeof(gidx) * (m->k - classes.count) + 64;
  ok(c->rank || (got.plan.classes - classes_spared <= got.color && got.color <= got.plan.classes),
     "k=%d d=%d: colouring, %lld bytes of %lld", m->k, m->d, (long long)got.color,
     (long long)got.plan.classes);
  TRY(refit_state_residuals(&f));
  TRY(batches_check(&f, &classes, q, &good));
  status = good ? OK : status_fail(ERR_ANSWER, __FILE__, __LINE__, "they do not");
  ok(comm_agree(c, status) == OK, "k=%d d=%d: batches stay within their bounds %s", m->k, m->d,
     status_message());
  classes_free(&classes);
  refit_state_free(&f);
  return OK;
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 99;
  tap_rank = c.rank;
  log_setup(LOG_QUIET, c.rank);
  static const struct {
    idx k, d, q;
  } cases[] = {{40, 1, 4}, {30, 2, 3}, {203, 1, 1}};
  claim_begin("a refit takes no more memory than its forecast");
  for (int i = 0; i < LENGTH(cases); i++) {
    struct made m = made_of(cases[i].k, cases[i].d, 0, 0.3);
    int status = case_run(&c, &m, cases[i].q, "no");
    if (!status && c.size > 1) status = case_run(&c, &m, cases[i].q, "yes");
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
