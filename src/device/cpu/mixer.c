/* SPDX-License-Identifier: BSD-3-Clause
 * Gated delta nets on the CPU.  First q, k and v of all tokens are made.  Then a thread takes some
 * columns of one head of a sequence, and keeps their state from the input slot to the output
 * slot. */
#include "device/mixer.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/cpu/cpu.h"
#include "device/cpu/mixer_loops.h"

/* A call, and its workspace. */
struct work {
  const struct gated_delta *m;
  const struct mixer_job *job;
  const struct mixer_loops *loops;
  const unsigned char *way;
  gidx channels, taps, tokens, state; /* C; floats of a sequence's taps; all tokens; floats of a
                                       * sequence's states */
  float *weights;                     /* [width][C] */
  float *before;                      /* [sequences][width - 1][C] taps at the start of the call */
  float *rows;                        /* [tokens][C] q, k and v after the norm */
  float *decay;                       /* [tokens][count][decays] */
  float *gathered;                    /* [sequences][count][dv][d] states copied from slots */
};

/* from[rows][columns] -> out[columns][rows] */
static void transpose(const float *from, gidx rows, gidx columns, float *out)
{
  for (gidx r = 0; r < rows; r++)
    for (gidx c = 0; c < columns; c++) out[c * rows + r] = from[r * columns + c];
}

static int work_reserve(struct work *w, struct cpu_state *cpu)
{
  const struct gated_delta *m = w->m;
  gidx n = w->job->slots.sequences, decays = w->tokens * w->job->count * gated_delta_decays(m);
  gidx gathered = 0;
  for (idx i = 0; i < n; i++) gathered += w->way[i] == DELTA_GATHERED ? w->state : 0;
  gidx sizes[] = {w->channels * m->width, n * w->taps, w->tokens * w->channels, decays, gathered};
  float **arrays[] = {&w->weights, &w->before, &w->rows, &w->decay, &w->gathered};
  gidx all = 0;
  for (int i = 0; i < LENGTH(sizes); i++) all += sizes[i];
  TRY(array_reserve(&cpu->mixer_values, &cpu->mixer_floats, imax(all, 1), sizeof(float)));
  float *next = cpu->mixer_values;
  for (int i = 0; i < LENGTH(sizes); i++, next += sizes[i - 1]) *arrays[i] = next;
  return OK;
}

/* Before any slot is written, read the taps, and each state whose slot one sequence reads and
 * another writes. */
static void slots_read(struct work *w)
{
  const struct mixer_job *job = w->job;
  float *gathered = w->gathered;
  for (idx i = 0; i < job->slots.sequences; i++) {
    idx in = job->slots.in[i];
    float *before = w->before + i * w->taps;
    if (in < 0 && w->taps) memset(before, 0, (size_t)w->taps * sizeof *before);
    if (in >= 0 && w->taps)
      transpose((const float *)job->taps->device + in * w->taps, w->channels, w->m->width - 1,
                before);
    if (w->way[i] != DELTA_GATHERED) continue;
    memcpy(gathered, (const float *)job->s->device + in * w->state,
           (size_t)w->state * sizeof *gathered);
    gathered += w->state;
  }
}

/* The channels of token t - back of a sequence.  Tokens in front of the first one are the taps. */
static const float *channels_at(const struct work *w, idx sequence, gidx t, gidx back)
{
  const float *x = w->job->x->device;
  if (back <= t) return x + (w->job->start[sequence] + t - back) * w->channels;
  return w->before + sequence * w->taps + (w->m->width - 1 + t - back) * w->channels;
}

static void row_make(const struct work *w, idx sequence, gidx t)
{
  const struct gated_delta *m = w->m;
  gidx keys = (gidx)m->heads_k * m->d;
  float *row = w->rows + (w->job->start[sequence] + t) * w->channels;
  struct mixer_channels c = {.width = m->width,
                             .channels = w->channels,
                             .weights = w->weights,
                             .bias = w->job->conv_bias ? w->job->conv_bias->device : NULL,
                             .silu = m->silu,
                             .y = row};
  for (idx k = 0; k < m->width; k++) c.x[k] = channels_at(w, sequence, t, m->width - 1 - k);
  if (m->width)
    w->loops->conv(&c);
  else
    memcpy(row, channels_at(w, sequence, t, 0), (size_t)w->channels * sizeof *row);
  for (idx h = 0; m->l2 && h < 2 * m->heads_k; h++)
    w->loops->norm(m->d, m->eps, row + (gidx)h * m->d);
  for (gidx i = 0; i < keys; i++) row[i] *= m->scale;
}

/* The initial state of a sequence; NULL: zero. */
static const float *state_from(const struct work *w, idx sequence)
{
  idx in = w->job->slots.in[sequence];
  gidx before = 0;
  if (w->way[sequence] == DELTA_DIRECT)
    return in < 0 ? NULL : (const float *)w->job->s->device + in * w->state;
  for (idx i = 0; i < sequence; i++) before += w->way[i] == DELTA_GATHERED;
  return w->gathered + before * w->state;
}

/* All tokens of a sequence, for columns j .. j + columns - 1 of a head. */
static void columns_run(const struct work *w, idx sequence, idx head, idx j, idx columns)
{
  const struct gated_delta *m = w->m;
  const struct mixer_job *job = w->job;
  _Alignas(64) float s[DELTA_COLUMNS * MIXER_COLUMNS];
  gidx first = job->start[sequence], at = ((gidx)head * m->dv + j) * m->d;
  gidx keys = (gidx)m->heads_k * m->d, of = gated_delta_key_head(m, job->first + head) * (gidx)m->d;
  const float *from = state_from(w, sequence), *row = w->rows + first * w->channels;
  memset(s, 0, sizeof *s * (size_t)m->d * MIXER_COLUMNS);
  for (idx c = 0; from && c < columns; c++)
    for (idx i = 0; i < m->d; i++) s[i * MIXER_COLUMNS + c] = from[at + c * m->d + i];
  struct mixer_columns c = {.d = m->d,
                            .columns = columns,
                            .by_column = m->by_column,
                            .tokens = job->start[sequence + 1] - first,
                            .q = row + of,
                            .k = row + keys + of,
                            .v = row + 2 * keys + (gidx)(job->first + head) * m->dv + j,
                            .row = w->channels,
                            .decay_row = (gidx)job->count * gated_delta_decays(m),
                            .beta_row = job->count,
                            .s = s,
                            .o_row = (gidx)job->count * m->dv};
  c.decay = w->decay + first * c.decay_row + (gidx)head * gated_delta_decays(m);
  c.beta = (const float *)job->beta->device + first * c.beta_row + head;
  c.o = (float *)job->o->device + first * c.o_row + (gidx)head * m->dv + j;
  w->loops->steps(&c);
  if (job->slots.out[sequence] < 0) return;
  float *to = (float *)job->s->device + job->slots.out[sequence] * w->state + at;
  for (idx k = 0; k < columns; k++)
    for (idx i = 0; i < m->d; i++) to[k * m->d + i] = s[i * MIXER_COLUMNS + k];
}

/* Write the taps that a sequence leaves for its next call. */
static void taps_write(const struct work *w, idx sequence)
{
  idx out = w->job->slots.out[sequence], n = w->m->width - 1;
  gidx t = w->job->start[sequence + 1] - w->job->start[sequence];
  if (out < 0 || !w->taps) return;
  float *taps = (float *)w->job->taps->device + out * w->taps;
  for (idx j = 0; j < n; j++) {
    const float *x = channels_at(w, sequence, t, n - j);
    for (gidx c = 0; c < w->channels; c++) taps[c * n + j] = x[c];
  }
}

/* The sequence to which a token belongs. */
static idx sequence_of(const struct work *w, gidx token)
{
  idx low = 0, high = w->job->slots.sequences;
  while (high - low > 1) {
    idx middle = low + (high - low) / 2;
    if (w->job->start[middle] <= token)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static void work_run(const struct work *w, int threads)
{
  const struct gated_delta *m = w->m;
  const struct mixer_job *job = w->job;
  idx blocks = (idx)ceil_div(m->dv, MIXER_COLUMNS);
  gidx decays = (gidx)job->count * gated_delta_decays(m), n = job->slots.sequences;
  gidx tasks = n * job->count * blocks;
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (gidx t = 0; t < w->tokens; t++) {
      idx sequence = sequence_of(w, t);
      row_make(w, sequence, t - job->start[sequence]);
      w->loops->decays(decays, (const float *)job->g->device + t * decays, w->decay + t * decays);
    }
#pragma omp for schedule(dynamic, 1)
    for (gidx i = 0; i < tasks; i++) {
      idx j = (idx)(i % blocks) * MIXER_COLUMNS;
      columns_run(w, (idx)(i / blocks / job->count), (idx)(i / blocks % job->count), j,
                  (idx)imin(MIXER_COLUMNS, m->dv - j));
    }
#pragma omp for schedule(static)
    for (gidx i = 0; i < n; i++) taps_write(w, (idx)i);
  }
}

/* The reference, for job->unfused and for processors without FMA. */
static int reference_run(struct mixer *w, const struct mixer_job *job)
{
  const struct gated_delta_call call = {
      .slots = job->slots,
      .first = job->first,
      .count = job->count,
      .start = job->start,
      .x = job->x->device,
      .conv = job->conv ? job->conv->device : NULL,
      .conv_bias = job->conv_bias ? job->conv_bias->device : NULL,
      .g = job->g->device,
      .beta = job->beta->device,
      .s = job->s ? job->s->device : NULL,
      .taps = job->taps ? job->taps->device : NULL,
      .o = job->o->device,
  };
  return gated_delta_run(&w->net, &call);
}

int cpu_mixer_run(struct mixer *w, const struct mixer_job *job)
{
  struct cpu_state *cpu = cpu_of(w->device);
  const struct gated_delta *m = &w->net;
  struct work own = {.m = m,
                     .job = job,
                     .loops = cpu->mixer,
                     .way = w->way,
                     .channels = gated_delta_channels(m),
                     .tokens = job->start[job->slots.sequences],
                     .state = (gidx)job->count * m->dv * m->d};
  if (job->unfused || !own.loops) return reference_run(w, job);
  own.taps = m->width ? own.channels * (m->width - 1) : 0;
  TRY(work_reserve(&own, cpu));
  if (m->width) transpose(job->conv->device, own.channels, m->width, own.weights);
  slots_read(&own);
  work_run(&own, cpu->options.threads);
  return OK;
}
