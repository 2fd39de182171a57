/* SPDX-License-Identifier: BSD-3-Clause
 * Turns sizes into bytes.  While the sum is too large, it gives up or halves what comes next in the
 * order of plan.h. */
#include "device/cuda/plan.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/device.h"
#include "device/joint.h"
#include "model/route.h"

enum { ROWS_UNKNOWN = 1 << 14 };          /* rows of a job, if their number is not known */
enum { MIN_LIST = 256, MAX_LIST = 2048 }; /* lengths of a row's list in the filter */
enum { PAIRS_BESIDE = 96, MAX_PAIRS = 1 << 30 };
enum { STAGING_ATOMS = 1 << 20 }; /* since a grid of pack.cu covers at most 65,535 x 32 */
static const gidx STAGING_BYTES = 64 << 20;
enum { ENCODER_ENTRIES = 1 << 20 };
static const gidx VALUES_BYTES = 1ll << 30; /* of a launch of an encoder, unless one row has more */
static const gidx STATES_BYTES = 1ll << 30; /* of codes at a time, unless one row needs more */
/* The size of the sample is this number times the square root of the number of frames.  Beyond it,
 * a larger sample costs more than shorter lists save. */
#define SCREEN_SAMPLED 11.3
/* For d = 1 and at least this many columns the sizes of the sample are kept, unless a row has more
 * of them than columns.  Writing and reading them is then faster than multiplying again. */
enum { SIZES_COLUMNS = 1280 };
/* The fraction of rows for which the threshold estimate may be too high. */
#define ESTIMATE_FAILS 2e-6

static gidx vector_bytes(idx floats)
{
  return (gidx)floats * (gidx)sizeof(float);
}

static struct route_form form_of(const struct plan_sizes *z, idx top_k)
{
  return route_form_of(z->bulk, z->d, top_k);
}

/* The smallest rank r such that a row has r or more of its best atoms in the sample with
 * probability at most ESTIMATE_FAILS, by Poisson's law. */
static int rank_of(double expected)
{
  double term = exp(-expected), below = term;
  int rank = 1;
  for (; 1 - below > ESTIMATE_FAILS && rank < 4 * MAX_TOP_S; rank++) {
    term *= expected / rank;
    below += term;
  }
  return rank;
}

/* The number of frames to sample: whole tiles, at most half of all. */
static idx sampled_of(idx tile, idx frames)
{
  idx tiles = (idx)(SCREEN_SAMPLED * sqrt(frames)) / tile + 1;
  return (idx)imin(tiles, frames / 2 / tile) * tile;
}

struct plan_lists plan_lists_of(int wgmma, idx d, idx p, idx top_k, idx frames)
{
  struct screen_form form = screen_form_of(wgmma, d, 1);
  idx tile = form.vectors / form.frame;
  struct plan_lists l = {.sampled = sampled_of(tile, frames), .capacity = MIN_LIST};
  double part = (double)l.sampled / frames;
  l.peaks_row = l.sampled / tile * SCREEN_PEAKS;
  l.peak_rank = rank_of(top_k * part);
  if (2 * l.peak_rank > l.peaks_row) l.peaks_row = 0;
  int is_long = d == 1 && p >= SIZES_COLUMNS && l.sampled <= p;
  l.sizes_row = l.peaks_row && is_long ? l.sampled : 0;
  double wanted = l.peaks_row ? 4 * l.peak_rank / part + 2 * top_k : 0;
  while (l.capacity < wanted && l.capacity < MAX_LIST) l.capacity *= 2;
  return l;
}

int plan_pairs(idx rows, idx top_k)
{
  return (int)imin((gidx)rows * (2 * top_k + PAIRS_BESIDE), MAX_PAIRS);
}

/* Lay out the next array, of `count` items. */
static void *layout_next(gidx *bytes, char *base, gidx count, size_t size)
{
  gidx at = *bytes;
  *bytes = round_up(at + count * (gidx)size, 256);
  return base ? base + at : NULL;
}

gidx plan_screen_layout(struct screen_args *a, char *base)
{
  gidx bytes = 0, rows = (gidx)a->row_tiles * SCREEN_ROWS;
  a->totals = layout_next(&bytes, base, 1, sizeof *a->totals);
  a->reach = layout_next(&bytes, base, rows, sizeof *a->reach);
  a->threshold = layout_next(&bytes, base, rows, sizeof *a->threshold);
  a->path = layout_next(&bytes, base, rows, sizeof *a->path);
  a->counts = layout_next(&bytes, base, rows, sizeof *a->counts);
  a->start = layout_next(&bytes, base, rows, sizeof *a->start);
  a->held = layout_next(&bytes, base, rows, sizeof *a->held);
  a->left = layout_next(&bytes, base, rows, sizeof *a->left);
  a->peaks = layout_next(&bytes, base, rows * a->peaks_row, sizeof *a->peaks);
  a->sizes = layout_next(&bytes, base, rows * a->sizes_row, sizeof *a->sizes);
  a->lists = layout_next(&bytes, base, rows * a->capacity, sizeof *a->lists);
  a->pairs = layout_next(&bytes, base, a->pairs_capacity, sizeof *a->pairs);
  a->values = layout_next(&bytes, base, a->pairs_capacity, sizeof *a->values);
  return bytes;
}

gidx plan_exact_bytes(const struct plan_sizes *z, const struct plan_route *r, idx rows)
{
  struct route_form form = form_of(z, r->top_k);
  gidx row_tiles = ceil_div(rows, ROUTE_ROWS), padded = row_tiles * ROUTE_ROWS;
  gidx atom_tiles = ceil_div(r->slots, route_tile_atoms(form.atoms_thread));
  gidx blocks = imin(z->multiprocessors, row_tiles * atom_tiles);
  /* A row tile has at most min(blocks, blocks / row_tiles + 2) parts; route.cu explains them. */
  gidx lists = ROUTE_ROWS * imin(row_tiles * blocks, blocks + 2 * row_tiles);
  gidx list = form.capacity * (gidx)sizeof(struct candidate) + (gidx)sizeof(int);
  return padded * vector_bytes(packed_columns(z->p)) + lists * list +
         (gidx)rows * r->excluded * (gidx)sizeof(idx) + (gidx)sizeof(unsigned long long);
}

gidx plan_screen_bytes(const struct plan_sizes *z, const struct plan_route *r, idx rows)
{
  struct plan_lists l = plan_lists_of(z->wgmma, z->d, z->p, r->top_k, r->slots);
  struct screen_args a = {.row_tiles = (int)ceil_div(rows, SCREEN_ROWS),
                          .peaks_row = l.peaks_row,
                          .sizes_row = l.sizes_row,
                          .capacity = l.capacity,
                          .pairs_capacity = plan_pairs(rows, r->top_k)};
  gidx f16 = (gidx)a.row_tiles * screen_stages(z->p) * SCREEN_ROWS * SCREEN_ITEM;
  return f16 + plan_screen_layout(&a, NULL);
}

idx plan_encoder_rows(const struct cuda_plan *plan)
{
  gidx most = VALUES_BYTES / (round_up(imax(plan->window, 1), plan->tile) * (gidx)sizeof(float));
  return (idx)imin(imax(most, 1), plan->rows);
}

gidx plan_encoder_entries(idx stride, idx rows)
{
  return imin((gidx)stride * rows, imax(stride, ENCODER_ENTRIES));
}

gidx plan_encoder_layout(struct encoder_args *a, gidx entries, char *base)
{
  gidx bytes = 0, rows = a->route.n, stride = a->stride;
  a->bias = layout_next(&bytes, base, 3 * stride, sizeof *a->bias);
  a->scale = base ? a->bias + stride : NULL;
  a->floor = base ? a->scale + stride : NULL;
  a->cut = layout_next(&bytes, base, rows, sizeof *a->cut);
  a->start = layout_next(&bytes, base, rows + 1, sizeof *a->start);
  a->atoms = layout_next(&bytes, base, entries, sizeof *a->atoms);
  a->score = layout_next(&bytes, base, entries, sizeof *a->score);
  a->placed_atoms = layout_next(&bytes, base, entries, sizeof *a->placed_atoms);
  a->placed_score = layout_next(&bytes, base, entries, sizeof *a->placed_score);
  return bytes;
}

/* Bytes of a launch of an encoder without its rows. */
static gidx encoder_bytes(const struct cuda_plan *plan)
{
  struct encoder_args a = {.stride = (int)round_up(plan->window, plan->tile)};
  idx n = a.route.n = plan_encoder_rows(plan);
  return (gidx)n * a.stride * (gidx)sizeof(float) +
         plan_encoder_layout(&a, plan_encoder_entries(a.stride, n), NULL);
}

static int rows_fit(const struct plan_sizes *z, const struct cuda_plan *plan,
                    const struct plan_route *r, idx rows)
{
  return plan_exact_bytes(z, r, rows) <= plan->exact &&
         (!plan->screen || plan_screen_bytes(z, r, rows) <= plan->screen_work);
}

static idx rows_half(idx rows)
{
  return (idx)round_up(rows / 2, ROUTE_ROWS);
}

idx plan_route_rows(const struct plan_sizes *z, const struct cuda_plan *plan,
                    const struct plan_route *r)
{
  idx rows = (idx)imin(round_up(r->n, ROUTE_ROWS), PLAN_LAUNCH_ROWS);
  while (rows > ROUTE_ROWS && !rows_fit(z, plan, r, rows)) rows = rows_half(rows);
  return rows;
}

idx plan_codes_rows(const struct cuda_plan *plan, gidx state_bytes, idx n, gidx spare)
{
  gidx budget = plan->states > 0 ? plan->states : imin(spare, STATES_BYTES);
  return (idx)imax(imin(n, budget / state_bytes), 1);
}

gidx plan_state_bytes(idx vectors, real rho, int nonnegative)
{
  return nonnegative ? nonnegative_state_bytes(vectors) : codes_state_bytes(vectors, rho);
}

/* Bytes of a row's state; 0 if the state is in shared memory. */
static gidx state_bytes(const struct plan_sizes *z)
{
  idx vectors = z->support * z->d;
  return vectors > WARP ? plan_state_bytes(vectors, 1.0, z->nonnegative) : 0; /* as if rho > 0 */
}

/* The route_job for which the plan is made. */
static struct plan_route route_expected(const struct plan_sizes *z, const struct cuda_plan *plan)
{
  idx top_k = z->top_k ? z->top_k : MAX_TOP_S;
  return (struct plan_route){.n = z->route_rows ? z->route_rows : ROWS_UNKNOWN,
                             .top_k = top_k,
                             .slots = plan->window,
                             .excluded = (idx)imax(top_k, z->support)};
}

static gidx f16_bytes(const struct plan_sizes *z, idx window)
{
  struct screen_form form = screen_form_of(z->wgmma, z->d, 0);
  gidx tiles = ceil_div(window, form.vectors / form.frame);
  return tiles * screen_stages(z->p) * form.vectors * SCREEN_ITEM +
         (gidx)sizeof(struct screen_max_norms);
}

static void window_count(const struct plan_sizes *z, struct cuda_plan *plan)
{
  gidx slots = round_up(plan->window, plan->tile), atom = z->d * vector_bytes(z->p);
  gidx staged = imin(imax(STAGING_BYTES / atom, 1), imin(STAGING_ATOMS, plan->window));
  plan->packed = slots * z->d * vector_bytes(packed_columns(z->p));
  plan->atom_of = slots * (gidx)sizeof(idx);
  plan->staging = staged * atom;
  plan->frames = plan->screen ? slots * z->d * vector_bytes((idx)round_up(z->p, 4)) : 0;
  plan->f16 = plan->screen ? f16_bytes(z, plan->window) : 0;
}

struct plan_sizes plan_sizes_of(const struct device_options *o)
{
  return (struct plan_sizes){.p = o->p,
                             .d = o->d,
                             .max_atoms = o->max_atoms,
                             .top_k = o->top_k,
                             .route_rows = o->route_rows,
                             .support = o->support,
                             .nonnegative = o->nonnegative,
                             .codes_rows = o->codes_rows,
                             .encoder = o->encoder};
}

int plan_forms_bytes(const struct device_options *o, gidx *bytes)
{
  struct plan_sizes z = plan_sizes_of(o);
  struct cuda_plan plan = {.screen = o->filter && strcmp(o->filter, "off"), .window = o->max_atoms};
  z.bulk = z.wgmma = 1;
  plan.tile = route_tile_atoms(form_of(&z, z.top_k).atoms_thread);
  window_count(&z, &plan);
  int is_copied = o->support > 0 && !(plan.screen && o->p % 4 == 0);
  gidx copy = is_copied ? (gidx)o->max_atoms * o->d * vector_bytes(o->p) : 0;
  plan.rows = o->route_rows ? o->route_rows : ROWS_UNKNOWN;
  gidx encoder = o->encoder ? encoder_bytes(&plan) : 0;
  *bytes = plan.packed + plan.atom_of + plan.frames + plan.f16 + copy + encoder;
  return OK;
}

static void plan_count(const struct plan_sizes *z, struct cuda_plan *plan)
{
  struct plan_route r = route_expected(z, plan);
  window_count(z, plan);
  plan->lists = plan->window < z->max_atoms ? (gidx)r.n * r.top_k * (gidx)sizeof(struct entry) : 0;
  plan->exact = plan_exact_bytes(z, &r, plan->rows);
  plan->screen_work = plan->screen ? plan_screen_bytes(z, &r, plan->rows) : 0;
  plan->states = plan->codes_rows * state_bytes(z);
  plan->encoder = z->encoder ? encoder_bytes(plan) : 0;
  gidx launch = plan->exact + plan->screen_work;
  if (plan->screen) launch = imax(launch, PLAN_TRIAL_BYTES);
  plan->total = plan->packed + plan->atom_of + plan->staging + plan->frames + plan->f16 +
                plan->lists + plan->states + plan->encoder + launch;
}

/* Plan for all rows of the jobs, within PLAN_LAUNCH_ROWS, and STATES_BYTES for codes. */
static void rows_wanted(const struct plan_sizes *z, struct cuda_plan *plan)
{
  struct plan_route r = route_expected(z, plan);
  gidx state = state_bytes(z), states = state ? imax(STATES_BYTES / state, 1) : 0;
  plan->rows = (idx)imin(round_up(r.n, ROUTE_ROWS), PLAN_LAUNCH_ROWS);
  plan->codes_rows = (idx)imin(z->codes_rows, states);
  plan->rows_cut = plan->codes_cut = 0;
}

/* Halve the rows of a launch of route, or of codes, whichever takes more; returns 0 if both are at
 * their minimum. */
static int rows_cut(struct cuda_plan *plan)
{
  int codes = plan->codes_rows > 1, route = plan->rows > ROUTE_ROWS;
  if (codes && (!route || plan->states > plan->exact + plan->screen_work)) {
    plan->codes_rows = (plan->codes_rows + 1) / 2;
    plan->codes_cut = 1;
  } else if (route) {
    plan->rows = rows_half(plan->rows);
    plan->rows_cut = 1;
  }
  return codes || route;
}

int plan_make(const struct plan_sizes *z, gidx free, struct cuda_plan *plan)
{
  *plan = (struct cuda_plan){.screen = z->filter != PLAN_FILTER_OFF, .window = z->max_atoms};
  plan->tile = route_tile_atoms(form_of(z, z->top_k).atoms_thread);
  rows_wanted(z, plan);
  for (plan_count(z, plan); plan->total > free; plan_count(z, plan)) {
    if (rows_cut(plan)) continue;
    idx half = (idx)round_up(plan->window, plan->tile) / 2;
    if (plan->screen && z->filter == PLAN_FILTER_AUTOMATIC)
      plan->screen = 0;
    else if (half >= plan->tile)
      plan->window = (idx)round_up(half, plan->tile);
    else
      FAIL(ERR_MEMORY,
           "%.1f MB are free, but the smallest tile, with rows to route over it, needs %.1f MB: it "
           "has %d atoms of %d x %d",
           1e-6 * (double)imax(free, 0), 1e-6 * (double)plan->total, plan->tile, z->d, z->p);
    rows_wanted(z, plan);
  }
  return OK;
}

void plan_drop_filter(const struct plan_sizes *z, struct cuda_plan *plan)
{
  plan->screen = 0;
  plan_count(z, plan);
}

gidx plan_arrow_bytes(gidx largest)
{
  gidx bytes = largest > PLAN_ARROW_LARGEST / 8 ? PLAN_ARROW_LARGEST : 8 * largest;
  return PLAN_ARROW_LOTS * imax(bytes, PLAN_ARROW_LOT);
}

gidx plan_dense_work(idx n)
{
  return round_up(n, FACTOR_WIDTH) * FACTOR_OUTER * (gidx)sizeof(real);
}

gidx plan_dense_bytes(int threads, idx panel, idx n)
{
  (void)threads, (void)panel;
  return plan_dense_work(n) + n * (gidx)sizeof(real) + (gidx)sizeof(int);
}

/* Bytes of E (or of E'E inside each atom, which overwrites E), and of the directions. */
gidx plan_joint_resident(const struct joint *j)
{
  gidx directions = j->direction[j->k], max_q = 0;
  for (idx a = 0; a < j->k; a++) max_q = imax(max_q, j->direction[a + 1] - j->direction[a]);
  return directions * (j->p + max_q) * (gidx)sizeof(real) + (j->k + 1) * (gidx)sizeof(idx) +
         PLAN_JOINT_PIECES * PLAN_JOINT_ALIGNED;
}

/* A row takes at most a quarter more than on the CPU: the indices of its borders. */
gidx plan_joint_batch(const struct joint *j, idx longest, gidx capacity)
{
  gidx rows = imin(capacity, JOINT_MAX_BATCH * cpu_joint_row_bytes(j, longest));
  return rows + rows / 4 + (j->k + 2) * (gidx)sizeof(gidx) + PLAN_JOINT_PIECES * PLAN_JOINT_ALIGNED;
}

gidx plan_joint_bytes(const struct joint *j, idx longest, gidx capacity)
{
  return plan_joint_resident(j) + plan_joint_batch(j, longest, capacity);
}
