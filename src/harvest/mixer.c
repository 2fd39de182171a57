/* SPDX-License-Identifier: BSD-3-Clause
 * A call copies the states of its sequences, from the capture or from the block before, into a pool
 * of its own and updates them there: the capture's slots stay as they were read.  The taps before a
 * token are channels of the tokens before it, which are read again. */
#include "harvest/mixer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/buffer.h"
#include "device/mixer.h"
#include "harvest/mixer_deal.h"

enum { BLOCK_BYTES = 1 << 26, STATE_BYTES = 1 << 28, MIN_BLOCK = 64 };

/* The memory of a call; a rank makes one call at a time. */
struct call {
  struct buffer x, g, beta, conv, conv_bias, s, taps, o;
  gidx *start;   /* [pieces + 1] */
  idx *in, *out; /* [pieces] */
};

struct harvest {
  const struct mixer_task *task;
  const struct mixer_source *source;
  struct comm *c;
  struct arena arena;
  struct mixer_block block;
  struct mixer mixer;
  struct call call;
  float *g, *beta;       /* [block] of all heads, as they are read */
  float *state;          /* [H][dv][d] of one slot; H: the number of heads */
  float *taps, *x;       /* [C][width - 1], [width - 1][C] of one sequence; C: channels */
  float *rows, *states;  /* of this rank, part after part */
  float *all, *all_rows; /* rank 0: rows as gathered, and in token order, [block][H dv] */
  float *all_states;     /* rank 0: the states of all ranks */
  float *carry;          /* [H][dv][d] of the sequence that the block before has cut */
  gidx n_rows, n_states; /* heads in rows and states so far */
  gidx n_carried;        /* heads of the sequence that the block cuts; in states they come last */
  idx *kept;             /* [slots] index of each slot's state in kept_states; -1: it is not kept */
  idx *owner;            /* [slots] the sequence that writes each slot */
  float *kept_states;    /* [kept][H][dv][d], on rank 0 */
  idx *counts;           /* [size] */
  struct mixer_result result;
};

static gidx state_floats(const struct gated_delta *m)
{
  return (gidx)m->dv * m->d;
}

static gidx tap_floats(const struct gated_delta *m)
{
  return m->width ? gated_delta_channels(m) * (m->width - 1) : 0;
}

double mixer_work(const struct mixer_source *s)
{
  return 4.0 * (double)s->n * s->net.heads * (double)state_floats(&s->net);
}

int mixer_device_check(const struct mixer_source *s, struct device *device)
{
  struct mixer w;
  const struct mixer_plan plan = {&s->net, 1, 1, 1};
  int status = mixer_open(&w, device, &plan);
  mixer_close(&w);
  return status;
}

idx mixer_kept(const struct mixer_source *s)
{
  idx kept = 0;
  for (gidx i = 0; i < s->sequences; i++) kept += s->out[i] >= 0;
  return kept;
}

/* Set the largest numbers of tokens and sequences of a block.  They do not depend on ranks. */
static void block_size(struct harvest *h)
{
  const struct mixer_source *s = h->source;
  const struct gated_delta *m = &s->net;
  gidx floats = gated_delta_channels(m) + (gidx)m->heads * (gated_delta_decays(m) + 2 * m->dv + 1);
  gidx tokens = h->task->block ? h->task->block : imax(BLOCK_BYTES / (4 * floats), MIN_BLOCK);
  gidx states = imax(STATE_BYTES / (4 * m->heads * state_floats(m)), 1);
  h->block.most_tokens = imin(imin(tokens, s->n), INT32_MAX / m->heads);
  h->block.most_pieces = (idx)imin(states, s->sequences);
}

static int buffer_floats(struct harvest *h, struct buffer *b, gidx floats)
{
  return buffer_alloc(h->task->device, b, imax(floats, 1) * (gidx)sizeof(float));
}

/* Put the weights of the convolution on the device, where they stay. */
static int weights_put(struct harvest *h, struct buffer *b, const float *values, gidx count)
{
  if (!values) return OK;
  TRY(buffer_floats(h, b, count));
  memcpy(b->host, values, (size_t)count * sizeof *values);
  return device_put(h->task->device, b, 0, count * (gidx)sizeof *values);
}

static int call_alloc(struct harvest *h)
{
  const struct mixer_source *s = h->source;
  const struct gated_delta *m = &s->net;
  struct call *a = &h->call;
  gidx tokens = h->block.most_tokens, channels = gated_delta_channels(m);
  gidx pieces = h->block.most_pieces;
  const struct mixer_plan plan = {m, (idx)pieces, (idx)pieces, tokens};
  TRY(mixer_open(&h->mixer, h->task->device, &plan));
  TRY(buffer_floats(h, &a->x, tokens * channels));
  TRY(buffer_floats(h, &a->g, tokens * m->heads * gated_delta_decays(m)));
  TRY(buffer_floats(h, &a->beta, tokens * m->heads));
  TRY(buffer_floats(h, &a->o, tokens * m->heads * m->dv));
  TRY(buffer_floats(h, &a->s, pieces * m->heads * state_floats(m)));
  TRY(buffer_floats(h, &a->taps, pieces * tap_floats(m)));
  TRY(weights_put(h, &a->conv, s->conv, channels * m->width));
  TRY(weights_put(h, &a->conv_bias, s->conv_bias, channels));
  TRY(arena_alloc(&h->arena, &a->start, pieces + 1, sizeof *a->start));
  TRY(arena_alloc(&h->arena, &a->in, pieces, sizeof *a->in));
  return arena_alloc(&h->arena, &a->out, pieces, sizeof *a->out);
}

/* Set kept[] and owner[] on every rank.  On rank 0 also allocate for the results of all ranks for a
 * block, and for the states that are kept. */
static int whole_alloc(struct harvest *h)
{
  const struct mixer_source *s = h->source;
  const struct gated_delta *m = &s->net;
  int is_root = h->c->rank == 0;
  gidx rows = is_root * h->block.most_tokens * m->heads * m->dv, state = m->heads * state_floats(m);
  h->result.kept = mixer_kept(s);
  TRY(arena_alloc(&h->arena, &h->all, rows, sizeof *h->all));
  TRY(arena_alloc(&h->arena, &h->all_rows, rows, sizeof *h->all_rows));
  TRY(arena_alloc(&h->arena, &h->all_states, is_root * h->block.most_pieces * state,
                  sizeof *h->all_states));
  TRY(arena_alloc(&h->arena, &h->kept_states, is_root * h->result.kept * state,
                  sizeof *h->kept_states));
  TRY(arena_alloc(&h->arena, &h->kept, s->slots, sizeof *h->kept));
  TRY(arena_alloc(&h->arena, &h->owner, s->slots, sizeof *h->owner));
  for (idx i = 0; i < s->slots; i++) h->kept[i] = -1;
  for (idx i = 0, next = 0; i < s->sequences; i++)
    if (s->out[i] >= 0) h->kept[s->out[i]] = next++, h->owner[s->out[i]] = i;
  return OK;
}

static int harvest_alloc(struct harvest *h)
{
  const struct gated_delta *m = &h->source->net;
  gidx state = m->heads * state_floats(m), taps = tap_floats(m);
  block_size(h);
  gidx tokens = h->block.most_tokens, pieces = h->block.most_pieces;
  TRY(call_alloc(h));
  TRY(arena_alloc(&h->arena, &h->block.pieces, pieces, sizeof *h->block.pieces));
  TRY(arena_alloc(&h->arena, &h->g, tokens * m->heads * gated_delta_decays(m), sizeof *h->g));
  TRY(arena_alloc(&h->arena, &h->beta, tokens * m->heads, sizeof *h->beta));
  TRY(arena_alloc(&h->arena, &h->state, state, sizeof *h->state));
  TRY(arena_alloc(&h->arena, &h->carry, state, sizeof *h->carry));
  TRY(arena_alloc(&h->arena, &h->taps, taps, sizeof *h->taps));
  TRY(arena_alloc(&h->arena, &h->x, taps, sizeof *h->x));
  TRY(arena_alloc(&h->arena, &h->rows, tokens * m->heads * m->dv, sizeof *h->rows));
  TRY(arena_alloc(&h->arena, &h->states, pieces * state, sizeof *h->states));
  TRY(arena_alloc(&h->arena, &h->counts, h->c->size, sizeof *h->counts));
  return whole_alloc(h);
}

static void harvest_free(struct harvest *h)
{
  struct call *a = &h->call;
  struct buffer *all[] = {&a->x, &a->g, &a->beta, &a->conv, &a->conv_bias, &a->s, &a->taps, &a->o};
  mixer_close(&h->mixer);
  for (int i = 0; i < LENGTH(all); i++) buffer_free(h->task->device, all[i]);
  arena_free(&h->arena);
}

/* taps[C][width - 1] <- the channels before token `offset` of a sequence: from its tokens, and if
 * these are too few, from its slot; zeros if it has no slot. */
static int taps_find(struct harvest *h, idx sequence, gidx offset, float *taps)
{
  const struct mixer_source *s = h->source;
  gidx channels = gated_delta_channels(&s->net), n = s->net.width - 1, have = imin(offset, n);
  if (!s->net.width) return OK;
  memset(h->taps, 0, (size_t)(channels * n) * sizeof *h->taps);
  if (have < n && s->in[sequence] >= 0) TRY(s->state(s->self, s->in[sequence], NULL, h->taps));
  if (have) TRY(s->channels(s->self, s->start[sequence] + offset - have, have, h->x));
  for (gidx c = 0; c < channels; c++)
    for (gidx j = 0; j < n; j++)
      taps[c * n + j] =
          j < n - have ? h->taps[c * n + have + j] : h->x[(j - n + have) * channels + c];
  return OK;
}

/* Slot i of the call <- the states and the taps with which piece i of the part begins.
 * call.in[i] <- i; -1: the piece begins with zeros. */
static int state_fill(struct harvest *h, const struct mixer_part *part, idx i)
{
  const struct mixer_source *s = h->source;
  const struct mixer_piece *p = h->block.pieces + part->piece + i;
  gidx state = state_floats(&s->net), offset = p->first - s->start[p->sequence];
  const float *from = h->carry;
  idx slot = s->in[p->sequence];
  h->call.in[i] = offset || slot >= 0 ? i : -1;
  if (h->call.in[i] < 0) return OK;
  if (!offset) {
    TRY(s->state(s->self, slot, h->state, NULL));
    from = h->state;
  }
  memcpy((float *)h->call.s.host + i * part->heads * state, from + part->head * state,
         (size_t)(part->heads * state) * sizeof *from);
  return taps_find(h, p->sequence, offset, (float *)h->call.taps.host + i * tap_floats(&s->net));
}

/* Is the state after a piece wanted? */
static int is_kept(const struct mixer_source *s, const struct mixer_piece *p)
{
  return !p->ends || s->out[p->sequence] >= 0;
}

static int slots_fill(struct harvest *h, const struct mixer_part *part)
{
  const struct mixer_piece *pieces = h->block.pieces + part->piece;
  for (idx i = 0; i < part->pieces; i++) {
    h->call.start[i + 1] = h->call.start[i] + pieces[i].count;
    h->call.out[i] = is_kept(h->source, pieces + i) ? i : -1;
    TRY(state_fill(h, part, i));
  }
  return OK;
}

/* out <- the heads of a part, of tokens that have `all` heads with `width` floats each. */
static void heads_cut(const float *from, gidx tokens, gidx all, const struct mixer_part *part,
                      gidx width, float *out)
{
  for (gidx t = 0; t < tokens; t++)
    memcpy(out + t * part->heads * width, from + (t * all + part->head) * width,
           (size_t)(part->heads * width) * sizeof *out);
}

/* Read the tokens of a part, and copy all inputs of its call to the device. */
static int part_load(struct harvest *h, const struct mixer_part *part, gidx *key)
{
  const struct mixer_source *s = h->source;
  const struct gated_delta *m = &s->net;
  struct device *dev = h->task->device;
  struct call *a = &h->call;
  gidx tokens = mixer_part_tokens(&h->block, part), heads = tokens * part->heads;
  gidx first = h->block.pieces[part->piece].first, decays = gated_delta_decays(m);
  if (tokens) TRY(s->tokens(s->self, first, tokens, a->x.host, h->g, h->beta, key));
  heads_cut(h->g, tokens, m->heads, part, decays, a->g.host);
  heads_cut(h->beta, tokens, m->heads, part, 1, a->beta.host);
  TRY(slots_fill(h, part));
  TRY(device_put(dev, &a->x, 0, tokens * gated_delta_channels(m) * 4));
  TRY(device_put(dev, &a->g, 0, heads * decays * 4));
  TRY(device_put(dev, &a->beta, 0, heads * 4));
  TRY(device_put(dev, &a->taps, 0, part->pieces * tap_floats(m) * 4));
  return device_put(dev, &a->s, 0, (gidx)part->pieces * part->heads * state_floats(m) * 4);
}

static int part_compute(struct harvest *h, const struct mixer_part *part)
{
  const struct gated_delta *m = &h->source->net;
  struct device *dev = h->task->device;
  struct call *a = &h->call;
  const struct mixer_job job = {.slots = {part->pieces, part->pieces, a->in, a->out},
                                .start = a->start,
                                .first = part->head,
                                .count = part->heads,
                                .x = &a->x,
                                .g = &a->g,
                                .beta = &a->beta,
                                .conv = m->width ? &a->conv : NULL,
                                .conv_bias = h->source->conv_bias ? &a->conv_bias : NULL,
                                .s = &a->s,
                                .taps = m->width ? &a->taps : NULL,
                                .o = &a->o};
  TRY(mixer_run(&h->mixer, &job));
  TRY(device_get(dev, &a->o, 0, a->start[part->pieces] * part->heads * m->dv * 4));
  return device_get(dev, &a->s, 0, (gidx)part->pieces * part->heads * state_floats(m) * 4);
}

/* ERR_INPUT names the first token of a part that is not finite. */
static int part_check(const struct harvest *h, const struct mixer_part *part, gidx *key)
{
  const struct mixer_source *s = h->source;
  const float *o = h->call.o.host;
  gidx width = (gidx)part->heads * s->net.dv, count = h->call.start[part->pieces] * width;
  for (gidx i = 0; i < count; i++) {
    if (isfinite(o[i])) continue;
    *key = h->block.pieces[part->piece].first + i / width;
    FAIL(ERR_INPUT,
         "row %lld of '%s' is not finite in head %lld: its state or an earlier one is not "
         "finite, or products overflow",
         (long long)*key, s->name, (long long)(part->head + i % width / s->net.dv));
  }
  return OK;
}

/* Append the results of a part to those of the parts before it; the states of a sequence that the
 * block cuts come last. */
static void part_store(struct harvest *h, const struct mixer_part *part)
{
  const struct gated_delta *m = &h->source->net;
  const struct mixer_piece *pieces = h->block.pieces + part->piece;
  gidx heads = h->call.start[part->pieces] * part->heads, state = part->heads * state_floats(m);
  memcpy(h->rows + h->n_rows * m->dv, h->call.o.host, (size_t)(heads * m->dv) * sizeof *h->rows);
  h->n_rows += heads;
  for (idx i = 0; i < part->pieces; i++) {
    if (!is_kept(h->source, pieces + i)) continue;
    memcpy(h->states + (h->n_states + h->n_carried) * state_floats(m),
           (float *)h->call.s.host + i * state, (size_t)state * sizeof *h->states);
    *(pieces[i].ends ? &h->n_states : &h->n_carried) += part->heads;
  }
}

/* Run all parts of this rank; *key <- the token of a failure. */
static int parts_run(struct harvest *h, gidx *key)
{
  struct mixer_part parts[MIXER_PARTS];
  int n = mixer_deal(&h->block, h->source->net.heads, h->c->size, h->c->rank, parts);
  h->n_rows = h->n_states = h->n_carried = 0;
  *key = h->block.first;
  for (int i = 0; i < n; i++) {
    TRY(part_load(h, parts + i, key));
    TRY(part_compute(h, parts + i));
    TRY(part_check(h, parts + i, key));
    part_store(h, parts + i);
  }
  return OK;
}

/* Counts in heads: [0] rows, [1] states kept, [2] states cut by the block's end. */
static void counts_find(const struct harvest *h, int rank, idx counts[3])
{
  struct mixer_part parts[MIXER_PARTS];
  int n = mixer_deal(&h->block, h->source->net.heads, h->c->size, rank, parts);
  counts[0] = counts[1] = counts[2] = 0;
  for (int i = 0; i < n; i++) {
    counts[0] += (idx)mixer_part_tokens(&h->block, parts + i) * parts[i].heads;
    for (idx p = 0; p < parts[i].pieces; p++) {
      const struct mixer_piece *piece = h->block.pieces + parts[i].piece + p;
      if (is_kept(h->source, piece)) counts[piece->ends ? 1 : 2] += parts[i].heads;
    }
  }
}

static const idx *counts_all(struct harvest *h, int which)
{
  for (int r = 0; r < h->c->size; r++) {
    idx counts[3];
    counts_find(h, r, counts);
    h->counts[r] = counts[which];
  }
  return h->counts;
}

/* Rank 0: copy rows and states of all ranks to their positions. */
static void block_scatter(struct harvest *h)
{
  const struct mixer_source *s = h->source;
  const struct gated_delta *m = &s->net;
  const float *rows = h->all, *states = h->all_states;
  gidx state = state_floats(m);
  for (int r = 0; r < h->c->size; r++) {
    struct mixer_part parts[MIXER_PARTS];
    int n = mixer_deal(&h->block, m->heads, h->c->size, r, parts);
    for (const struct mixer_part *p = parts; p < parts + n; p++) {
      gidx at = h->block.pieces[p->piece].first - h->block.first, width = (gidx)p->heads * m->dv;
      for (gidx t = 0; t < mixer_part_tokens(&h->block, p); t++, rows += width)
        memcpy(h->all_rows + ((at + t) * m->heads + p->head) * m->dv, rows,
               (size_t)width * sizeof *rows);
      for (idx i = 0; i < p->pieces; i++) {
        const struct mixer_piece *piece = h->block.pieces + p->piece + i;
        if (!piece->ends || s->out[piece->sequence] < 0) continue;
        gidx kept = h->kept[s->out[piece->sequence]];
        memcpy(h->kept_states + (kept * m->heads + p->head) * state, states,
               (size_t)(p->heads * state) * sizeof *states);
        states += p->heads * state;
      }
    }
  }
}

static int block_write(struct harvest *h)
{
  const struct gated_delta *m = &h->source->net;
  const struct mixer_sink *sink = h->task->sink;
  gidx width = (gidx)m->heads * m->dv;
  if (h->c->rank) return OK;
  block_scatter(h);
  h->result.fingerprint += fingerprint(h->all_rows, h->block.tokens * width, sizeof *h->all_rows,
                                       h->block.first * width);
  return h->block.tokens ? sink->rows(sink->self, h->block.first, h->block.tokens, h->all_rows)
                         : OK;
}

/* Run one block of tokens.  Collective. */
static int block_run(struct harvest *h)
{
  const struct gated_delta *m = &h->source->net;
  size_t row = (size_t)m->dv * sizeof(float), state = (size_t)state_floats(m) * sizeof(float);
  gidx key;
  int status = parts_run(h, &key);
  TRY(comm_agree_at(h->c, status, key));
  TRY(comm_gather(h->c, h->rows, counts_all(h, 0), row, h->all));
  TRY(comm_gather(h->c, h->states, counts_all(h, 1), state, h->all_states));
  const float *carried = h->states + h->n_states * state_floats(m);
  if (!h->block.pieces[h->block.n - 1].ends)
    TRY(comm_allgather(h->c, carried, counts_all(h, 2), state, h->carry));
  return comm_agree(h->c, block_write(h));
}

/* Rank 0: if any sequence keeps its state, write all slots; those that no sequence writes are
 * unchanged. */
static int states_write(struct harvest *h)
{
  const struct mixer_source *s = h->source;
  const struct mixer_sink *sink = h->task->sink;
  gidx state = s->net.heads * state_floats(&s->net);
  float *taps = h->call.taps.host;
  for (idx slot = 0; slot < s->slots && h->result.kept; slot++) {
    idx kept = h->kept[slot], sequence = h->owner[slot];
    if (kept < 0)
      TRY(s->state(s->self, slot, h->state, taps));
    else
      TRY(taps_find(h, sequence, s->start[sequence + 1] - s->start[sequence], taps));
    TRY(sink->state(sink->self, slot, kept < 0 ? h->state : h->kept_states + kept * state, taps));
  }
  return OK;
}

int mixer_rows_run(struct comm *c, const struct mixer_task *task, struct mixer_result *result)
{
  struct harvest *h;
  struct progress progress;
  TRY(comm_agree(c, struct_alloc(&h, sizeof *h)));
  h->task = task, h->c = c, h->source = task->capture;
  TRY(comm_agree(c, harvest_alloc(h)));
  progress_start(&progress, "harvest", "rows", h->source->n);
  while (mixer_block_next(&h->block, h->source)) {
    TRY(block_run(h));
    progress_show(&progress, h->block.first + h->block.tokens);
  }
  TRY(comm_agree(c, c->rank ? OK : states_write(h)));
  *result = h->result;
  harvest_free(h);
  free(h);
  return OK;
}
