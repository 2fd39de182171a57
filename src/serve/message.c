/* SPDX-License-Identifier: BSD-3-Clause
 * A header has fixed fields, which are copied, then compared with their limits. */
#include "serve/message.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/memory.h"
#include "base/status.h"
#include "encode/lane.h"

_Static_assert(sizeof(struct header) == HEADER_BYTES, "the header has no gaps");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are sent as they are stored");

static gidx type_bytes(uint8_t type)
{
  return type == ROW_F32 ? 4 : type == ROW_F16 || type == ROW_BF16 ? 2 : 0;
}

static int sizes_check(const struct header *h, gidx most, gidx unit)
{
  CHECK(h->rows <= (uint64_t)most, ERR_INPUT,
        "%u rows are more than the %lld that a %s request may have: send them %s", h->rows,
        (long long)most, h->class == CLASS_BULK ? "bulk" : "live",
        h->class == CLASS_BULK ? "in pieces" : "as a bulk request, or in pieces");
  uint64_t bytes = (uint64_t)h->rows * h->columns * (uint64_t)unit;
  CHECK(h->bytes == bytes, ERR_INPUT, "%u rows of %u columns take %llu bytes, and %llu follow",
        h->rows, h->columns, (unsigned long long)bytes, (unsigned long long)h->bytes);
  return OK;
}

static int form_check(const struct header *h)
{
  CHECK(h->class <= CLASS_BULK, ERR_INPUT, "the class is %u: 0 is live, 1 bulk", h->class);
  CHECK(h->flags <= (FLAG_SCORES | FLAG_WATCHED), ERR_INPUT,
        "the flags are %u: 1 asks for scores, 2 for watched atoms alone", h->flags);
  return OK;
}

gidx token_numbers(const struct gated_delta *m)
{
  return gated_delta_channels(m) + (gidx)m->heads * (gated_delta_decays(m) + 1);
}

static int mixer_check(const struct header *h, const struct message_limits *m)
{
  CHECK(m->mixer, ERR_INPUT, "tokens of a mixer are sent, and the server has no --mixer");
  CHECK(h->columns == token_numbers(m->mixer), ERR_INPUT,
        "tokens have %u numbers, those of the mixer have %lld", h->columns,
        (long long)token_numbers(m->mixer));
  CHECK(h->type == ROW_F32, ERR_INPUT, "the type of tokens is %u: 1 is f32", h->type);
  TRY(form_check(h));
  return sizes_check(h, h->class == CLASS_BULK ? m->bulk_rows : m->live_rows, sizeof(float));
}

static int encode_check(const struct header *h, const struct message_limits *m)
{
  CHECK(h->columns == (uint32_t)m->p, ERR_INPUT, "rows have %u columns, the dictionary has %d",
        h->columns, m->p);
  CHECK(type_bytes(h->type), ERR_INPUT, "the type of rows is %u: 1 is f32, 2 f16, 3 bf16", h->type);
  TRY(form_check(h));
  return sizes_check(h, h->class == CLASS_BULK ? m->bulk_rows : m->live_rows, type_bytes(h->type));
}

static int watch_check(const struct header *h)
{
  CHECK(h->rows <= MAX_WATCHED, ERR_INPUT, "%u atoms are watched, at most %d can be", h->rows,
        MAX_WATCHED);
  CHECK(h->bytes == 4 * (uint64_t)h->rows, ERR_INPUT, "%u atoms take %llu bytes, and %llu follow",
        h->rows, 4 * (unsigned long long)h->rows, (unsigned long long)h->bytes);
  return OK;
}

int message_parse(const unsigned char *data, size_t bytes, const struct message_limits *limits,
                  struct header *h)
{
  *h = (struct header){0};
  CHECK(bytes >= HEADER_BYTES, ERR_INPUT, "a message of %zu bytes: the header alone has %d", bytes,
        HEADER_BYTES);
  memcpy(h, data, sizeof *h);
  CHECK(h->magic == MESSAGE_MAGIC, ERR_INPUT,
        "the first bytes are not SGLV: it is no client of "
        "this protocol");
  CHECK(h->version == MESSAGE_VERSION, ERR_INPUT, "version %u of the protocol, the server has %d",
        h->version, MESSAGE_VERSION);
  CHECK(h->bytes == bytes - HEADER_BYTES, ERR_INPUT,
        "the header says that %llu bytes follow, and %zu do", (unsigned long long)h->bytes,
        bytes - HEADER_BYTES);
  if (h->kind == KIND_ENCODE) return encode_check(h, limits);
  if (h->kind == KIND_WATCH) return watch_check(h);
  if (h->kind == KIND_MIXER) return mixer_check(h, limits);
  CHECK(h->kind >= KIND_HELLO && h->kind < KIND_WATCH, ERR_INPUT,
        "kind %u: 1 is hello, 2 encode, 3 status, 4 cancel, 5 watch, 6 mixer", h->kind);
  return OK;
}

int row_check(const float *x, gidx row, idx p)
{
  real sum = 0;
  for (idx c = 0; c < p; c++) {
    CHECK(isfinite(x[c]), ERR_INPUT, "row %lld, column %d is not finite", (long long)row, c);
    sum += (real)x[c] * x[c];
  }
  CHECK(sqrt(sum) <= LANE_NORM, ERR_INPUT,
        "row %lld has the norm %.3g, above %.0g: its scores could overflow", (long long)row,
        sqrt(sum), LANE_NORM);
  return OK;
}

/* x <- values of 16 bits, widened.  They are copied first, because a message may be unaligned. */
static int halves_widen(const struct header *h, const unsigned char *data, float *x)
{
  gidx count = (gidx)h->rows * h->columns;
  struct arena arena = {0};
  uint16_t *bits;
  TRY(arena_alloc(&arena, &bits, count, sizeof *bits));
  memcpy(bits, data, (size_t)count * sizeof *bits);
  (h->type == ROW_F16 ? f16_to_f32 : bf16_to_f32)(bits, count, x);
  arena_free(&arena);
  return OK;
}

int message_rows(const struct header *h, const unsigned char *data, float *x)
{
  if (h->type == ROW_F32)
    memcpy(x, data, (size_t)h->bytes);
  else
    TRY(halves_widen(h, data, x));
  for (gidx i = 0; i < h->rows; i++) TRY(row_check(x + i * h->columns, i, (idx)h->columns));
  return OK;
}

/* Check that the values of an array of tokens are finite and within bounds. */
static int values_check(const char *name, const float *x, gidx tokens, gidx width, float least,
                        float most)
{
  for (gidx i = 0; i < tokens * width; i++)
    CHECK(isfinite(x[i]) && x[i] >= least && x[i] <= most, ERR_INPUT,
          "%s of token %lld is %g: it is finite, and %g to %g", name, (long long)(i / width), x[i],
          least, most);
  return OK;
}

int message_tokens(const struct header *h, const unsigned char *data, const struct gated_delta *m,
                   float *tokens)
{
  gidx n = h->rows, channels = gated_delta_channels(m), decays = m->heads * gated_delta_decays(m);
  const float *g = tokens + n * channels, *beta = g + n * decays;
  memcpy(tokens, data, (size_t)h->bytes);
  TRY(values_check("a channel", tokens, n, channels, -FLT_MAX, FLT_MAX));
  TRY(values_check("the logarithm of a decay", g, n, decays, -FLT_MAX, 0));
  return values_check("beta", beta, n, m->heads, 0, 2);
}

int message_atoms(const struct header *h, const unsigned char *data, idx k, idx *atoms)
{
  memcpy(atoms, data, (size_t)h->bytes);
  for (uint32_t i = 0; i < h->rows; i++) {
    CHECK(atoms[i] >= 0 && atoms[i] < k, ERR_INPUT, "atom %d is watched, there are 0 to %d",
          atoms[i], k - 1);
    CHECK(i == 0 || atoms[i] > atoms[i - 1], ERR_INPUT,
          "watched atoms are ascending, and %d comes behind %d", atoms[i], atoms[i - 1]);
  }
  return OK;
}

unsigned char *message_make(const struct header *h, const void *content, size_t bytes)
{
  unsigned char *data = malloc(HEADER_BYTES + bytes);
  struct header full = *h;
  full.magic = MESSAGE_MAGIC;
  full.version = MESSAGE_VERSION;
  full.bytes = bytes;
  if (!data) return NULL;
  memcpy(data, &full, sizeof full);
  if (content) memcpy(data + HEADER_BYTES, content, bytes);
  return data;
}
