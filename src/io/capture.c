/* SPDX-License-Identifier: BSD-3-Clause
 * Opening a capture reads and checks everything except the values.  A pool of blocks is never
 * copied as a whole: blocks are read when they are needed. */
#include "io/capture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/capture_objects.h"
#include "io/capture_size.h"
#include "io/inputs.h"
#include "io/schema.h"

enum { MAX_POOL_BLOCK = 1 << 16 };

/* Find the sequences of the queries.  If the file does not give them, all queries are one
 * sequence. */
static int queries_find(struct capture_input *c)
{
  struct capture_source *s = &c->source;
  s->n = c->q.shape[0];
  CHECK(s->n >= 1, ERR_INPUT, "'/q' of '%s' has no queries: store at least one", c->path);
  return capture_sequences_read(&c->h5, &c->arena, "/q_start", s->n, &s->sequences, &c->start);
}

/* Find where the positions of each sequence begin.  Without /kv_start, a single sequence has all
 * positions; of several sequences, the positions begin where the queries begin. */
static int positions_find(struct capture_input *c)
{
  gidx n = c->k.shape[0], sequences = c->source.sequences;
  int there;
  TRY(h5_exists(&c->h5, "/kv_start", &there));
  if (there)
    TRY(capture_starts_read(&c->h5, &c->arena, "/kv_start", n, &sequences, &c->kv_start));
  else if (sequences == 1) {
    TRY(arena_alloc(&c->arena, &c->kv_start, 2, sizeof *c->kv_start));
    c->kv_start[1] = n;
  } else
    c->kv_start = c->start;
  CHECK(there || sequences == 1 || n == c->source.n, ERR_INPUT,
        "'/q' of '%s' has %lld queries, '/k' %lld positions: add '/kv_start', where the positions "
        "of each sequence begin",
        c->path, (long long)c->source.n, (long long)n);
  CHECK(sequences == c->source.sequences, ERR_INPUT,
        "'/kv_start' of '%s' has %lld sequences, '/q_start' %lld", c->path, (long long)sequences,
        (long long)c->source.sequences);
  TRY(arena_alloc(&c->arena, &c->length, sequences, sizeof *c->length));
  for (gidx i = 0; i < sequences; i++) c->length[i] = c->kv_start[i + 1] - c->kv_start[i];
  return OK;
}

/* The first position of a sequence that any of its queries can see. */
static gidx seen_from(const struct capture_input *c, gidx sequence)
{
  gidx queries = c->start[sequence + 1] - c->start[sequence], from, end;
  attention_seen(&c->source.attention, c->length[sequence] - queries, c->length[sequence], &from,
                 &end);
  return from;
}

/* Check that the blocks of a sequence are in the pool and cover its length.  No block that its
 * queries see may occur twice.  A block of earlier positions may occur again, because a server may
 * have freed and reused it.  owner[blocks]: 1 + the last entry of the whole table that named the
 * block for positions that queries see. */
static int table_check(const struct capture_input *c, gidx sequence, gidx blocks, gidx *owner)
{
  gidx length = c->length[sequence], needed = ceil_div(imax(length, 0), c->block), seen;
  long long s = sequence;
  CHECK(length >= 0 && needed <= c->width, ERR_INPUT,
        "'/kv/length' of '%s' is %lld for sequence %lld, and '/kv/table' has %lld blocks of %d for "
        "it",
        c->path, (long long)length, s, (long long)c->width, c->block);
  seen = seen_from(c, sequence) / c->block;
  for (gidx i = 0; i < c->width; i++) {
    gidx at = sequence * c->width + i;
    idx entry = c->table[at];
    idx used = (idx)imin(c->block, length - i * c->block);
    if (i < needed) {
      CHECK(entry >= 0 && entry < blocks, ERR_INPUT,
            "entry (%lld, %lld) of '/kv/table' of '%s' is %d, and the pool has blocks 0 .. %lld", s,
            (long long)i, c->path, entry, (long long)blocks - 1);
      CHECK(i < seen || owner[entry] <= sequence * c->width, ERR_INPUT,
            "entries (%lld, %lld) and (%lld, %lld) of '/kv/table' of '%s' are both %d: a sequence "
            "has a block once",
            s, (long long)(owner[entry] - 1 - sequence * c->width), s, (long long)i, c->path,
            entry);
      if (i >= seen) owner[entry] = at + 1;
      if (used > c->used[entry]) c->used[entry] = used;
    } else
      CHECK(entry == -1, ERR_INPUT,
            "entry (%lld, %lld) of '/kv/table' of '%s' is %d, but the sequence ends before it: "
            "write -1 there",
            s, (long long)i, c->path, entry);
  }
  return OK;
}

static int table_read(struct capture_input *c)
{
  struct h5_array a = {0}, lengths = {0};
  int status = capture_integers_read(&c->h5, &c->arena, "/kv/table", 2, TYPE_I32, &a, &c->table);
  if (!status)
    status =
        capture_integers_read(&c->h5, &c->arena, "/kv/length", 1, TYPE_I64, &lengths, &c->length);
  h5_array_close(&a);
  h5_array_close(&lengths);
  TRY(status);
  c->width = a.shape[1];
  gidx n = c->source.sequences;
  CHECK(a.shape[0] == n && lengths.shape[0] == n, ERR_INPUT,
        "'/kv/table' of '%s' has %lld sequences, '/kv/length' %lld, and queries %lld (/q_start)",
        c->path, (long long)a.shape[0], (long long)lengths.shape[0], (long long)n);
  gidx *owner;
  CHECK(c->k.shape[0] >= 1, ERR_INPUT,
        "the pool of '%s' has no blocks: store those that the table names", c->path);
  TRY(arena_alloc(&c->arena, &owner, c->k.shape[0], sizeof *owner));
  TRY(arena_alloc(&c->arena, &c->used, c->k.shape[0], sizeof *c->used));
  TRY(arena_alloc(&c->arena, &c->kv_start, n + 1, sizeof *c->kv_start));
  for (gidx i = 0; i < n; i++) {
    TRY(table_check(c, i, c->k.shape[0], owner));
    c->kv_start[i + 1] = c->kv_start[i] + c->length[i];
  }
  return OK;
}

static int pool_open(struct capture_input *c)
{
  static const char *const shapes[] = {"(blocks, size, heads, D)", "(blocks, size, heads, Dv)"};
  TRY(capture_floats_open(&c->h5, "/kv/k", 4, shapes[0], &c->k));
  TRY(capture_floats_open(&c->h5, "/kv/v", 4, shapes[1], &c->v));
  CHECK(c->k.shape[1] <= MAX_POOL_BLOCK, ERR_INPUT,
        "the blocks of '/kv/k' of '%s' have %lld positions, more than %d", c->path,
        (long long)c->k.shape[1], MAX_POOL_BLOCK);
  c->block = (idx)c->k.shape[1];
  gidx k = c->block * c->k.shape[2] * c->k.shape[3], v = c->block * c->v.shape[2] * c->v.shape[3];
  TRY(arena_alloc(&c->arena, &c->block_k, k, sizeof *c->block_k));
  return arena_alloc(&c->arena, &c->block_v, v, sizeof *c->block_v);
}

static int plain_open(struct capture_input *c)
{
  TRY(capture_floats_open(&c->h5, "/k", 3, "(positions, heads, D)", &c->k));
  return capture_floats_open(&c->h5, "/v", 3, "(positions, heads, Dv)", &c->v);
}

static int shapes_check(struct capture_input *c)
{
  struct attention *a = &c->source.attention;
  const struct h5_array *q = &c->q, *k = &c->k, *v = &c->v;
  int at = k->rank - 2; /* the dimension of heads */
  for (int i = 0; i <= at; i++)
    CHECK(k->shape[i] == v->shape[i], ERR_INPUT,
          "'%s' and '%s' of '%s' differ in dimension %d: %lld and %lld", k->object, v->object,
          c->path, i, (long long)k->shape[i], (long long)v->shape[i]);
  CHECK(q->shape[2] == k->shape[at + 1], ERR_INPUT, "'/q' of '%s' has %lld columns, '%s' %lld",
        c->path, (long long)q->shape[2], k->object, (long long)k->shape[at + 1]);
  CHECK(q->shape[1] % k->shape[at] == 0, ERR_INPUT,
        "'/q' of '%s' has %lld heads, '%s' %lld, which does not divide it", c->path,
        (long long)q->shape[1], k->object, (long long)k->shape[at]);
  CHECK(imax(q->shape[2], v->shape[at + 1]) <= MAX_HEAD_COLUMNS, ERR_INPUT,
        "heads of '%s' have %lld and %lld columns, more than %d: is the order (N, heads, D)?",
        c->path, (long long)q->shape[2], (long long)v->shape[at + 1], MAX_HEAD_COLUMNS);
  CHECK(q->shape[1] * v->shape[at + 1] <= INT32_MAX, ERR_INPUT, "rows of '%s' have %lld columns",
        c->path, (long long)(q->shape[1] * v->shape[at + 1]));
  a->heads = (idx)q->shape[1];
  a->kv_heads = (idx)k->shape[at];
  a->d = (idx)q->shape[2];
  a->dv = (idx)v->shape[at + 1];
  return OK;
}

/* Scores are multiplied by these factors in float32 (N.27), where each must be positive and
 * finite. */
static int factors_check(const struct capture_input *c)
{
  const struct attention *a = &c->source.attention;
  CHECK(a->scale > 0, ERR_INPUT, "'scale' of '%s' is %g, not positive", c->path, a->scale);
  CHECK(a->softcap >= 0, ERR_INPUT, "'softcap' of '%s' is %g; without one it is 0", c->path,
        a->softcap);
  struct attention_factors f = attention_factors(a);
  int is_good = f.exponent > 0 && isfinite(f.exponent) &&
                (a->softcap == 0 || (f.inner > 0 && isfinite(f.inner)));
  CHECK(is_good, ERR_INPUT,
        "'scale' of '%s' is %g and 'softcap' %g: factors of scores are %g and %g in float32",
        c->path, a->scale, a->softcap, f.inner, f.exponent);
  return OK;
}

/* Names that other programs give to the attributes of a capture.  A file with such an attribute is
 * refused, because ignoring it would change every weight. */
static int names_check(const struct capture_input *c)
{
  static const struct {
    const char *other, *own;
  } names[] = {{"is_causal", "causal"},        {"sliding_window", "window"},
               {"scaling", "scale"},           {"softmax_scale", "scale"},
               {"soft_cap", "softcap"},        {"logit_softcap", "softcap"},
               {"logits_soft_cap", "softcap"}, {"attn_logit_softcapping", "softcap"}};
  for (int i = 0; i < LENGTH(names); i++) {
    int there;
    TRY(h5_attribute_exists(&c->h5, "/", names[i].other, &there));
    CHECK(!there, ERR_INPUT, "'%s' of '%s' is not read: call the attribute '%s'", names[i].other,
          c->path, names[i].own);
  }
  return OK;
}

static int attributes_read(struct capture_input *c)
{
  struct attention *a = &c->source.attention;
  int there;
  real causal = 0, window = 0;
  a->scale = 1 / sqrt(a->d);
  TRY(names_check(c));
  TRY(h5_attribute_exists(&c->h5, "/", "causal", &there));
  CHECK(there, ERR_INPUT,
        "'%s' does not say whether attention is causal: add the attribute, as in "
        "f.attrs[\"causal\"] = 1, or 0",
        c->path);
  TRY(capture_number_read(&c->h5, "causal", &causal));
  TRY(capture_number_read(&c->h5, "window", &window));
  TRY(capture_number_read(&c->h5, "scale", &a->scale));
  TRY(capture_number_read(&c->h5, "softcap", &a->softcap));
  CHECK(causal == 0 || causal == 1, ERR_INPUT, "'causal' of '%s' is %g, not 0 or 1", c->path,
        causal);
  CHECK(window >= 0 && window == floor(window), ERR_INPUT,
        "'window' of '%s' is %g, no number of positions; without a window it is 0", c->path,
        window);
  a->causal = causal == 1;
  a->window = (gidx)fmin(window, 0x1p60);
  return factors_check(c);
}

static int queries_read(void *self, gidx first, idx count, float *q)
{
  struct capture_input *c = self;
  const struct attention *a = &c->source.attention;
  TRY(h5_array_read(&c->q, first, count, TYPE_F32, q));
  capture_size_note(q, CAPTURE_F32, count, a->heads, a->d, c->q_square);
  return OK;
}

/* Note the norms of keys that were read (io/capture_size.h). */
static void keys_note(struct capture_input *c, const void *k, enum capture_type type, gidx count)
{
  const struct attention *a = &c->source.attention;
  capture_size_note(k, type, count, a->kv_heads, a->d, c->k_square);
}

static int plain_read(void *self, gidx sequence, gidx first, idx count, float *k, float *v)
{
  struct capture_input *c = self;
  gidx at = c->kv_start[sequence] + first;
  TRY(h5_array_read(&c->k, at, count, TYPE_F32, k));
  keys_note(c, k, CAPTURE_F32, count);
  return h5_array_read(&c->v, at, count, TYPE_F32, v);
}

static int tokens_read(void *self, gidx sequence, gidx first, idx count, idx *token)
{
  struct capture_input *c = self;
  return h5_array_read(&c->token, c->kv_start[sequence] + first, count, TYPE_I32, token);
}

/* Open the tokens of all positions, one sequence after another, if the file has them. */
static int tokens_open(struct capture_input *c)
{
  gidx positions = c->kv_start[c->source.sequences];
  int there;
  TRY(h5_exists(&c->h5, "/token", &there));
  if (!there) return OK;
  TRY(h5_array_open(&c->h5, "/token", &c->token));
  h5_array_stream(&c->token);
  CHECK(c->token.rank == 1 && c->token.type == TYPE_I32 && c->token.shape[0] == positions,
        ERR_INPUT, "'/token' of '%s' is no array of %lld int32, one for each position", c->path,
        (long long)positions);
  c->source.tokens = tokens_read;
  return OK;
}

/* out <- `count` cells of a block, from cell `from` on; a cell is a position of the block.  A whole
 * block is read directly, a part through the buffer `room`. */
static int cells_read(const struct h5_array *a, idx block, idx from, idx count, float *room,
                      float *out)
{
  gidx width = a->shape[2] * a->shape[3];
  if (count == a->shape[1]) return h5_array_read(a, block, 1, TYPE_F32, out);
  TRY(h5_array_read(a, block, 1, TYPE_F32, room));
  memcpy(out, room + from * width, (size_t)(count * width) * sizeof *out);
  return OK;
}

static int pool_read(void *self, gidx sequence, gidx first, idx count, float *k, float *v)
{
  struct capture_input *c = self;
  const idx *table = c->table + sequence * c->width;
  gidx wide_k = c->k.shape[2] * c->k.shape[3], wide_v = c->v.shape[2] * c->v.shape[3];
  for (gidx p = first, end = first + count; p < end;) {
    idx block = table[p / c->block], from = (idx)(p % c->block);
    idx n = (idx)imin(c->block - from, end - p);
    TRY(cells_read(&c->k, block, from, n, c->block_k, k));
    keys_note(c, k, CAPTURE_F32, n);
    TRY(cells_read(&c->v, block, from, n, c->block_v, v));
    k += n * wide_k;
    v += n * wide_v;
    p += n;
  }
  return OK;
}

/* Note the norms of the keys of units first .. first + count - 1.  A unit is a block of the pool,
 * or without a pool a position.  In a pool only the cells that belong to a sequence count, because
 * the others may hold anything. */
static void cells_note(struct capture_input *c, gidx first, gidx count, const void *k)
{
  const struct attention *a = &c->source.attention;
  enum capture_type type = c->source.cells.type;
  gidx bytes = (gidx)c->block * a->kv_heads * a->d * (type == CAPTURE_F32 ? 4 : 2);
  if (!c->used) keys_note(c, k, type, count);
  for (gidx i = 0; c->used && i < count; i++)
    keys_note(c, (const char *)k + i * bytes, type, c->used[first + i]);
}

static int cells_all_read(void *self, gidx first, gidx count, void *k, void *v)
{
  static const enum h5_type types[] = {
      [CAPTURE_F32] = TYPE_F32, [CAPTURE_F16] = TYPE_F16, [CAPTURE_BF16] = TYPE_BF16};
  struct capture_input *c = self;
  enum h5_type as = types[c->source.cells.type];
  TRY(h5_array_read(&c->k, first, count, as, k));
  cells_note(c, first, count, k);
  return h5_array_read(&c->v, first, count, as, v);
}

/* If keys and values have different types, both are read as f32. */
static void cells_describe(struct capture_input *c, int is_pool)
{
  enum h5_type type = c->k.type == c->v.type ? c->k.type : TYPE_F32;
  c->source.cells = (struct capture_cells){.units = c->k.shape[0],
                                           .size = is_pool ? c->block : 1,
                                           .type = type == TYPE_F16    ? CAPTURE_F16
                                                   : type == TYPE_BF16 ? CAPTURE_BF16
                                                                       : CAPTURE_F32,
                                           .first = is_pool ? NULL : c->kv_start,
                                           .table = c->table,
                                           .width = c->width,
                                           .read = cells_all_read};
}

/* Refuse a capture of another mixer: its rows depend on states, which would have to be kept from
 * one piece to the next. */
static int mixer_check(const struct capture_input *c)
{
  char mixer[64];
  TRY(capture_mixer_read(&c->h5, mixer, sizeof mixer));
  CHECK(!strcmp(mixer, "attention"), ERR_INPUT,
        "'%s' is a capture of the mixer '%s', not of attention: make its rows with `sagitta "
        "harvest`, and give those",
        c->path, mixer);
  return OK;
}

static int objects_open(struct capture_input *c)
{
  int is_plain, is_pool;
  TRY(mixer_check(c));
  TRY(h5_exists(&c->h5, "/k", &is_plain));
  TRY(h5_exists(&c->h5, "/kv", &is_pool));
  CHECK(!is_plain || !is_pool, ERR_INPUT,
        "'%s' has both '/k' and a pool '/kv': remove what queries are not to see", c->path);
  TRY(capture_floats_open(&c->h5, "/q", 3, "(queries, heads, D)", &c->q));
  TRY(is_pool ? pool_open(c) : plain_open(c));
  TRY(shapes_check(c));
  TRY(attributes_read(c));
  TRY(queries_find(c));
  TRY(is_pool ? table_read(c) : positions_find(c));
  TRY(tokens_open(c));
  c->source.positions = is_pool ? pool_read : plain_read;
  cells_describe(c, is_pool);
  TRY(arena_alloc(&c->arena, &c->q_square, c->source.attention.heads, sizeof *c->q_square));
  return arena_alloc(&c->arena, &c->k_square, c->source.attention.kv_heads, sizeof *c->k_square);
}

int capture_input_open(struct capture_input *c, const char *name)
{
  *c = (struct capture_input){0};
  TRY(input_of_folder(name, "capture.h5", c->path));
  TRY(h5_open(&c->h5, c->path));
  TRY(objects_open(c));
  struct capture_source *s = &c->source;
  s->start = c->start;
  s->length = c->length;
  s->name = c->path;
  s->self = c;
  s->queries = queries_read;
  return OK;
}

static void objects_close(struct capture_input *c)
{
  h5_array_close(&c->q);
  h5_array_close(&c->k);
  h5_array_close(&c->v);
  h5_array_close(&c->token);
  arena_free(&c->arena);
}

void capture_input_close(struct capture_input *c)
{
  objects_close(c);
  h5_close(&c->h5);
}

int capture_file_check(const struct h5_file *f)
{
  struct capture_input c = {.h5 = *f};
  snprintf(c.path, sizeof c.path, "%s", f->path);
  int status = objects_open(&c);
  objects_close(&c);
  return status;
}
