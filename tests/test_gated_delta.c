/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the reference of gated delta nets, (N.60) to (N.64), equals the recurrence in f64 up to
 * rounding, for all shapes.  A call reads all slots as they were before it.  Neither the division
 * of tokens into calls nor the choice of heads of a call changes a bit. */
#include "base/num.h"
#include "base/status.h"
#include "gated_delta_data.h"
#include "tap.h"

/* The largest error, relative to the largest |o| and |S|. */
static const double TOLERANCE = 1e-5;

/* A channel of a row after the convolution, in f64.  t counts from the first token of the
 * sequence. */
static double conv64(const struct delta_data *d, idx sequence, gidx t, gidx channel,
                     const float *taps)
{
  const struct gated_delta *m = &d->m;
  gidx channels = gated_delta_channels(m);
  const float *x = d->x + d->start[sequence] * channels + channel;
  if (!m->width) return x[t * channels];
  double y = d->bias[channel];
  for (idx w = 0; w < m->width; w++) {
    gidx at = t - m->width + 1 + w;
    double value = at >= 0 ? x[at * channels]
                   : taps  ? taps[channel * (m->width - 1) + at + m->width - 1]
                           : 0;
    y += value * d->conv[channel * m->width + w];
  }
  return m->silu ? y / (1 + exp(-y)) : y;
}

static void row64(const struct delta_data *d, idx sequence, gidx t, const float *taps, double *row)
{
  const struct gated_delta *m = &d->m;
  gidx channels = gated_delta_channels(m), q = (gidx)m->heads_k * m->d;
  for (gidx c = 0; c < channels; c++) row[c] = conv64(d, sequence, t, c, taps);
  for (gidx h = 0; m->l2 && h < 2 * m->heads_k; h++) {
    double sum = m->eps;
    for (idx i = 0; i < m->d; i++) sum += row[h * m->d + i] * row[h * m->d + i];
    for (idx i = 0; i < m->d; i++) row[h * m->d + i] /= sqrt(sum);
  }
  for (gidx i = 0; i < q; i++) row[i] *= m->scale;
}

static void step64(const struct gated_delta *m, const double *row, idx head, const float *g,
                   double beta, double *s, double *o)
{
  gidx key = (m->tiled ? head % m->heads_k : head / (m->heads / m->heads_k)) * (gidx)m->d;
  const double *q = row + key, *k = q + (gidx)m->heads_k * m->d;
  const double *v = row + 2 * (gidx)m->heads_k * m->d + (gidx)head * m->dv;
  for (idx j = 0; j < m->dv; j++, s += m->d) {
    double seen = 0, out = 0;
    for (idx i = 0; i < m->d; i++) s[i] *= exp(g[m->by_column ? i : 0]);
    for (idx i = 0; i < m->d; i++) seen += s[i] * k[i];
    for (idx i = 0; i < m->d; i++) s[i] += k[i] * beta * (v[j] - seen);
    for (idx i = 0; i < m->d; i++) out += s[i] * q[i];
    o[j] = out;
  }
}

struct exact {
  double *o, *s; /* [tokens][heads][dv], [sequences][heads][dv][d] */
};

static struct exact exact_make(const struct delta_data *d)
{
  const struct gated_delta *m = &d->m;
  gidx channels = gated_delta_channels(m), state = (gidx)m->heads * m->dv * m->d;
  idx n = d->c.slots.sequences;
  struct exact e = {calloc((size_t)d->n_o + 1, sizeof *e.o),
                    calloc((size_t)(n * state) + 1, sizeof *e.s)};
  double *row = calloc((size_t)channels, sizeof *row);
  for (idx i = 0; i < n; i++) {
    const float *taps = d->in[i] < 0 ? NULL : d->taps + d->in[i] * channels * (m->width - 1);
    for (gidx c = 0; d->in[i] >= 0 && c < state; c++)
      e.s[i * state + c] = d->s[d->in[i] * state + c];
    for (gidx t = d->start[i]; t < d->start[i + 1]; t++) {
      row64(d, i, t - d->start[i], taps, row);
      for (idx h = 0; h < m->heads; h++) {
        gidx at = t * m->heads + h;
        step64(m, row, h, d->g + at * gated_delta_decays(m), d->beta[at],
               e.s + i * state + (gidx)h * m->dv * m->d, e.o + at * m->dv);
      }
    }
  }
  free(row);
  return e;
}

/* The largest difference, relative to the largest exact value. */
static double distance(const float *got, const double *exact, gidx count)
{
  double most = 0, far = 0;
  for (gidx i = 0; i < count; i++) {
    most = fmax(most, fabs(exact[i]));
    far = fmax(far, isfinite(got[i]) ? fabs(got[i] - exact[i]) : INFINITY);
  }
  return most > 0 ? far / most : far;
}

static void near_check(struct gated_delta m, gidx tokens)
{
  gidx lengths[] = {tokens, 3};
  idx slots[] = {0, 2, -1, 1};
  struct delta_data d = delta_make(m, 2, lengths, slots, 3);
  struct exact e = exact_make(&d);
  gidx state = (gidx)m.heads * m.dv * m.d;
  ok(gated_delta_run(&m, &d.c) == OK, "%s", status_message());
  double o = distance(d.o, e.o, d.n_o), s = distance(d.s + 2 * state, e.s, state);
  ok(o <= TOLERANCE && s <= TOLERANCE && distance(d.s + state, e.s + state, state) <= TOLERANCE,
     "%d and %d heads of %d and %d, width %d, %s, %lld tokens: o off by %.2g, S by %.2g", m.heads_k,
     m.heads, m.d, m.dv, m.width, m.by_column ? "by column" : "by head", (long long)tokens, o, s);
  free(e.o);
  free(e.s);
  delta_free(&d);
}

static void shapes_check(void)
{
  static const idx widths[] = {8, 16, 32, 64, 128, 256};
  static const gidx lengths[] = {1, 7, 64, 4096};
  claim_begin("results are near to the recurrence in f64, for all shapes");
  for (int w = 0; w < LENGTH(widths); w++)
    for (int n = 0; n < LENGTH(lengths); n++)
      for (int form = 0; form < 8; form++) {
        idx d = widths[w], conv = form & 4 ? 0 : 2 + (w + n + form) % 7;
        int many = lengths[n] * d > 64 * 128;
        int most = is_full() ? form == 1 ? 128 : 32 : form == 1 ? 16 : 0;
        if (many && d > most) continue; /* the plain loops would be slow */
        struct gated_delta m = {.heads_k = 2,
                                .heads = 4,
                                .d = d,
                                .dv = d,
                                .width = conv,
                                .silu = conv > 3,
                                .tiled = form & 1,
                                .by_column = form & 2,
                                .l2 = 1,
                                .eps = 1e-6f,
                                .scale = 1 / sqrtf((float)d)};
        if (form == 5) m.dv = d / 2 + 1, m.heads_k = 4;
        near_check(m, lengths[n]);
      }
  claim_end();
}

static const struct gated_delta small = {.heads_k = 1,
                                         .heads = 2,
                                         .d = 5,
                                         .dv = 3,
                                         .width = 4,
                                         .silu = 1,
                                         .l2 = 1,
                                         .eps = 1e-6f,
                                         .scale = 0.5f};

enum { MANY = 5 };

/* A call gives what a separate call for each of its sequences gives, if each begins with the pool
 * as it was before the call. */
static void slots_try(const char *name, idx n, const idx *slots)
{
  static const gidx lengths[MANY] = {3, 1, 9, 0, 2};
  struct delta_data all = delta_make(small, n, lengths, slots, 8), before;
  gidx state = (gidx)small.heads * small.dv * small.d;
  gidx taps = gated_delta_channels(&small) * (small.width - 1), used = 0;
  before = delta_make(small, n, lengths, slots, 8);
  for (gidx i = 0; i < state; i++) all.s[7 * state + i] = before.s[7 * state + i] = NAN;
  ok(gated_delta_run(&small, &all.c) == OK, "%s: %s", name, status_message());
  for (idx i = 0; i < n; i++) {
    struct delta_data own = delta_make(small, n, lengths, slots, 8);
    idx one[] = {own.in[i]}, out[] = {own.out[i]};
    gidx start[] = {0, lengths[i]}, at = own.start[i];
    own.c.slots = (struct delta_slots){1, 8, one, out};
    own.c.start = start;
    own.c.x += at * gated_delta_channels(&small);
    own.c.g += at * small.heads;
    own.c.beta += at * small.heads;
    ok(gated_delta_run(&small, &own.c) == OK, "%s", status_message());
    size_t rows = (size_t)(lengths[i] * small.heads * small.dv) * sizeof *own.o;
    ok(!memcmp(own.o, all.o + at * small.heads * small.dv, rows), "%s: rows of %d", name, i);
    if (out[0] >= 0)
      ok(!memcmp(own.s + out[0] * state, all.s + out[0] * state, (size_t)state * 4) &&
             !memcmp(own.taps + out[0] * taps, all.taps + out[0] * taps, (size_t)taps * 4),
         "%s: slot %d", name, out[0]);
    if (out[0] >= 0) used |= 1 << out[0];
    delta_free(&own);
  }
  for (idx i = 0; i < 8; i++)
    if (!(used >> i & 1))
      ok(!memcmp(before.s + i * state, all.s + i * state, (size_t)state * 4) &&
             !memcmp(before.taps + i * taps, all.taps + i * taps, (size_t)taps * 4),
         "%s: slot %d is as it was", name, i);
  delta_free(&before);
  delta_free(&all);
}

static void slots_check(void)
{
  claim_begin("states are read as they were before the call; slots that are not written stay");
  slots_try("in place", 5, (const idx[]){0, 0, 1, 1, 2, 2, 3, 3, 4, 4});
  slots_try("all moved", 3, (const idx[]){0, 4, 1, 5, 2, 6});
  slots_try("mixed", 5, (const idx[]){0, 0, 1, 3, -1, 1, 2, -1, -1, -1});
  slots_try("two swapped", 2, (const idx[]){0, 1, 1, 0});
  slots_try("a cycle", 3, (const idx[]){0, 1, 1, 2, 2, 0});
  slots_try("a chain", 2, (const idx[]){1, 2, 2, 3});
  slots_try("a chain backwards", 2, (const idx[]){2, 3, 1, 2});
  slots_try("one source twice", 3, (const idx[]){3, 3, 3, 5, 3, 6});
  claim_end();
}

static void plan_try(idx n, const idx *slots, const char *ways)
{
  idx in[MANY], out[MANY], owner[8], gathered, expected = 0;
  unsigned char way[MANY];
  for (idx i = 0; i < n; i++) in[i] = slots[2 * i], out[i] = slots[2 * i + 1];
  struct delta_slots s = {n, 8, in, out};
  ok(delta_slots_plan(&s, way, owner, &gathered) == OK, "%s", status_message());
  for (idx i = 0; i < n; i++) {
    ok(way[i] == (ways[i] == 'g' ? DELTA_GATHERED : DELTA_DIRECT), "%s: sequence %d", ways, i);
    expected += ways[i] == 'g';
  }
  ok(gathered == expected, "%s: %d gathered", ways, gathered);
}

static void refused(const idx *slots, const char *text)
{
  idx in[] = {slots[0], slots[2]}, out[] = {slots[1], slots[3]}, owner[8], gathered;
  unsigned char way[2];
  struct delta_slots s = {2, 8, in, out};
  ok(delta_slots_plan(&s, way, owner, &gathered) == ERR_INPUT && strstr(status_message(), text),
     "'%s': %s", text, status_message());
  status_clear();
}

static void plan_check(void)
{
  claim_begin("a state is gathered only if another sequence writes its slot");
  plan_try(2, (const idx[]){0, 0, 1, 5}, "dd");
  plan_try(2, (const idx[]){0, 1, 1, 0}, "gg");
  plan_try(2, (const idx[]){1, 2, 2, 3}, "dg");
  plan_try(3, (const idx[]){3, 3, 3, 5, -1, 6}, "dgd");
  refused((const idx[]){0, 4, 1, 4}, "sequences 0 and 1 both write slot 4");
  refused((const idx[]){0, 4, 8, 5}, "sequence 1 reads slot 8");
  refused((const idx[]){0, -2, 1, 5}, "writes slot -2");
  claim_end();
}

/* Any division of tokens into calls: slots carry states and taps from call to call. */
static void cuts_check(struct gated_delta m)
{
  static const gidx cuts[] = {1, 2, 7, 33};
  gidx length = 64;
  struct delta_data whole = delta_make(m, 1, &length, (const idx[]){0, 0}, 1);
  ok(gated_delta_run(&m, &whole.c) == OK, "%s", status_message());
  for (int k = 0; k < LENGTH(cuts); k++) {
    struct delta_data part = delta_make(m, 1, &length, (const idx[]){0, 0}, 1);
    gidx width = m.heads * (gidx)m.dv, wide_g = m.heads * (gidx)gated_delta_decays(&m);
    for (gidx at = 0; at < length; at += cuts[k]) {
      gidx start[] = {0, imin(cuts[k], length - at)};
      struct gated_delta_call c = part.c;
      c.start = start;
      c.x += at * gated_delta_channels(&m);
      c.g += at * wide_g;
      c.beta += at * m.heads;
      c.o += at * width;
      ok(gated_delta_run(&m, &c) == OK, "%s", status_message());
    }
    ok(!memcmp(part.o, whole.o, (size_t)part.n_o * 4) &&
           !memcmp(part.s, whole.s, (size_t)part.n_s * 4) &&
           !memcmp(part.taps, whole.taps, (size_t)part.n_taps * 4),
       "width %d, calls of %lld tokens", m.width, (long long)cuts[k]);
    delta_free(&part);
  }
  delta_free(&whole);
}

/* A call with only the heads first and first + 1 gives their bits in a call with all heads. */
static void heads_check(struct gated_delta m, idx first)
{
  gidx length = 9, state = (gidx)m.dv * m.d, wide = gated_delta_decays(&m);
  struct delta_data all = delta_make(m, 1, &length, (const idx[]){0, 1}, 2);
  struct delta_data two = delta_make(m, 1, &length, (const idx[]){0, 1}, 2);
  two.c.first = first, two.c.count = 2;
  for (gidx t = 0; t < length; t++)
    for (idx h = 0; h < 2; h++) {
      gidx from = t * m.heads + first + h, to = t * 2 + h;
      memmove(two.g + to * wide, all.g + from * wide, (size_t)wide * sizeof *two.g);
      two.beta[to] = all.beta[from];
    }
  memcpy(two.s, all.s + first * state, (size_t)(2 * state) * sizeof *two.s);
  ok(gated_delta_run(&m, &all.c) == OK && gated_delta_run(&m, &two.c) == OK, "%s",
     status_message());
  for (gidx t = 0; t < length; t++)
    ok(!memcmp(two.o + t * 2 * m.dv, all.o + (t * m.heads + first) * m.dv,
               (size_t)(2 * m.dv) * sizeof *two.o),
       "token %lld of heads from %d", (long long)t, first);
  ok(!memcmp(two.s + 2 * state, all.s + (m.heads + first) * state, (size_t)(2 * state) * 4),
     "the state of heads from %d", first);
  delta_free(&all);
  delta_free(&two);
}

static void parts_check(void)
{
  struct gated_delta m = small;
  claim_begin("no cut of the tokens or of the heads changes a bit");
  for (m.width = 2; m.width <= DELTA_TAPS; m.width++) m.silu = m.width % 2, cuts_check(m);
  m.width = 0, m.by_column = 1;
  cuts_check(m);
  m.heads_k = 2, m.heads = 6, m.width = 3;
  for (m.tiled = 0; m.tiled < 2; m.tiled++)
    for (idx first = 0; first < 5; first++) heads_check(m, first);
  claim_end();
}

/* Inner products that are known by hand.  Of 33 columns lane 0 has the first and the last. */
static void lanes_check(void)
{
  float x[34], y[34];
  claim_begin("sums over lanes are added in pairs");
  for (int i = 0; i < 34; i++) x[i] = 0, y[i] = 1;
  x[0] = 0x1p24f, x[32] = 1, x[1] = -0x1p24f, x[2] = 1;
  ok(gated_delta_lanes(x, y, 33) == 1, "the last column is rounded away in lane 0");
  x[32] = 0, x[16] = 1;
  ok(gated_delta_lanes(x, y, 33) == 2, "lanes 0 and 1 meet before lane 16 comes");
  claim_end();
}

int main(void)
{
  lanes_check();
  shapes_check();
  plan_check();
  slots_check();
  parts_check();
  return done_testing();
}
