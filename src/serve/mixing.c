/* SPDX-License-Identifier: BSD-3-Clause
 * A call of the mixer has at most one piece of each stream, because a step has at most one request
 * of each stream (choose.c).  Tokens that do not fit into a call are in the next one. */
#include "serve/mixing.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"

enum { MOST = 1024 }; /* most tokens of a call */

static gidx state_floats(const struct gated_delta *m)
{
  return (gidx)m->heads * m->dv * m->d;
}

static gidx tap_floats(const struct gated_delta *m)
{
  return m->width ? gated_delta_channels(m) * (m->width - 1) : 0;
}

static int floats_alloc(struct mixing *m, struct buffer *b, gidx floats)
{
  return buffer_alloc(&m->device, b, imax(floats, 1) * (gidx)sizeof(float));
}

static int weights_put(struct mixing *m, struct buffer *b, const float *values, gidx count)
{
  if (!values) return OK;
  TRY(floats_alloc(m, b, count));
  if (m->device.is_dry) return OK;
  memcpy(b->host, values, (size_t)count * sizeof *values);
  return device_put(&m->device, b, 0, count * (gidx)sizeof *values);
}

static int buffers_alloc(struct mixing *m)
{
  const struct gated_delta *net = &m->source->net;
  gidx channels = gated_delta_channels(net), heads = m->most * net->heads;
  idx slots = m->streams->count;
  TRY(floats_alloc(m, &m->x, m->most * channels));
  TRY(floats_alloc(m, &m->g, heads * gated_delta_decays(net)));
  TRY(floats_alloc(m, &m->beta, heads));
  TRY(floats_alloc(m, &m->o, heads * net->dv));
  TRY(floats_alloc(m, &m->s, slots * state_floats(net)));
  TRY(floats_alloc(m, &m->taps, slots * tap_floats(net)));
  TRY(weights_put(m, &m->conv, m->source->conv, channels * net->width));
  TRY(weights_put(m, &m->conv_bias, m->source->conv_bias, channels));
  TRY(arena_alloc(&m->arena, &m->pieces, slots, sizeof *m->pieces));
  TRY(arena_alloc(&m->arena, &m->start, slots + 1, sizeof *m->start));
  TRY(arena_alloc(&m->arena, &m->in, slots, sizeof *m->in));
  return arena_alloc(&m->arena, &m->out, slots, sizeof *m->out);
}

static struct device_options options_of(int threads, const char *variant)
{
  return (struct device_options){
      .p = 1, .d = 1, .threads = threads, .variant = variant, .kind = "cpu"};
}

int mixing_memory(const struct mixer_source *source, idx streams, gidx *bytes)
{
  const struct streams list = {.count = streams};
  struct mixing m = {.source = source, .streams = &list, .most = MOST, .arena.is_dry = 1};
  const struct device_options options = options_of(1, "auto");
  gidx forms;
  device_open_dry(&m.device, &options, &forms);
  TRY(buffers_alloc(&m));
  *bytes = m.device.planned_host + (gidx)m.arena.bytes + streams_bytes(streams);
  return OK;
}

int mixing_open(struct mixing *m, const struct mixer_source *source, const struct streams *streams,
                int threads, const char *variant)
{
  *m = (struct mixing){.source = source, .streams = streams, .most = MOST};
  const struct device_options options = options_of(threads, variant);
  const struct mixer_plan plan = {&source->net, streams->count, streams->count, m->most};
  TRY(device_check_fma());
  TRY(device_check_subnormals(threads));
  TRY(device_open(&m->device, &options));
  TRY(mixer_open(&m->mixer, &m->device, &plan));
  return buffers_alloc(m);
}

void mixing_close(struct mixing *m)
{
  struct buffer *all[] = {&m->x, &m->g, &m->beta, &m->conv, &m->conv_bias, &m->s, &m->taps, &m->o};
  if (!m->source) return;
  mixer_close(&m->mixer);
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&m->device, all[i]);
  device_close(&m->device);
  arena_free(&m->arena);
}

/* Copy the tokens of piece i from an array of its request, [tokens][width], to a buffer. */
static void numbers_copy(const struct mixing *m, idx i, const float *from, gidx width,
                         struct buffer *to)
{
  const struct mixing_piece *p = &m->pieces[i];
  memcpy((float *)to->host + m->start[i] * width, from + p->first * width,
         (size_t)(p->n * width) * sizeof *from);
}

static int tokens_put(struct mixing *m)
{
  const struct gated_delta *net = &m->source->net;
  gidx channels = gated_delta_channels(net), decays = net->heads * gated_delta_decays(net);
  gidx tokens = m->start[m->n];
  for (idx i = 0; i < m->n; i++) {
    const float *x = m->pieces[i].request->tokens;
    gidx all = m->pieces[i].request->header.rows;
    numbers_copy(m, i, x, channels, &m->x);
    numbers_copy(m, i, x + all * channels, decays, &m->g);
    numbers_copy(m, i, x + all * (channels + decays), net->heads, &m->beta);
  }
  TRY(device_put(&m->device, &m->x, 0, tokens * channels * 4));
  TRY(device_put(&m->device, &m->g, 0, tokens * decays * 4));
  return device_put(&m->device, &m->beta, 0, tokens * net->heads * 4);
}

/* Copy the computed rows to their requests, and check them. */
static void rows_take(struct mixing *m)
{
  idx p = m->source->net.heads * m->source->net.dv;
  for (idx i = 0; i < m->n; i++) {
    const struct mixing_piece *piece = &m->pieces[i];
    struct request *r = piece->request;
    for (gidx t = 0; t < piece->n; t++) {
      float *row = r->rows + (piece->first + t) * p;
      memcpy(row, (const float *)m->o.host + (m->start[i] + t) * p, (size_t)p * sizeof *row);
      if (!row_check(row, piece->first + t, p)) continue;
      if (!r->error) request_refuse(r, ERROR_BAD, "of the mixer %s", status_message());
      status_clear();
      memset(row, 0, (size_t)p * sizeof *row);
    }
  }
}

int mixing_end(struct mixing *m)
{
  const struct gated_delta *net = &m->source->net;
  const struct mixer_job job = {.slots = {m->n, m->streams->count, m->in, m->out},
                                .start = m->start,
                                .count = net->heads,
                                .x = &m->x,
                                .g = &m->g,
                                .beta = &m->beta,
                                .conv = net->width ? &m->conv : NULL,
                                .conv_bias = m->source->conv_bias ? &m->conv_bias : NULL,
                                .s = &m->s,
                                .taps = net->width ? &m->taps : NULL,
                                .o = &m->o};
  if (!m->n) return OK;
  TRY(tokens_put(m));
  TRY(mixer_run(&m->mixer, &job));
  TRY(device_get(&m->device, &m->o, 0, m->start[m->n] * net->heads * net->dv * 4));
  rows_take(m);
  m->n = 0;
  return OK;
}

int mixing_add(struct mixing *m, struct request *r, gidx first, gidx n)
{
  idx slot = (idx)(r->stream - m->streams->all);
  while (n > 0) {
    gidx now = imin(n, m->most - m->start[m->n]);
    if (now == 0) {
      TRY(mixing_end(m));
      continue;
    }
    m->pieces[m->n] = (struct mixing_piece){r, first, now};
    m->in[m->n] = r->position + first ? slot : -1;
    m->out[m->n] = slot;
    m->start[m->n + 1] = m->start[m->n] + now;
    m->n++;
    first += now, n -= now;
  }
  return OK;
}
