/* SPDX-License-Identifier: BSD-3-Clause
 * A reply has an array of counts, then of atoms, codes and scores.  The results of a row are
 * written to their places in these arrays. */
#include "serve/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "base/status.h"
#include "model/identity.h"

uint64_t clock_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct request *request_make(const struct net_peer *peer, const struct header *h, float *rows,
                             idx *watched, idx n_watched)
{
  struct request *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->peer = *peer;
  r->header = *h;
  r->rows = rows;
  r->watched = watched;
  r->n_watched = n_watched;
  r->arrived = clock_ns();
  return r;
}

void request_free(struct request *r)
{
  if (!r) return;
  free(r->rows);
  free(r->tokens);
  free(r->watched);
  free(r->reply);
  free(r);
}

gidx request_bytes(const struct request *r, idx p)
{
  gidx columns = r->header.columns + (r->header.kind == KIND_MIXER ? p : 0);
  return r->header.rows * columns * (gidx)sizeof(float);
}

/* The number of entries of each row in the reply. */
static idx width_of(const struct header *h, idx n_watched, const struct message_limits *m)
{
  idx most = n_watched < 0 ? m->s : (idx)imin(n_watched, m->s);
  return h->top ? (idx)imin(h->top, most) : most;
}

gidx reply_bytes(const struct header *h, idx n_watched, const struct message_limits *m)
{
  gidx n = h->rows, entries = n * width_of(h, n_watched, m);
  gidx arrays = 1 + (m->has_codes ? m->d : 0) + (h->flags & FLAG_SCORES ? 1 : 0);
  return HEADER_BYTES + 4 * (n + entries * arrays);
}

/* The arrays of a reply. */
struct arrays {
  idx *count, *atom;
  float *code, *score;
};

static struct arrays arrays_of(const struct request *r, const struct message_limits *m)
{
  gidx n = r->header.rows, entries = n * r->width, codes = m->has_codes ? entries * m->d : 0;
  struct arrays a = {.count = (idx *)(r->reply + HEADER_BYTES)};
  a.atom = a.count + n;
  a.code = (float *)(a.atom + entries);
  a.score = a.code + codes;
  return a;
}

int request_begin(struct request *r, const struct message_limits *m)
{
  idx n_watched = r->watched ? r->n_watched : -1;
  r->width = width_of(&r->header, n_watched, m);
  size_t bytes = (size_t)reply_bytes(&r->header, n_watched, m) - HEADER_BYTES;
  r->reply = message_make(&r->header, NULL, bytes);
  CHECK(r->reply, ERR_MEMORY, "cannot allocate a reply of %zu bytes", bytes);
  return OK;
}

static int atom_order(const void *a, const void *b)
{
  return *(const idx *)a - *(const idx *)b;
}

static int is_wanted(const struct request *r, idx atom)
{
  return !r->watched ||
         bsearch(&atom, r->watched, (size_t)r->n_watched, sizeof atom, atom_order) != NULL;
}

static void row_fill(const struct request *r, const struct message_limits *m,
                     const struct support_block *b, gidx from, gidx to)
{
  struct arrays a = arrays_of(r, m);
  idx n = 0;
  for (idx j = 0; j < b->s && n < r->width; j++) {
    gidx in = from * b->s + j, out = to * r->width + n;
    if (!is_wanted(r, b->atoms[in])) continue;
    a.atom[out] = b->atoms[in];
    if (m->has_codes) memcpy(a.code + out * m->d, b->codes + in * m->d, (size_t)m->d * 4);
    if (r->header.flags & FLAG_SCORES) a.score[out] = b->score[in];
    n++;
  }
  a.count[to] = n;
  for (; n < r->width; n++) {
    gidx out = to * r->width + n;
    a.atom[out] = -1;
    if (m->has_codes) memset(a.code + out * m->d, 0, (size_t)m->d * 4);
    if (r->header.flags & FLAG_SCORES) a.score[out] = 0;
  }
}

void request_fill(struct request *r, const struct message_limits *limits,
                  const struct support_block *block, gidx at, gidx n)
{
  gidx from = at * block->s, entries = n * block->s;
  for (gidx i = 0; i < n; i++) row_fill(r, limits, block, at + i, r->done + i);
  r->terms += support_terms(block->atoms + from, n, block->s, r->done);
  if (block->codes)
    r->terms += codes_terms(block->score + from, block->codes + from * block->d, entries, block->d,
                            r->done * block->s);
  r->done += n;
}

unsigned char *request_reply(struct request *r, uint64_t step, size_t *bytes)
{
  struct header h = r->header;
  unsigned char *data = r->reply;
  h.kind = r->error ? KIND_ERROR : h.kind + REPLY;
  h.deadline = clock_ns() - r->arrived;
  h.step = step;
  if (r->error) {
    h.flags = (uint16_t)r->error;
    *bytes = HEADER_BYTES + strlen(r->text);
    return message_make(&h, r->text, strlen(r->text));
  }
  memcpy(&h.bytes, data + offsetof(struct header, bytes), sizeof h.bytes);
  h.magic = MESSAGE_MAGIC;
  h.version = MESSAGE_VERSION;
  h.columns = (uint32_t)r->width;
  memcpy(data, &h, sizeof h);
  *bytes = HEADER_BYTES + (size_t)h.bytes;
  r->reply = NULL;
  return data;
}

void queue_add(struct request_queue *q, struct request *r)
{
  r->next = NULL;
  if (q->last)
    q->last->next = r;
  else
    q->first = r;
  q->last = r;
  q->count++;
  q->rows += r->header.rows;
}

struct request *queue_take(struct request_queue *q, struct request *before)
{
  struct request *r = before ? before->next : q->first;
  if (!r) return NULL;
  if (before)
    before->next = r->next;
  else
    q->first = r->next;
  if (q->last == r) q->last = before;
  q->count--;
  q->rows -= r->header.rows;
  r->next = NULL;
  return r;
}

void request_refuse(struct request *r, enum error_code error, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(r->text, sizeof r->text, format, args);
  va_end(args);
  r->error = error;
}
