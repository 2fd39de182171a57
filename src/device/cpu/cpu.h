/* SPDX-License-Identifier: BSD-3-Clause
 * Internals of the CPU device: its state, and the operations of its table.
 *
 * Floor: device.
 *
 * The dictionary is kept in panels (route_loops.h).  Each hot loop has one source, such as
 * route_body.h or codes_body.h, and is compiled once per instruction set (isa.h). */
#ifndef DEVICE_CPU_CPU_H
#define DEVICE_CPU_CPU_H

#include "base/memory.h"
#include "device/backend.h"
#include "device/cpu/arrow_loops.h"
#include "device/cpu/attention_loops.h"
#include "device/cpu/codes_loops.h"
#include "device/cpu/mixer_loops.h"
#include "device/cpu/normal_loops.h"
#include "device/cpu/route_loops.h"
#include "device/cpu/screen_atoms.h"
#include "device/cpu/triad_loops.h"

enum { CACHE_LINE = 64 };

/* Work arrays of attribution, kept between jobs. */
struct attribution_work;
void attribution_work_free(struct attribution_work *w);

/* Work arrays of the arrow systems, one set per thread, kept between jobs. */
struct arrow_worker;
struct arrow_scratch {
  struct arena arena;
  struct arrow_worker *workers; /* [threads] */
  gidx panel, tail, sums;       /* reals per thread */
};

struct cpu_state {
  struct arena arena; /* holds this struct and the forms of the dictionary */
  struct device_options options;
  const struct route_loops *route;
  /* The loops from codes to mixer are NULL without hardware FMA. */
  const struct codes_loops *codes;
  const struct arrow_loops *arrow;
  const struct refit_loops *refit;
  const struct dense_loops *dense;
  const struct normal_loops *normal;
  const struct triad_loops *triad;
  const struct attention_loops *attention;
  float *shard; /* [shard_values] keys and values of a shard, packed for the loops; owned */
  gidx shard_values;
  const struct mixer_loops *mixer;
  float *mixer_values; /* [mixer_floats] workspace of a call; owned */
  gidx mixer_floats;
  struct attribution_work *attribution; /* owned; NULL: not yet allocated */
  struct arrow_scratch arrow_scratch;
  float *panels; /* [ceil(max_atoms / lanes)][d][p][lanes] */
  idx *atom_of;  /* [max_atoms] global number of the atom in each slot */
  idx count;     /* slots in use; slot i holds the i-th atom that was put */
  int ascending; /* 1: the numbers in atom_of ascend */
  struct screen_state screen;
};

/* The state of a CPU device. */
static inline struct cpu_state *cpu_of(const struct device *dev)
{
  return dev->state;
}

/* The operations of the table. */
int cpu_route(struct device *dev, struct route_job *job);
int cpu_scatter(struct device *dev, const struct scatter_job *job);
int cpu_encoder(struct device *dev, struct encoder_job *job);
int cpu_route_exact(struct device *dev, struct route_job *job); /* without the filter */
gidx cpu_codes_state_bytes(idx vectors, real rho, int nonnegative);
int cpu_codes(struct device *dev, const struct codes_job *job);
int cpu_quality(struct device *dev, const struct quality_job *job);
int cpu_arrow(struct device *dev, struct arrow_job *job);
int cpu_attention(struct device *dev, const struct attention_job *job);
int cpu_mixer_run(struct mixer *w, const struct mixer_job *job);
int cpu_attribution(struct device *dev, const struct attribution_job *job);
int cpu_residuals(struct device *dev, const struct residual_job *job);
int cpu_row_products(struct device *dev, const real *residual, idx p, const struct rows_item *items,
                     gidx count);
int cpu_row_sums(struct device *dev, const real *residual, idx p, const struct rows_item *items,
                 gidx count);
int cpu_moves_try(struct device *dev, const struct moves_job *job);
int cpu_moves_keep(struct device *dev, const struct moves_job *job);
real cpu_frame_end(const struct device *dev, const struct frame_end *end);
int cpu_directions_keep(struct device *dev, idx d, idx p, const struct keep_item *items,
                        gidx count);
int cpu_dense_open(struct dense *d);
void cpu_dense_close(struct dense *d);
int cpu_cholesky(struct dense *d, real *s, idx n, gidx stride, real *pivot, idx *good);
int cpu_inverse(struct dense *d, real *l, idx n, gidx stride);
int cpu_product(struct dense *d, const struct dense_product *p);
int cpu_entries(struct dense *d, const struct dense_entries *e);
int cpu_normal_add(struct device *dev, const struct normal_job *job);
int cpu_normal_decay(struct device *dev, struct buffer *values, gidx at, gidx count, real beta);
int cpu_normal_descend(struct device *dev, const struct descend_job *job);
int cpu_normal_energies(struct device *dev, const struct energies_job *job);
int cpu_normal_clear(struct device *dev, const struct clear_job *job);
gidx cpu_normal_bytes(idx n, idx s, idx k, idx columns);
int cpu_triad_product(struct device *dev, enum precision precision, const struct triad_product *p,
                      void *spare);
int cpu_triad_gradient(struct device *dev, enum precision precision, const struct triad_gradient *g,
                       void *spare);
int cpu_triad_sparse(struct device *dev, const struct triad_lists *l, int is_gradient, float *out);
int cpu_triad_dots(struct device *dev, const struct triad_lists *l, const float *rows, float *out);
int cpu_adam(struct device *dev, const struct adam_state *s, const struct adam_rates *rates);
int cpu_train_codes(struct device *dev, const struct train_codes_job *job);
gidx cpu_train_codes_bytes(const struct train_codes_job *job);
int cpu_train_offset(struct device *dev, float *x, gidx n, idx p, const float *offset);
int cpu_train_sums(struct device *dev, const float *rows, gidx n, gidx stride, idx p, float *to);
int cpu_train_errors(struct device *dev, const struct train_errors_job *job);
int cpu_train_scale(struct device *dev, float *values, gidx count, float factor);
int cpu_train_transpose(struct device *dev, const struct train_transpose_job *job);
int cpu_train_idle(struct device *dev, const struct train_idle_job *job);
int cpu_train_tangent(struct device *dev, const float *atoms, gidx count, idx p, float *gradient);
int cpu_train_normalize(struct device *dev, float *atoms, gidx count, idx p);
int cpu_joint_open(struct joint_work *w);
void cpu_joint_close(struct joint_work *w);
int cpu_joint_begin(struct joint_work *w, struct dense *d, real *s, gidx stride);
int cpu_joint_batch(struct joint_work *w, const struct joint_rows *rows, struct joint_sums *sums);
int cpu_joint_add(struct joint_work *w, real *s, gidx stride);
int cpu_joint_row_size(const struct joint_work *w, idx i, struct joint_size *size);
int cpu_parts_append(struct parts *p, struct joint_work *w, idx first, idx end);
int cpu_parts_apply(struct device *dev, const struct parts *p, idx n, idx groups, const real *x,
                    real *y);
int cpu_lanczos_step(struct device *dev, struct lanczos *l, idx j, real *y);

/* Prefetch piece `part` of `parts` equal pieces of an array into the second-level cache. */
static inline void cache_prefetch(const void *from, gidx bytes, idx part, idx parts)
{
  const char *at = (const char *)from + bytes * part / parts;
  const char *end = (const char *)from + bytes * (part + 1) / parts;
  for (; at < end; at += CACHE_LINE) __builtin_prefetch(at, 0, 2);
}

static inline gidx panel_floats(const struct cpu_state *s)
{
  return (gidx)s->options.d * s->options.p * s->route->lanes;
}

#endif
