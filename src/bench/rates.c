/* SPDX-License-Identifier: BSD-3-Clause
 * A rate is the work of all ranks divided by the median time of the slowest rank.  On a CPU most
 * times are processor time divided by the threads that run at once (spent()), so that other
 * programs matter little.  Rows and atoms are random.  The filter leaves more candidates for such
 * rows than for most rows of real data. */
#include "bench/rates.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/proc.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "bench/arrow.h"
#include "bench/moves.h"
#include "bench/peer.h"
#include "bench/train.h"
#include "comm/buffers.h"
#include "device/codes.h"
#include "device/conjugate.h"
#include "device/normal.h"
#include "device/route.h"
#include "encode/encode.h"
#include "io/rows.h"
#include "model/access.h"
#include "model/dictionary.h"
#include "model/rates.h"

enum {
  MOST_COLUMNS = 1024,
  MOST_ATOMS = 32768,
  MOST_S = 64,
  CODED_ATOMS = 4096,  /* atoms of the dictionary when codes are measured */
  COUNTED_ATOMS = 128, /* atoms of the dictionary when RATE_COUNT is measured */
  LEAST_ROWS = 256,    /* least rows of a run of routing; the most are a sum block (4,096 rows) */
  GPU_ROWS = 16384,    /* rows of a run on a GPU, which fewer would not occupy */
  FILE_COLUMNS = 256,
  FILE_BLOCKS = 4, /* sum blocks per rank in files, and in memory for RATE_COUNT */
  MOVES_RANKS = 64,
  EXCHANGED = 1 << 22, /* bytes that a rank has after an exchange */
  GPU_EXCHANGED = 1 << 26,
  MOVED_VALUES = 1 << 23, /* values of a rank's rows when RATE_MOVES is measured */
  GPU_MOVED_VALUES = 1 << 25,
  CONJUGATE_STEPS = 2
};
static const double RUN_TERMS = 4e9; /* multiply-adds of a run of routing, roughly */
static const idx COLUMNS[] = {64, 256, MOST_COLUMNS}, ATOMS[] = {512, CODED_ATOMS, MOST_ATOMS};
static const idx TOP_S[] = {1, 8, MOST_S}, CODED_S[] = {8, 32, MOST_S}, ROUNDS[] = {1, 8};
static const idx ENDS_S[] = {8, MOST_S}; /* for rates that are nearly linear between these two */

struct bench {
  const struct bench_common *common;
  struct comm *c;
  struct rates rates;
  float *atoms, *rows; /* [MOST_ATOMS][MOST_COLUMNS], [ROW_BLOCK or GPU_ROWS][MOST_COLUMNS] */
  double *all;         /* [size] seconds of each rank */
  double cores;        /* cores of a rank; less than 1 if ranks share a core */
  /* The open device, its buffers, and its columns, atoms and rows. */
  struct device device;
  struct buffer given, table, lists, slot, codes, quality, residual, state;
  idx p, k, n;
  struct update_case *update;      /* while an update is measured */
  double scores;                   /* the fraction of a step that scores take */
  const struct row_source *source; /* what source_read_run() reads */
  const char *folder;
  char path[PATH_MAX];
  struct arena arena, updates;
};

static int is_gpu(const struct bench *b)
{
  return strcmp(b->common->device, "cuda") == 0;
}

/* Fill x with sums of four uniform numbers: nearly normal, and faster to draw. */
static void random_fill(float *x, gidx count, uint64_t stream)
{
  for (gidx i = 0; i < count; i++) {
    uint64_t bits = mix64((uint64_t)i ^ stream << 40);
    int sum = 0;
    for (int part = 0; part < 4; part++) sum += (int)(bits >> 16 * part & 0xffff) - 0x8000;
    x[i] = (float)sum * 0x1p-15f;
  }
}

/* A time by the clock, and the processor time of all threads of this process. */
struct moment {
  double wall, cpu;
};

static struct moment now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (struct moment){log_seconds(), (double)t.tv_sec + 1e-9 * (double)t.tv_nsec};
}

/* Seconds since `begun`.  With a GPU: by the clock.  On a CPU: the processor time divided by the
 * smaller of `threads` and the cores of a rank.  A rank that has its cores to itself takes about
 * this time. */
static double spent(const struct bench *b, struct moment begun, int threads)
{
  struct moment end = now();
  return is_gpu(b) ? end.wall - begun.wall : (end.cpu - begun.cpu) / fmin(threads, b->cores);
}

/* *seconds <- the largest `mine` of all ranks.  Collective. */
static int slowest(struct bench *b, double mine, double *seconds)
{
  TRY(comm_allgather_real(b->c, mine, b->all));
  *seconds = 0;
  for (int r = 0; r < b->c->size; r++)
    if (b->all[r] > *seconds) *seconds = b->all[r];
  return OK;
}

/* Run once without timing, then --repeats times, but at most 64, on all ranks at once.  *seconds <-
 * the median of the times of the slowest rank.  Collective. */
static int time_take(struct bench *b, int (*run)(struct bench *b, const double *at),
                     const double *at, double *seconds)
{
  double each[64];
  int repeats = (int)imin(b->common->repeats, LENGTH(each));
  TRY(comm_agree(b->c, run(b, at)));
  for (int i = 0; i < repeats; i++) {
    struct moment begun = now();
    int status = run(b, at);
    double took = spent(b, begun, b->common->threads);
    TRY(comm_agree(b->c, status));
    TRY(slowest(b, took, &each[i]));
  }
  *seconds = median(each, repeats);
  return OK;
}

/* Add the rate of all ranks together, if each rank does `work` in `seconds`. */
static int rate_add(struct bench *b, enum rate which, const double *at, double work, double seconds)
{
  CHECK(rates_add(&b->rates, which, at, work * b->c->size / fmax(seconds, 1e-9)), ERR_INTERNAL,
        "more than %d rates", RATE_LINES_MOST);
  return OK;
}

static int measure(struct bench *b, int (*run)(struct bench *b, const double *at), enum rate which,
                   const double *at, double work)
{
  double seconds;
  TRY(time_take(b, run, at, &seconds));
  return rate_add(b, which, at, work, seconds);
}

static int device_begin(struct bench *b, idx p, idx k, int nonnegative)
{
  struct device_options options = bench_device(b->common, p, b->c->local_rank);
  struct device *dev = &b->device;
  b->p = p, b->k = k;
  b->n = (idx)imax(LEAST_ROWS, imin(ROW_BLOCK, (gidx)(RUN_TERMS / p / k)));
  if (is_gpu(b)) b->n = GPU_ROWS;
  gidx entries = (gidx)b->n * MOST_S, row = p * (gidx)sizeof(float);
  options.max_atoms = k;
  options.work = RUN_TERMS * 1e3;
  options.route_rows = b->n;
  options.top_k = options.support = MOST_S;
  options.filter = "auto";
  options.nonnegative = nonnegative;
  TRY(device_open(dev, &options));
  random_fill(b->atoms, (gidx)k * p, 1);
  atoms_normalize(b->atoms, k, 1, p);
  TRY(device_put_tile(dev, b->atoms, k, 0));
  gidx state = device_codes_state_bytes(dev, MOST_S, 0);
  TRY(buffer_wrap(dev, &b->given, b->rows, b->n * row));
  TRY(buffer_wrap(dev, &b->table, b->atoms, k * row));
  TRY(buffer_alloc(dev, &b->lists, entries * (gidx)sizeof(struct entry)));
  TRY(buffer_alloc(dev, &b->slot, entries * (gidx)sizeof(idx)));
  TRY(buffer_alloc(dev, &b->codes, entries * (gidx)sizeof(float)));
  TRY(buffer_alloc(dev, &b->quality, b->n * (gidx)sizeof(struct row_quality)));
  TRY(buffer_alloc(dev, &b->residual, b->n * row));
  TRY(buffer_alloc_device(dev, &b->state, b->n * state));
  TRY(device_put(dev, &b->given, 0, b->n * row));
  return device_put(dev, &b->table, 0, k * row);
}

static void device_end(struct bench *b)
{
  struct buffer *const all[] = {&b->given, &b->table,   &b->lists,    &b->slot,
                                &b->codes, &b->quality, &b->residual, &b->state};
  snprintf(b->rates.device, sizeof b->rates.device, "%s", b->device.variant);
  snprintf(b->rates.kind, sizeof b->rates.kind, "%s", b->device.kind);
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&b->device, all[i]);
  device_close(&b->device);
}

static int route_run(struct bench *b, const double *at)
{
  struct route_job job = {.rows = &b->given, .n = b->n, .top_k = (idx)at[2], .lists = &b->lists};
  TRY(device_route(&b->device, &job));
  return device_finish(&b->device);
}

/* Solve the codes of the supports that round `round` ends with.  The last round gives codes and
 * quality; each earlier round gives residuals. */
static int round_solve(struct bench *b, idx s, idx rounds, idx round)
{
  struct codes_job job = {.n = b->n,
                          .m_old = round_end(s, rounds, round - 1),
                          .m_new = round_end(s, rounds, round),
                          .max_m = s,
                          .rows = &b->given,
                          .atoms = &b->table,
                          .slot = &b->slot,
                          .state = rounds > 1 ? &b->state : NULL};
  if (round < rounds)
    job.residual = &b->residual;
  else
    job.codes = &b->codes, job.quality = &b->quality;
  return device_codes(&b->device, &job);
}

/* Solve codes of at[1] atoms per row in at[2] rounds. */
static int codes_run(struct bench *b, const double *at)
{
  for (idx round = 1; round <= (idx)at[2]; round++)
    TRY(round_solve(b, (idx)at[1], (idx)at[2], round));
  return device_finish(&b->device);
}

/* Route for slots begin .. end - 1 of each support: the rows if begin is 0, otherwise their
 * residuals.  Atoms of lower slots are excluded. */
static int round_route(struct bench *b, idx s, idx begin, idx end)
{
  idx *slot = b->slot.host, more = end - begin;
  gidx bytes = (gidx)b->n * s * (gidx)sizeof(idx);
  struct route_job job = {.rows = begin ? &b->residual : &b->given,
                          .n = b->n,
                          .top_k = more,
                          .excluded = {slot, begin, s},
                          .chosen = begin ? &b->slot : NULL,
                          .lists = &b->lists};
  TRY(device_route(&b->device, &job));
  TRY(device_get(&b->device, &b->lists, 0, (gidx)b->n * more * (gidx)sizeof(struct entry)));
  const struct entry *lists = b->lists.host;
  for (gidx i = 0; i < b->n; i++)
    for (idx j = 0; j < more; j++) slot[i * s + begin + j] = lists[i * more + j].atom;
  return device_put(&b->device, &b->slot, 0, bytes);
}

/* Make supports of s atoms per row, as an encoder with `rounds` rounds does. */
static int supports_make(struct bench *b, idx s, idx rounds)
{
  memset(b->slot.host, 0, (size_t)b->n * (size_t)s * sizeof(idx));
  for (idx round = 1; round <= rounds; round++) {
    TRY(round_route(b, s, round_end(s, rounds, round - 1), round_end(s, rounds, round)));
    if (round < rounds) TRY(round_solve(b, s, rounds, round));
  }
  return OK;
}

static int codes_measure(struct bench *b, enum rate which)
{
  for (int i = 0; i < LENGTH(CODED_S); i++)
    for (int j = 0; j < LENGTH(ROUNDS); j++) {
      const double at[] = {b->p, CODED_S[i], ROUNDS[j]};
      TRY(comm_agree(b->c, supports_make(b, CODED_S[i], ROUNDS[j])));
      TRY(measure(b, codes_run, which, at, b->n));
    }
  return OK;
}

static int routes_measure(struct bench *b)
{
  for (int c = 0; c < LENGTH(COLUMNS); c++)
    for (int a = 0; a < LENGTH(ATOMS); a++) {
      TRY(comm_agree(b->c, device_begin(b, COLUMNS[c], ATOMS[a], 0)));
      for (int s = 0; s < LENGTH(TOP_S); s++) {
        const double at[] = {b->p, b->k, TOP_S[s]};
        TRY(measure(b, route_run, RATE_ROUTE, at, (double)b->n * b->p * b->k));
      }
      if (b->k == CODED_ATOMS) TRY(codes_measure(b, RATE_CODES));
      device_end(b);
    }
  for (int c = 0; c < LENGTH(COLUMNS); c++) {
    TRY(comm_agree(b->c, device_begin(b, COLUMNS[c], CODED_ATOMS, 1)));
    TRY(codes_measure(b, RATE_NONNEGATIVE));
    device_end(b);
  }
  return OK;
}

/* The update of a fit: at most CODED_ATOMS atoms, and rows with random codes and supports. */
struct update_case {
  struct buffer slots, codes, gram, target, atoms, diagonal, work;
  real *held, *weight, *after; /* [k], [k], [k][p] */
  idx s;
};

static int sums_run(struct bench *b, const double *at)
{
  struct update_case *u = b->update;
  struct normal_job add = {.n = b->n,
                           .s = u->s,
                           .p = b->p,
                           .k = b->k,
                           .slots = &u->slots,
                           .codes = &u->codes,
                           .x = &b->given,
                           .own = {0, b->k, NORMAL_BLOCK},
                           .end = b->p,
                           .gram = &u->gram,
                           .target = &u->target,
                           .work = &u->work};
  (void)at;
  TRY(device_normal_add(&b->device, &add));
  return device_finish(&b->device);
}

static int descent_run(struct bench *b, const double *at)
{
  struct update_case *u = b->update;
  struct descend_job job = {b->k,      b->p,         1,       0, b->k, &u->gram, &u->target,
                            &u->atoms, &u->diagonal, &u->work};
  (void)at;
  TRY(device_normal_descend(&b->device, &job));
  return device_finish(&b->device);
}

static int conjugate_run(struct bench *b, const double *at)
{
  struct update_case *u = b->update;
  const struct conjugate_job job = {.n = b->n,
                                    .s = u->s,
                                    .k = b->k,
                                    .columns = b->p,
                                    .steps = CONJUGATE_STEPS,
                                    .atoms = u->slots.host,
                                    .codes = u->codes.host,
                                    .x = b->rows,
                                    .x_stride = b->p,
                                    .before = u->atoms.host,
                                    .before_stride = b->p,
                                    .held = u->held,
                                    .weight = u->weight,
                                    .after = u->after,
                                    .work = u->work.host};
  (void)at;
  return cpu_conjugate(&b->device, &job);
}

/* Draw codes, and supports of s atoms.  The first atom of a row is random, and the others follow at
 * equal distances, so that all atoms of a row are different. */
static void supports_fill(struct bench *b, idx s)
{
  struct update_case *u = b->update;
  idx *slots = u->slots.host;
  float *codes = u->codes.host;
  u->s = s;
  random_fill(codes, (gidx)b->n * s, 3);
  for (gidx i = 0; i < b->n; i++)
    for (gidx j = 0, first = (gidx)(mix64((uint64_t)i) >> 1); j < s; j++)
      slots[i * s + j] = (idx)((first + j * (b->k / s)) % b->k);
}

static int update_alloc(struct bench *b)
{
  struct update_case *u = b->update;
  struct device *dev = &b->device;
  gidx k = b->k, p = b->p, real_bytes = (gidx)sizeof(real);
  b->n = ROW_BLOCK;
  gidx work = device_normal_bytes(dev, b->n, MOST_S, b->k, b->p);
  work = imax(work, cpu_conjugate_bytes(b->common->threads, b->n, b->k, b->p));
  TRY(buffer_wrap(dev, &b->given, b->rows, b->n * p * (gidx)sizeof(float)));
  TRY(buffer_alloc(dev, &u->slots, (gidx)b->n * MOST_S * (gidx)sizeof(idx)));
  TRY(buffer_alloc(dev, &u->codes, (gidx)b->n * MOST_S * (gidx)sizeof(float)));
  TRY(buffer_alloc_device(dev, &u->gram, k * k * real_bytes));
  TRY(buffer_alloc_device(dev, &u->target, k * p * real_bytes));
  TRY(buffer_alloc(dev, &u->atoms, k * p * real_bytes));
  TRY(buffer_alloc(dev, &u->diagonal, k * real_bytes));
  TRY(buffer_alloc(dev, &u->work, work));
  TRY(device_put(dev, &b->given, 0, b->n * p * (gidx)sizeof(float)));
  TRY(device_normal_decay(dev, &u->gram, 0, k * k, 0));
  return device_normal_decay(dev, &u->target, 0, k * p, 0);
}

static int update_begin(struct bench *b, const char *kind, idx p, idx k)
{
  struct update_case *u = b->update;
  struct device_options options = bench_device(b->common, p, b->c->local_rank);
  b->p = p, b->k = k;
  options.kind = kind;
  options.max_atoms = k;
  TRY(device_open(&b->device, &options));
  TRY(update_alloc(b));
  TRY(arena_alloc(&b->updates, &u->held, k, sizeof(real)));
  TRY(arena_alloc(&b->updates, &u->weight, k, sizeof(real)));
  TRY(arena_alloc(&b->updates, &u->after, (gidx)k * p, sizeof(real)));
  for (gidx i = 0; i < (gidx)k * p; i++) ((real *)u->atoms.host)[i] = b->rows[i % MOST_COLUMNS];
  for (idx i = 0; i < k; i++) u->held[i] = 0, u->weight[i] = 1;
  return device_put(&b->device, &u->atoms, 0, (gidx)k * p * (gidx)sizeof(real));
}

static void update_end(struct bench *b)
{
  struct update_case *u = b->update;
  struct buffer *const all[] = {&u->slots, &u->codes,    &u->gram, &u->target,
                                &u->atoms, &u->diagonal, &u->work, &b->given};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&b->device, all[i]);
  device_close(&b->device);
  arena_free(&b->updates);
  *u = (struct update_case){0};
}

/* Measure RATE_SUMS or RATE_CONJUGATE for each number of atoms per row in ENDS_S. */
static int update_measure(struct bench *b, enum rate which, idx k)
{
  double p = b->p;
  for (int i = 0; i < LENGTH(ENDS_S); i++) {
    double s = ENDS_S[i], work = b->n * s * (s + p);
    const double of_sums[] = {p, k, s}, of_steps[] = {p, s, 1};
    supports_fill(b, ENDS_S[i]);
    TRY(comm_agree(b->c, device_put(&b->device, &b->update->slots, 0, b->update->slots.bytes)));
    TRY(comm_agree(b->c, device_put(&b->device, &b->update->codes, 0, b->update->codes.bytes)));
    if (which == RATE_SUMS) TRY(measure(b, sums_run, which, of_sums, work));
    if (which == RATE_CONJUGATE)
      TRY(measure(b, conjugate_run, which, of_steps, b->n * s * p * (2 * CONJUGATE_STEPS + 1)));
  }
  return OK;
}

/* Measure the rates of updates that move all atoms.  The conjugate update is always the CPU's. */
static int updates_measure(struct bench *b)
{
  static struct update_case u;
  b->update = &u;
  for (int c = 0; c < LENGTH(COLUMNS); c++) {
    for (int a = 0; ATOMS[a] <= CODED_ATOMS; a++) {
      const double at[] = {COLUMNS[c], ATOMS[a], 1};
      TRY(comm_agree(b->c, update_begin(b, b->common->device, COLUMNS[c], ATOMS[a])));
      TRY(update_measure(b, RATE_SUMS, ATOMS[a]));
      TRY(measure(b, descent_run, RATE_DESCENT, at, (double)b->k * b->k * b->p));
      update_end(b);
    }
    TRY(comm_agree(b->c, update_begin(b, "cpu", COLUMNS[c], CODED_ATOMS)));
    TRY(update_measure(b, RATE_CONJUGATE, CODED_ATOMS));
    update_end(b);
  }
  return OK;
}

/* Sources in memory.  Row i of the source is row i % ROW_BLOCK of b->rows. */
static int rows_read(void *self, gidx first, idx count, float *out)
{
  const struct bench *b = self;
  for (; count > 0; first++, count--, out += b->p)
    memcpy(out, b->rows + first % ROW_BLOCK * b->p, (size_t)b->p * sizeof *out);
  return OK;
}

static int atoms_read(void *self, idx first, idx count, float *out)
{
  const struct bench *b = self;
  memcpy(out, b->atoms + (gidx)first * b->p, (size_t)count * (size_t)b->p * sizeof *out);
  return OK;
}

static int block_drop(void *self, const struct support_block *block)
{
  (void)self, (void)block;
  return OK;
}

static int step_run(struct bench *b, const double *at)
{
  (void)at;
  return bench_train_step(&b->scores);
}

/* The ranks divide each step.  So a rank's work is the work of a step divided by their number. */
static int steps_measure(struct bench *b)
{
  static const idx columns[] = {64, MOST_COLUMNS};
  static const idx atoms[][2] = {{512, CODED_ATOMS}, {CODED_ATOMS, MOST_ATOMS}};
  static const idx batches[][2] = {{256, 1024}, {1024, 8192}};
  const int gpu = is_gpu(b);
  for (int i = 0; i < 8; i++) {
    struct bench_route_options o = {.n_rows = batches[gpu][i % 2],
                                    .atoms = atoms[gpu][i / 2 % 2],
                                    .columns = columns[i / 4],
                                    .top_s = ENDS_S[0],
                                    .precision = "f32"};
    const double at[] = {o.columns, o.atoms, o.n_rows};
    double work = (double)o.n_rows * o.atoms * o.columns / b->c->size, seconds;
    TRY(bench_train_begin(&o, b->common, b->c));
    TRY(time_take(b, step_run, at, &seconds));
    TRY(rate_add(b, RATE_STEP, at, work, seconds));
    TRY(slowest(b, b->scores, &b->scores));
    TRY(rate_add(b, RATE_SCORES, at, work, seconds * b->scores));
    bench_train_end(b->c);
  }
  return OK;
}

static int moves_run(struct bench *b, const double *at)
{
  (void)b, (void)at;
  return bench_moves_run();
}

static int color_run(struct bench *b, const double *at)
{
  (void)b, (void)at;
  return bench_color_run();
}

/* Measure RATE_MOVES, or RATE_MOVES_ONE if q is 1. */
static int sweeps_measure(struct bench *b, idx q)
{
  static const idx atom_rows[] = {16, 512};
  static const idx class_rows[][3] = {{512, 2048, 8192}, {512, 4096, 32768}};
  const int gpu = is_gpu(b);
  double work;
  for (int i = 0; i < 18; i++) {
    const idx columns = COLUMNS[i / 6], values = gpu ? GPU_MOVED_VALUES : MOVED_VALUES;
    const struct bench_moves_shape shape = {.columns = columns,
                                            .atom_rows = atom_rows[i / 3 % 2],
                                            .class_rows = class_rows[gpu][i % 3],
                                            .rank_rows = values / columns,
                                            .directions = q};
    const double at[] = {shape.columns, shape.atom_rows, shape.class_rows};
    TRY(bench_moves_begin(&shape, b->common, b->c, &work));
    TRY(measure(b, moves_run, q == 1 ? RATE_MOVES_ONE : RATE_MOVES, at, work));
    TRY(bench_moves_end());
  }
  return OK;
}

/* Measure the rates of atoms that move class by class, on MOVES_RANKS ranks at most: each of them
 * has all atoms, whose number grows with the ranks. */
static int moves_measure(struct bench *b)
{
  double work;
  if (b->c->size > MOVES_RANKS) return OK;
  TRY(sweeps_measure(b, 4));
  if (is_gpu(b)) TRY(sweeps_measure(b, 1));
  for (int i = 0; i < LENGTH(ENDS_S); i++) {
    const double at[] = {ENDS_S[i], 1, 1};
    TRY(bench_color_begin(ENDS_S[i], CODED_ATOMS, b->common, b->c, &work));
    TRY(measure(b, color_run, RATE_COLOR, at, work));
    TRY(bench_color_end());
  }
  return OK;
}

static int solve_run(struct bench *b, const double *at)
{
  (void)b, (void)at;
  return bench_arrow_solve();
}

static int solves_measure(struct bench *b)
{
  static const idx frames[] = {1, 2, 4};
  static const gidx rows[] = {16, 256, 4096};
  for (int i = 0; i < 9; i++) {
    struct bench_arrow_options o = {.system_rows = rows[i % 3],
                                    .frame = frames[i / 3],
                                    .border = 4,
                                    .megabytes = 8 * b->c->size,
                                    .lengths = "fixed"};
    const double at[] = {o.frame, (double)o.system_rows, 1};
    double bytes;
    TRY(comm_agree(b->c, bench_arrow_begin(&o, b->common, b->c, &bytes)));
    TRY(measure(b, solve_run, RATE_SOLVE, at, bytes));
    bench_arrow_end();
  }
  return OK;
}

/* A source in memory with `blocks` sum blocks of rows per rank. */
static struct row_source rows_in_memory(struct bench *b, int blocks, idx p)
{
  return (struct row_source){.n = (gidx)blocks * ROW_BLOCK * b->c->size,
                             .p = p,
                             .name = "random rows",
                             .row_bytes = 4. * p,
                             .self = b,
                             .read = rows_read,
                             .is_shared = 1};
}

/* Encode the rows of rows_in_memory(). */
static int encode_once(struct bench *b, int blocks, idx p, idx s, struct encode_result *result)
{
  struct comm *c = b->c;
  const struct row_source memory = rows_in_memory(b, blocks, p);
  const struct atom_source atoms = {.k = COUNTED_ATOMS,
                                    .d = 1,
                                    .p = p,
                                    .name = "random atoms",
                                    .self = b,
                                    .read = atoms_read,
                                    .is_shared = 1};
  const struct support_sink sink = {b, block_drop};
  struct encode_task task = {.rows = &memory,
                             .atoms = &atoms,
                             .sink = &sink,
                             .by_ranks = c->size > 1,
                             .top_s = s,
                             .rounds = 1,
                             .groups = c->size,
                             .threads = b->common->threads,
                             .device = b->common->device,
                             .variant = b->common->cpu_variant,
                             .kernels = b->common->kernels,
                             .filter = "auto",
                             .codes = 1,
                             .normalize = 1};
  b->p = p;
  encode_cut_choose(&task, c->size);
  return encode_run(&task, c, result);
}

/* Read, hash and check this rank's rows of b->source, as a job does in one thread. */
static int source_read_run(struct bench *b, const double *at)
{
  (void)at;
  for (int block = 0; block < FILE_BLOCKS; block++) {
    uint64_t terms = 0;
    const struct rows_load load = {
        .rows = b->source,
        .first = ((gidx)b->c->rank * FILE_BLOCKS + block) * ROW_BLOCK,
        .count = ROW_BLOCK,
        .x = b->atoms,
        .terms = &terms,
        .whole = b->source,
    };
    TRY(rows_load(&load));
  }
  return OK;
}

/* Measure RATE_COUNT: the time to encode FILE_BLOCKS sum blocks per rank, without the times of
 * reading, routing and codes.  Two encodes are timed, one with FILE_BLOCKS sum blocks more: the
 * time of opening is not in the difference. */
static int count_measure(struct bench *b, idx p, idx s)
{
  static struct encode_result result;
  const double at[] = {p, s, 1}, of_route[] = {p, COUNTED_ATOMS, s};
  const struct row_source memory = rows_in_memory(b, FILE_BLOCKS, p);
  double route, codes, read, took[2];
  TRY(comm_agree(b->c, device_begin(b, p, COUNTED_ATOMS, 0)));
  TRY(time_take(b, route_run, of_route, &route));
  TRY(comm_agree(b->c, supports_make(b, s, 1)));
  TRY(time_take(b, codes_run, at, &codes));
  b->source = &memory;
  TRY(time_take(b, source_read_run, at, &read));
  double others = (route + codes) * FILE_BLOCKS * ROW_BLOCK / b->n + read;
  device_end(b);
  for (int i = 0; i < 2; i++) {
    struct moment begun = now();
    TRY(encode_once(b, i ? 1 + FILE_BLOCKS : 1, p, s, &result));
    took[i] = spent(b, begun, b->common->threads);
    encode_free(&result);
  }
  /* The variation of `others` may exceed the rest, so at least a hundredth of `others` remains. */
  double least = others / 100, rest = fmax(took[1] - took[0] - others, least);
  TRY(slowest(b, rest, &rest));
  return rate_add(b, RATE_COUNT, at, FILE_BLOCKS * ROW_BLOCK, rest);
}

static int counts_measure(struct bench *b)
{
  static const idx columns[] = {64, MOST_COLUMNS};
  for (int i = 0; i < LENGTH(columns); i++)
    for (int j = 0; j < LENGTH(ENDS_S); j++) TRY(count_measure(b, columns[i], ENDS_S[j]));
  return OK;
}

/* On rank 0: write rows to the file b->path, which all ranks read. */
static int rows_file_write(struct bench *b)
{
  struct matrix_output f = {0};
  gidx n = (gidx)FILE_BLOCKS * ROW_BLOCK * b->c->size;
  TRY(rows_output_create(&f, b->path, n, FILE_COLUMNS));
  for (gidx first = 0; first < n; first += ROW_BLOCK)
    TRY(matrix_output_write(&f, first, ROW_BLOCK, b->rows));
  return matrix_output_finish(&f, NULL, 0);
}

/* Returns the factor that corrects a time of time_take() if only one thread of each rank works:
 * time_take() divides processor time by all threads of a rank. */
static double alone(const struct bench *b)
{
  return is_gpu(b) ? 1 : fmin(b->common->threads, b->cores) / fmin(1, b->cores);
}

static int file_read_measure(struct bench *b)
{
  static struct rows_input rows;
  const double at[RATE_AXES] = {1, 1, 1};
  double seconds, bytes = (double)sizeof(float) * FILE_COLUMNS * FILE_BLOCKS * ROW_BLOCK;
  TRY(comm_agree(b->c, b->c->rank ? OK : rows_file_write(b)));
  TRY(comm_agree(b->c, rows_input_open(&rows, b->c, b->path)));
  b->source = &rows.source;
  TRY(time_take(b, source_read_run, at, &seconds));
  TRY(rate_add(b, RATE_READ, at, bytes, seconds * alone(b)));
  rows_input_close(&rows);
  if (b->c->rank == 0) unlink(b->path);
  return OK;
}

static int exchange_run(struct bench *b, const double *at)
{
  (void)at;
  idx counts[1024];
  for (int r = 0; r < b->c->size; r++) counts[r] = EXCHANGED / 4 / b->c->size;
  return comm_allgather(b->c, b->rows, counts, sizeof(float), b->atoms);
}

static int exchange_measure(struct bench *b)
{
  const double at[RATE_AXES] = {1, 1, 1};
  const int size = b->c->size;
  double seconds;
  TRY(time_take(b, exchange_run, at, &seconds));
  return rate_add(b, RATE_EXCHANGE, at, EXCHANGED * (size - 1.) / size, seconds * alone(b));
}

/* Add the time in which a job opens its GPUs and loads its first kernels; not that of joining them,
 * which few jobs do. */
static int gpu_start_measure(struct bench *b)
{
  const double at[] = {COLUMNS[0], ATOMS[0], TOP_S[0]};
  double begun = log_seconds();
  if (!is_gpu(b)) return OK;
  TRY(comm_agree(b->c, device_begin(b, COLUMNS[0], ATOMS[0], 0)));
  TRY(comm_agree(b->c, route_run(b, at)));
  device_end(b);
  return slowest(b, b->rates.start + log_seconds() - begun, &b->rates.start);
}

static int gpu_exchange_run(struct bench *b, const double *at)
{
  (void)at;
  idx counts[1024];
  for (int r = 0; r < b->c->size; r++) counts[r] = GPU_EXCHANGED / 4 / b->c->size;
  TRY(comm_allgather_buffer(b->c, &b->device, &b->lists, counts, sizeof(float)));
  return device_finish(&b->device);
}

/* Measure RATE_EXCHANGE of joined GPUs. */
static int gpu_exchange_measure(struct bench *b)
{
  const double at[RATE_AXES] = {1, 1, 1}, size = b->c->size;
  double seconds;
  TRY(comm_agree(b->c, device_begin(b, COLUMNS[0], ATOMS[0], 0)));
  buffer_free(&b->device, &b->lists);
  TRY(comm_agree(b->c, buffer_alloc(&b->device, &b->lists, GPU_EXCHANGED)));
  TRY(comm_devices_open(b->c, b->c, &b->device, GPU_EXCHANGED));
  TRY(time_take(b, gpu_exchange_run, at, &seconds));
  comm_devices_close(b->c);
  device_end(b);
  return rate_add(b, RATE_EXCHANGE, at, GPU_EXCHANGED * (size - 1) / size, seconds);
}

static int all_measure(struct bench *b, const struct bench_write_options *o)
{
  const double at[RATE_AXES] = {1, 1, 1};
  struct write_seconds writing;
  TRY(gpu_start_measure(b));
  TRY(routes_measure(b));
  TRY(updates_measure(b));
  TRY(moves_measure(b));
  TRY(steps_measure(b));
  TRY(solves_measure(b));
  TRY(counts_measure(b));
  TRY(file_read_measure(b));
  TRY(bench_write_once(o, b->common, b->c, &writing));
  TRY(rate_add(b, RATE_WRITE, at, writing.bytes / b->c->size, writing.rows));
  TRY(rate_add(b, RATE_CHECK, at, writing.bytes / b->c->size, writing.end));
  if (b->c->size == 1 || b->c->size > 1024) return OK;
  return is_gpu(b) ? gpu_exchange_measure(b) : exchange_measure(b);
}

static void line_print(const struct rate_line *line)
{
  const struct rate_row *row = &rate_rows[line->which];
  printf("%-12s %12.4g %-14s", row->name, line->rate, row->unit);
  for (int a = 0; a < RATE_AXES && row->axes[a]; a++)
    printf("%s%s %.0f", a ? ", " : "  ", row->axes[a], line->at[a]);
  printf("\n");
}

static void line_write(const struct rate_line *line, struct json *j)
{
  const struct rate_row *row = &rate_rows[line->which];
  json_object(j, NULL);
  json_text(j, "name", row->name);
  json_array(j, "at");
  for (int a = 0; a < RATE_AXES && row->axes[a]; a++) json_real(j, NULL, line->at[a]);
  json_end(j);
  json_array(j, "axes");
  for (int a = 0; a < RATE_AXES && row->axes[a]; a++) json_text(j, NULL, row->axes[a]);
  json_end(j);
  json_real(j, "rate", line->rate);
  json_text(j, "unit", row->unit);
  json_end(j);
}

static void table_print(const struct bench *b)
{
  const struct rates *r = &b->rates;
  struct json *j = b->common->json;
  char cpu[sizeof r->cpu];
  proc_cpu(cpu, sizeof cpu);
  if (!j) {
    printf("%s, %s, ranks=%d threads=%d start=%.3f s; rates of all ranks together, per second:\n",
           cpu, r->device, b->c->size, b->common->threads, r->start);
    for (int i = 0; i < r->count; i++) line_print(&r->lines[i]);
    return;
  }
  json_text(j, "cpu", cpu);
  json_text(j, "variant", r->device);
  json_long(j, "ranks", b->c->size);
  json_real(j, "start_seconds", r->start);
  json_array(j, "rates");
  for (int i = 0; i < r->count; i++) line_write(&r->lines[i], j);
  json_end(j);
}

static int bench_begin(struct bench *b, const struct bench_write_options *o)
{
  CHECK(o->output, ERR_USAGE, "'--output' is missing: give a folder");
  int length = snprintf(b->path, sizeof b->path, "%s/bench-rates.h5", o->output);
  CHECK(length < (int)sizeof b->path, ERR_USAGE, "the name '%s' is too long", o->output);
  CHECK(access(b->path, F_OK) < 0, ERR_CREATE, "'%s' already exists", b->path);
  if (!is_gpu(b)) TRY(device_check_fma());
  TRY(arena_alloc(&b->arena, &b->atoms, (gidx)MOST_ATOMS * MOST_COLUMNS, sizeof *b->atoms));
  gidx rows = (is_gpu(b) ? GPU_ROWS : ROW_BLOCK) * (gidx)MOST_COLUMNS;
  TRY(arena_alloc(&b->arena, &b->rows, rows, sizeof *b->rows));
  TRY(arena_alloc(&b->arena, &b->all, b->c->size, sizeof *b->all));
  random_fill(b->rows, rows, 2);
  return OK;
}

int bench_rates(const struct bench_write_options *o, const struct bench_common *common,
                struct run *run)
{
  static struct bench b;
  const struct core_partition of = cores_partition(run->cores, run->comm.size, run->comm.rank);
  b = (struct bench){.cores = (double)of.used / of.processes,
                     .common = common,
                     .c = &run->comm,
                     .rates.start = log_seconds()};
  TRY(comm_agree(b.c, bench_begin(&b, o)));
  TRY(slowest(&b, b.rates.start, &b.rates.start));
  TRY(all_measure(&b, o));
  if (b.c->rank == 0) table_print(&b);
  arena_free(&b.arena);
  return OK;
}
