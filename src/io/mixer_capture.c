/* SPDX-License-Identifier: BSD-3-Clause
 * Shapes, attributes and slots are checked when a capture is opened, and the values of tokens when
 * they are read. */
#include "io/mixer_capture.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/capture_objects.h"
#include "io/inputs.h"

/* Open an array of floats that may be missing. */
static int maybe_open(struct mixer_input *c, const char *object, int rank, const char *shape,
                      struct h5_array *a, int *there)
{
  TRY(h5_exists(&c->h5, object, there));
  return *there ? capture_floats_open(&c->h5, object, rank, shape, a) : OK;
}

/* *is_first <- whether a text attribute is the first of two words; ERR_INPUT if it is neither. */
static int word_read(const struct mixer_input *c, const char *name, const char *first,
                     const char *second, int *is_first)
{
  char text[64];
  TRY(capture_text_read(&c->h5, name, text, sizeof text));
  CHECK(*text, ERR_INPUT, "'%s' does not say its %s: add the attribute, \"%s\" or \"%s\"", c->path,
        name, first, second);
  *is_first = !strcmp(text, first);
  CHECK(*is_first || !strcmp(text, second), ERR_INPUT, "'%s' of '%s' is '%s', not '%s' or '%s'",
        name, c->path, text, first, second);
  return OK;
}

static int count_read(const struct mixer_input *c, const char *name, idx *count)
{
  real value = 0;
  TRY(capture_number_read(&c->h5, name, &value));
  CHECK(value >= 1 && value == floor(value) && value <= INT32_MAX, ERR_INPUT,
        "'%s' of '%s' is %g: set the attribute, which says how the channels of '/x' are cut", name,
        c->path, value);
  *count = (idx)value;
  return OK;
}

/* Find the numbers of heads and columns from /x and the attributes. */
static int channels_find(struct mixer_input *c)
{
  struct gated_delta *m = &c->source.net;
  TRY(count_read(c, "key_heads", &m->heads_k));
  TRY(count_read(c, "key_columns", &m->d));
  gidx rest = c->x.shape[1] - 2 * (gidx)m->heads_k * m->d;
  CHECK(rest > 0 && rest % m->heads == 0 && rest / m->heads <= INT32_MAX, ERR_INPUT,
        "'/x' of '%s' has %lld channels: %lld are left for v after q and k of %d heads of %d, and "
        "'/beta' has %d heads",
        c->path, (long long)c->x.shape[1], (long long)rest, m->heads_k, m->d, m->heads);
  m->dv = (idx)(rest / m->heads);
  return OK;
}

/* Find the numbers of heads and columns from /q, /k and /v. */
static int heads_find(struct mixer_input *c)
{
  struct gated_delta *m = &c->source.net;
  TRY(capture_floats_open(&c->h5, "/q", 3, "(tokens, key heads, Dk)", &c->q));
  TRY(capture_floats_open(&c->h5, "/k", 3, "(tokens, key heads, Dk)", &c->k));
  TRY(capture_floats_open(&c->h5, "/v", 3, "(tokens, heads, Dv)", &c->v));
  for (int i = 0; i < 3; i++)
    CHECK(c->q.shape[i] == c->k.shape[i], ERR_INPUT,
          "'/q' and '/k' of '%s' differ in dimension %d: %lld and %lld", c->path, i,
          (long long)c->q.shape[i], (long long)c->k.shape[i]);
  CHECK(c->v.shape[0] == c->q.shape[0], ERR_INPUT, "'/v' of '%s' has %lld tokens, '/q' %lld",
        c->path, (long long)c->v.shape[0], (long long)c->q.shape[0]);
  CHECK(c->v.shape[1] == m->heads, ERR_INPUT, "'/v' of '%s' has %lld heads, '/beta' %d", c->path,
        (long long)c->v.shape[1], m->heads);
  m->heads_k = (idx)c->q.shape[1];
  m->d = (idx)c->q.shape[2];
  m->dv = (idx)c->v.shape[2];
  return OK;
}

static int decays_check(struct mixer_input *c)
{
  struct gated_delta *m = &c->source.net;
  const struct h5_array *g = &c->g, *beta = &c->beta;
  CHECK(g->rank == 2 || g->rank == 3, ERR_INPUT,
        "'/g' of '%s' has %d dimensions, not (tokens, heads) or (tokens, heads, Dk)", c->path,
        g->rank);
  m->by_column = g->rank == 3;
  for (int i = 0; i < 2; i++)
    CHECK(g->shape[i] == beta->shape[i], ERR_INPUT,
          "'/g' and '/beta' of '%s' differ in dimension %d: %lld and %lld", c->path, i,
          (long long)g->shape[i], (long long)beta->shape[i]);
  CHECK(!m->by_column || g->shape[2] == m->d, ERR_INPUT,
        "'/g' of '%s' has %lld decays a head, and keys have %d columns", c->path,
        (long long)g->shape[2], m->d);
  return OK;
}

/* *values <- a small array of floats, as f32. */
static int floats_take(struct mixer_input *c, struct h5_array *a, float **values)
{
  gidx count = a->shape[0] * (a->rank > 1 ? a->shape[1] : 1);
  TRY(arena_alloc(&c->arena, values, count, sizeof **values));
  return h5_array_read(a, 0, a->shape[0], TYPE_F32, *values);
}

static int conv_read(struct mixer_input *c)
{
  struct gated_delta *m = &c->source.net;
  struct h5_array conv = {0}, bias = {0};
  gidx channels = gated_delta_channels(m);
  float *values;
  int there, has_bias;
  TRY(capture_floats_open(&c->h5, "/conv", 2, "(channels, width)", &conv));
  CHECK(conv.shape[0] == channels && conv.shape[1] >= 2 && conv.shape[1] <= DELTA_TAPS, ERR_INPUT,
        "'/conv' of '%s' is (%lld, %lld), not (%lld, 2 .. %d)", c->path, (long long)conv.shape[0],
        (long long)conv.shape[1], (long long)channels, DELTA_TAPS);
  m->width = (idx)conv.shape[1];
  TRY(floats_take(c, &conv, &values));
  c->source.conv = values;
  h5_array_close(&conv);
  TRY(maybe_open(c, "/conv_bias", 1, "(channels)", &bias, &has_bias));
  there = has_bias && bias.shape[0] == channels;
  CHECK(there || !has_bias, ERR_INPUT, "'/conv_bias' of '%s' has %lld values, not %lld", c->path,
        (long long)bias.shape[0], (long long)channels);
  if (there) TRY(floats_take(c, &bias, &values));
  if (there) c->source.conv_bias = values;
  h5_array_close(&bias);
  return word_read(c, "activation", "silu", "none", &m->silu);
}

static int attributes_read(struct mixer_input *c)
{
  struct gated_delta *m = &c->source.net;
  real scale = 1 / sqrt(m->d), eps = 1e-6;
  int is_grouped = 1;
  if (m->heads != m->heads_k) TRY(word_read(c, "head_map", "grouped", "tiled", &is_grouped));
  TRY(word_read(c, "qk_norm", "l2", "none", &m->l2));
  TRY(capture_number_read(&c->h5, "scale", &scale));
  TRY(capture_number_read(&c->h5, "eps", &eps));
  m->tiled = !is_grouped;
  m->scale = (float)scale;
  m->eps = (float)eps;
  return OK;
}

/* *slots <- the slot of each sequence; -1: the file names none. */
static int slots_read(struct mixer_input *c, const char *object, const idx **slots)
{
  gidx n = c->source.sequences;
  struct h5_array a = {0};
  idx *values;
  int there;
  TRY(h5_exists(&c->h5, object, &there));
  if (there) {
    int status = capture_integers_read(&c->h5, &c->arena, object, 1, TYPE_I32, &a, &values);
    gidx count = a.shape[0];
    h5_array_close(&a);
    TRY(status);
    CHECK(count == n, ERR_INPUT, "'%s' of '%s' has %lld slots, and there are %lld sequences",
          object, c->path, (long long)count, (long long)n);
  } else {
    TRY(arena_alloc(&c->arena, &values, n, sizeof *values));
    for (gidx i = 0; i < n; i++) values[i] = -1;
  }
  *slots = values;
  return OK;
}

/* Check that the slots of sequences are in the pool, and that no slot is written by two
 * sequences. */
static int slots_check(struct mixer_input *c)
{
  struct mixer_source *s = &c->source;
  unsigned char *way;
  idx *owner, gathered;
  for (gidx i = 0; i < s->sequences; i++)
    CHECK(s->slots || (s->in[i] < 0 && s->out[i] < 0), ERR_INPUT,
          "sequence %lld of '%s' has slots, and there is no '/state/s': store the pool (slots, "
          "heads, Dv, Dk)",
          (long long)i, c->path);
  const struct delta_slots all = {(idx)s->sequences, s->slots, s->in, s->out};
  TRY(arena_alloc(&c->arena, &way, s->sequences, sizeof *way));
  TRY(arena_alloc(&c->arena, &owner, s->slots, sizeof *owner));
  return delta_slots_plan(&all, way, owner, &gathered);
}

static int pool_open(struct mixer_input *c)
{
  struct mixer_source *s = &c->source;
  const struct gated_delta *m = &s->net;
  int has_s, has_taps;
  TRY(maybe_open(c, "/state/s", 4, "(slots, heads, Dv, Dk)", &c->s, &has_s));
  TRY(maybe_open(c, "/state/taps", 3, "(slots, channels, width - 1)", &c->taps, &has_taps));
  TRY(slots_read(c, "/slot_in", &s->in));
  TRY(slots_read(c, "/slot_out", &s->out));
  if (has_s) {
    const gidx *shape = c->s.shape;
    CHECK(shape[1] == m->heads && shape[2] == m->dv && shape[3] == m->d && shape[0] <= INT32_MAX,
          ERR_INPUT, "'/state/s' of '%s' is (%lld, %lld, %lld, %lld), not (slots, %d, %d, %d)",
          c->path, (long long)shape[0], (long long)shape[1], (long long)shape[2],
          (long long)shape[3], m->heads, m->dv, m->d);
    s->slots = (idx)shape[0];
  }
  CHECK(has_taps == (has_s && m->width > 0), ERR_INPUT,
        "'%s' has %s'/state/taps', which belong to '/state/s' with '/conv'", c->path,
        has_taps ? "" : "no ");
  if (has_taps) {
    const gidx *shape = c->taps.shape;
    CHECK(shape[0] == s->slots && shape[1] == gated_delta_channels(m) && shape[2] == m->width - 1,
          ERR_INPUT, "'/state/taps' of '%s' is (%lld, %lld, %lld), not (%d, %lld, %d)", c->path,
          (long long)shape[0], (long long)shape[1], (long long)shape[2], s->slots,
          (long long)gated_delta_channels(m), m->width - 1);
  }
  return slots_check(c);
}

/* x <- the channels of some tokens, from /x, or from /q, /k and /v. */
static int channels_read(void *self, gidx first, gidx count, float *x)
{
  struct mixer_input *c = self;
  if (c->x.id) return h5_array_read(&c->x, first, count, TYPE_F32, x);
  const struct gated_delta *m = &c->source.net;
  struct h5_array *parts[] = {&c->q, &c->k, &c->v};
  gidx keys = (gidx)m->heads_k * m->d, width = gated_delta_channels(m);
  gidx widths[] = {keys, keys, (gidx)m->heads * m->dv};
  TRY(array_reserve(&c->piece, &c->piece_floats, count * imax(keys, widths[2]), sizeof *c->piece));
  for (int i = 0; i < 3; i++) {
    TRY(h5_array_read(parts[i], first, count, TYPE_F32, c->piece));
    for (gidx t = 0; t < count; t++)
      memcpy(x + t * width + i * keys, c->piece + t * widths[i], (size_t)widths[i] * sizeof *x);
  }
  return OK;
}

/* Check that all values are in least .. most.  The error names the token of the first bad value,
 * and the index of the value among the `width` values of the token.  *key <- this token. */
static int values_check(const struct mixer_input *c, const char *object, const float *values,
                        gidx first, gidx count, gidx width, float least, float most,
                        const char *why, gidx *key)
{
  for (gidx i = 0; i < count * width; i++) {
    if (values[i] >= least && values[i] <= most) continue;
    *key = first + i / width;
    FAIL(ERR_INPUT, "value %lld of token %lld of '%s' of '%s' is %g: %s", (long long)(i % width),
         (long long)*key, object, c->path, (double)values[i], why);
  }
  return OK;
}

static int tokens_read(void *self, gidx first, gidx count, float *x, float *g, float *beta,
                       gidx *key)
{
  struct mixer_input *c = self;
  const struct gated_delta *m = &c->source.net;
  gidx decays = (gidx)m->heads * gated_delta_decays(m), channels = gated_delta_channels(m);
  *key = first;
  TRY(channels_read(c, first, count, x));
  TRY(h5_array_read(&c->g, first, count, TYPE_F32, g));
  TRY(h5_array_read(&c->beta, first, count, TYPE_F32, beta));
  TRY(values_check(c, c->x.id ? "/x" : "/q, /k or /v", x, first, count, channels, -FLT_MAX, FLT_MAX,
                   "it has to be finite", key));
  TRY(values_check(c, "/g", g, first, count, decays, -FLT_MAX, 0,
                   "the natural logarithm of a decay is finite, and 0 at most", key));
  return values_check(c, "/beta", beta, first, count, m->heads, 0, 2, "it has to be 0 .. 2", key);
}

static int state_read(void *self, idx slot, float *s, float *taps)
{
  struct mixer_input *c = self;
  if (s) TRY(h5_array_read(&c->s, slot, 1, TYPE_F32, s));
  if (taps && c->taps.id) TRY(h5_array_read(&c->taps, slot, 1, TYPE_F32, taps));
  return OK;
}

static int mixer_check(const struct mixer_input *c)
{
  char mixer[64];
  TRY(capture_mixer_read(&c->h5, mixer, sizeof mixer));
  CHECK(!strcmp(mixer, "gated-delta"), ERR_INPUT,
        "'%s' is a capture of the mixer '%s': the attribute mixer = \"gated-delta\" is needed",
        c->path, mixer);
  return OK;
}

static int objects_open(struct mixer_input *c)
{
  struct mixer_source *s = &c->source;
  int has_x, has_q, has_conv;
  TRY(mixer_check(c));
  TRY(capture_floats_open(&c->h5, "/beta", 2, "(tokens, heads)", &c->beta));
  TRY(capture_floats_open(&c->h5, "/g", 0, "(tokens, heads)", &c->g));
  TRY(maybe_open(c, "/x", 2, "(tokens, channels)", &c->x, &has_x));
  TRY(h5_exists(&c->h5, "/q", &has_q));
  TRY(h5_exists(&c->h5, "/conv", &has_conv));
  CHECK(has_x != has_q, ERR_INPUT, "'%s' has %s: one is needed", c->path,
        has_x ? "both '/x' and '/q'" : "neither '/x' nor '/q', '/k' and '/v'");
  CHECK(has_x == has_conv, ERR_INPUT,
        "'%s' has %s: the convolution belongs to channels before it, '/x'", c->path,
        has_x ? "'/x' and no '/conv'" : "'/conv' beside '/q'");
  s->net.heads = (idx)c->beta.shape[1];
  TRY(has_x ? channels_find(c) : heads_find(c));
  TRY(decays_check(c));
  s->n = c->beta.shape[0];
  gidx tokens = has_x ? c->x.shape[0] : c->q.shape[0];
  CHECK(tokens == s->n && s->n >= 1, ERR_INPUT,
        "'/beta' of '%s' has %lld tokens, '%s' %lld: the numbers must be equal, and at least 1",
        c->path, (long long)s->n, has_x ? "/x" : "/q", (long long)tokens);
  if (has_conv) TRY(conv_read(c));
  TRY(attributes_read(c));
  TRY(gated_delta_check(&s->net));
  gidx *start;
  TRY(capture_sequences_read(&c->h5, &c->arena, "/q_start", s->n, &s->sequences, &start));
  CHECK(s->sequences <= INT32_MAX, ERR_INPUT, "'%s' has %lld sequences, more than %d", c->path,
        (long long)s->sequences, INT32_MAX);
  s->start = start;
  return pool_open(c);
}

int mixer_input_open(struct mixer_input *c, const char *name)
{
  *c = (struct mixer_input){0};
  TRY(input_of_folder(name, "capture.h5", c->path));
  TRY(h5_open(&c->h5, c->path));
  TRY(objects_open(c));
  struct mixer_source *s = &c->source;
  s->name = c->path;
  s->self = c;
  s->tokens = tokens_read;
  s->channels = channels_read;
  s->state = state_read;
  return OK;
}

void mixer_input_close(struct mixer_input *c)
{
  struct h5_array *all[] = {&c->x, &c->q, &c->k, &c->v, &c->g, &c->beta, &c->s, &c->taps};
  for (int i = 0; i < LENGTH(all); i++) h5_array_close(all[i]);
  arena_free(&c->arena);
  free(c->piece);
  c->piece = NULL;
  h5_close(&c->h5);
}
