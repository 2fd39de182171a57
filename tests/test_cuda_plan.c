/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the plan of a GPU's memory stays within the free memory.  To fit, it first reduces rows or
 * codes, then gives up an automatic filter, then reduces the window of atoms, and no more than
 * necessary.  It counts at least what launches allocate.  Needs neither CUDA nor a GPU. */
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "device/cuda/plan.h"
#include "model/route.h"
#include "tap.h"

enum { MB = 1000000, SEED = 17 };

/* The sizes of problem i, on an H100 or a smaller GPU.  Some sizes of jobs are 0, that is,
 * unknown. */
static struct plan_sizes sizes_of(uint64_t i)
{
  static const idx ps[] = {1, 63, 64, 768, 4096}, ds[] = {1, 1, 2, 5, 8};
  static const idx atoms[] = {1, 700, 20000, 131072, 1000000}, top_ks[] = {0, 1, 16, 32, 256};
  static const idx rows[] = {0, 1, 300, 16384, 2000000}, supports[] = {0, 8, 80, 256, 32};
#define DRAW(array, stream) array[random_below(SEED, stream, i, LENGTH(array))]
  struct plan_sizes z = {.p = DRAW(ps, 1),
                         .d = DRAW(ds, 2),
                         .max_atoms = DRAW(atoms, 3),
                         .top_k = DRAW(top_ks, 4),
                         .route_rows = DRAW(rows, 5),
                         .support = DRAW(supports, 6)};
#undef DRAW
  z.codes_rows = z.support ? z.route_rows : 0;
  z.encoder = z.d == 1 && i % 2;
  z.bulk = z.wgmma = i % 3 != 0;
  z.multiprocessors = i % 3 ? 132 : 46;
  z.filter = (enum plan_filter)random_below(SEED, 7, i, 3);
  return z;
}

static gidx ledger(const struct plan_sizes *z, const struct cuda_plan *p)
{
  gidx launch = p->exact + p->screen_work;
  if (p->screen) launch = imax(launch, PLAN_TRIAL_BYTES);
  gidx window = z->d * round_up(p->window, p->tile) * packed_columns(z->p) * (gidx)sizeof(float);
  if (p->packed != window || (p->screen && p->frames < window)) return -1;
  return p->packed + p->atom_of + p->staging + p->frames + p->f16 + p->lists + p->states +
         p->encoder + launch;
}

/* How far a plan has gone in the order of reductions: 0 nothing, 1 rows or codes, 2 the filter, 3
 * the window of atoms. */
static int stage_of(const struct plan_sizes *z, const struct cuda_plan *p)
{
  if (p->window < z->max_atoms) return 3;
  if (!p->screen && z->filter == PLAN_FILTER_AUTOMATIC) return 2;
  return p->rows_cut || p->codes_cut;
}

/* Plans for less and less free memory, until there is none. */
static void check_order(void)
{
  int within = 1, order = 1, least = 1, wanted = 1, stages[4] = {0}, failed = 0;
  for (uint64_t i = 0; i < 300; i++) {
    struct plan_sizes z = sizes_of(i);
    struct cuda_plan plan, whole;
    int before = 0;
    if (plan_make(&z, INT64_MAX, &whole)) wanted = 0;
    for (gidx free = whole.total; free > 1000; free -= free / 9) {
      if (plan_make(&z, free, &plan)) {
        failed++;
        least &= strstr(status_message(), "MB") != NULL;
        status_clear();
        break;
      }
      int stage = stage_of(&z, &plan);
      within &= plan.total <= free && plan.total == ledger(&z, &plan);
      order &= stage >= before && (free < whole.total || !memcmp(&plan, &whole, sizeof plan));
      wanted &=
          plan.screen == (z.filter == PLAN_FILTER_WANTED) || z.filter == PLAN_FILTER_AUTOMATIC;
      stages[stage]++;
      before = stage;
    }
  }
  ok(within, "no plan takes more than is free, and each takes what its ledger says");
  ok(order, "less memory never gives a plan that cuts less");
  ok(wanted, "a filter that was asked for is kept");
  ok(least && failed > 200, "if not even a tile fits, the message has megabytes: %d such problems",
     failed);
  ok(stages[0] && stages[1] && stages[2] && stages[3],
     "every kind of plan was met: %d whole, %d with fewer rows, %d without filter, %d in windows",
     stages[0], stages[1], stages[2], stages[3]);
}

/* The bytes that exact.c allocates for a launch with n rows. */
static gidx exact_bytes(const struct plan_sizes *z, const struct plan_route *r, idx n)
{
  struct route_form form = route_form_of(z->bulk, z->d, r->top_k);
  gidx row_tiles = ceil_div(n, ROUTE_ROWS), parts = 0;
  gidx atom_tiles = ceil_div(r->slots, route_tile_atoms(form.atoms_thread));
  int blocks = (int)imin(row_tiles * atom_tiles, z->multiprocessors);
  for (int t = 0; t < row_tiles; t++)
    parts = imax(parts, route_parts_of(t, (int)row_tiles, (int)atom_tiles, blocks));
  gidx list = form.capacity * (gidx)sizeof(struct candidate) + (gidx)sizeof(int);
  return row_tiles * ROUTE_ROWS * (packed_columns(z->p) * (gidx)sizeof(float) + parts * list) +
         (gidx)n * r->excluded * (gidx)sizeof(idx) + 8;
}

/* Launches of random jobs, with the rows that the plan gives them, stay within the plan if they
 * have more rows than one tile.  The job that was planned for has the rows of the plan. */
static void check_launches(void)
{
  int fits = 1, counted = 1, all = 1;
  for (uint64_t i = 0; i < 2000; i++) {
    struct plan_sizes z = sizes_of(i);
    struct cuda_plan plan;
    gidx free = (gidx)random_below(SEED, 8, i, 4000) * MB;
    if (plan_make(&z, free, &plan)) {
      status_clear();
      continue;
    }
    struct plan_route r = {.n = 1 + (idx)random_below(SEED, 9, i, 40000),
                           .top_k = 1 + (idx)random_below(SEED, 10, i, MAX_TOP_S),
                           .slots = 1 + (idx)random_below(SEED, 11, i, (uint64_t)plan.window),
                           .excluded = (idx)random_below(SEED, 12, i, 40)};
    idx rows = plan_route_rows(&z, &plan, &r);
    idx some = 1 + (idx)random_below(SEED, 13, i, (uint64_t)imin(rows, r.n));
    gidx launch = plan_exact_bytes(&z, &r, rows);
    fits &= rows == ROUTE_ROWS ||
            (launch <= plan.exact &&
             (!plan.screen || plan_screen_bytes(&z, &r, rows) <= plan.screen_work));
    counted &= exact_bytes(&z, &r, some) <= launch;
    r = (struct plan_route){z.route_rows, z.top_k, plan.window, (idx)imax(z.top_k, z.support)};
    if (z.route_rows && z.top_k) all &= plan_route_rows(&z, &plan, &r) == plan.rows;
  }
  ok(fits, "a launch of as many rows as the plan says is within the ledger");
  ok(counted, "a launch of the direct kernels allocates no more than is counted");
  ok(all, "the job that was planned for has the rows of the plan");
}

/* Launches of encoders, with at most the rows of the plan, allocate no more than the plan
 * counts. */
static void check_encoders(void)
{
  int counted = 1, most = 0, one = 0;
  for (uint64_t i = 1; i < 600; i += 2) {
    struct plan_sizes z = sizes_of(i);
    struct cuda_plan plan;
    z.d = z.encoder = 1;
    if (i % 50 == 1) z.max_atoms = 400000000;
    if (plan_make(&z, ((gidx)random_below(SEED, 14, i, 4000) << 30) + 100 * MB, &plan)) {
      status_clear();
      continue;
    }
    struct route_form form = route_form_of(z.bulk, 1, z.top_k);
    struct encoder_args a = {.stride =
                                 (int)round_up(plan.window, route_tile_atoms(form.atoms_thread))};
    idx rows = plan_encoder_rows(&plan);
    a.route.n = 1 + (idx)random_below(SEED, 15, i, (uint64_t)rows);
    gidx entries = plan_encoder_entries(a.stride, a.route.n);
    gidx values = (gidx)a.route.n * a.stride * (gidx)sizeof(float);
    counted &=
        entries >= a.stride && values + plan_encoder_layout(&a, entries, NULL) <= plan.encoder;
    counted &= a.route.n == 1 || (gidx)a.route.n * a.stride < 1ll << 29;
    most += rows == plan.rows;
    one += rows == 1;
  }
  ok(counted && most && one, "an encoder's launch is counted: %d of all rows, %d of one", most,
     one);
}

/* The filter samples some atoms.  The sizes of their scores are kept if d = 1, atoms have at least
 * SIZES_COLUMNS columns, and the sizes take no more room than a row. */
static void check_sizes(void)
{
  static const struct {
    idx d, p, frames;
    int kept;
  } cases[] = {
      {1, 4096, 32768, 1}, {1, 1280, 8192, 1},    {1, 1279, 8192, 0},   {2, 4096, 32768, 0},
      {1, 1280, 32768, 0}, {1, 4096, 1000000, 0}, {1, 8192, 262144, 1}, {1, 4096, 300, 0},
  };
  claim_begin("sizes of sampled scores are kept if the kernels need them and they fit");
  for (int i = 0; i < LENGTH(cases); i++)
    for (int wgmma = 0; wgmma < 2; wgmma++) {
      struct plan_lists l = plan_lists_of(wgmma, cases[i].d, cases[i].p, 32, cases[i].frames);
      ok(l.sizes_row == (cases[i].kept ? l.sampled : 0) && (!l.sizes_row || l.sampled > 0),
         "%d atoms of %d x %d, wgmma %d: %d sizes of %d sampled are kept", cases[i].frames,
         cases[i].d, cases[i].p, wgmma, l.sizes_row, l.sampled);
    }
  claim_end();
}

/* The work arrays of the filter's kernels follow one another, at multiples of 256 bytes. */
static void check_layout(void)
{
  static char base[1 << 22];
  struct screen_args a = {
      .row_tiles = 1, .peaks_row = 224, .sizes_row = 384, .capacity = 512, .pairs_capacity = 777};
  gidx bytes = plan_screen_layout(&a, NULL);
  int none = !a.totals && !a.values;
  ok(none && bytes > 0 && bytes < (gidx)sizeof base && plan_screen_layout(&a, base) == bytes,
     "the layout has as many bytes when counted as when placed");
  gidx rows = SCREEN_ROWS;
  const char *const at[] = {(char *)a.totals, (char *)a.reach, (char *)a.threshold, (char *)a.path,
                            (char *)a.counts, (char *)a.start, (char *)a.held,      (char *)a.left,
                            (char *)a.peaks,  (char *)a.sizes, (char *)a.lists,     (char *)a.pairs,
                            (char *)a.values, base + bytes};
  const gidx size[] = {sizeof *a.totals, 4 * rows, 4 * rows, 4 * rows,       4 * rows,
                       4 * rows,         4 * rows, 4 * rows, 4 * rows * 224, 4 * rows * 384,
                       8 * rows * 512,   8 * 777,  4 * 777};
  int good = at[0] == base;
  for (int i = 0; i < LENGTH(size); i++)
    good &= at[i] + size[i] <= at[i + 1] && (at[i] - base) % 256 == 0;
  ok(good, "the arrays follow one another, aligned to 256 bytes");
}

/* The job of tests/test_cuda_faults.py, with the memory sizes of that test, meets plans of stages 0
 * and 3, of stage 2 if the filter is automatic, and no plan. */
static void check_faults(void)
{
  static const int megabytes[] = {1, 6, 8, 10, 12, 13, 14, 15, 16, 18, 20, 24, 28, 36, 100};
  enum { BUFFERS = 3 * MB };
  for (int filter = 0; filter < 3; filter++) {
    struct plan_sizes z = {.p = 64,
                           .d = 1,
                           .max_atoms = 20000,
                           .bulk = 1,
                           .wgmma = 1,
                           .multiprocessors = 132,
                           .filter = (enum plan_filter)filter,
                           .top_k = 4,
                           .route_rows = 128,
                           .support = 8};
    int met[4] = {0}, none = 0;
    for (int i = 0; i < LENGTH(megabytes); i++) {
      struct cuda_plan plan;
      gidx all = (gidx)megabytes[i] * MB;
      if (plan_make(&z, all - all / 32 - BUFFERS, &plan))
        none++;
      else
        met[stage_of(&z, &plan)]++;
      status_clear();
    }
    ok(none && met[0] && met[3] && !met[1] && (met[2] > 0) == (filter == PLAN_FILTER_AUTOMATIC),
       "filter %d: %d plans whole, %d without the filter, %d windows, %d none", filter, met[0],
       met[2], met[3], none);
  }
}

int main(void)
{
  check_order();
  check_launches();
  check_encoders();
  check_sizes();
  check_layout();
  check_faults();
  return done_testing();
}
