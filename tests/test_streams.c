/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: streams of tokens are found, get slots, end, lose their slots and are refused as in a
 * plain list of streams.  No list is searched: with 16,384 streams a token takes at most 60 times
 * as long as with 64, because of caches. */
#include "serve/stream.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "tap.h"

enum { MOST = 5, CLIENTS = 3, NUMBERS = 4, TRIES = 200000, ASKED = 40 };
enum { SECOND = 1000000000, SILENCE = 60 };

/* A stream of the plain list. */
struct plain {
  struct stream is;
  int client;
};

struct world {
  struct streams streams;
  struct plain plain[MOST]; /* in any order */
  struct request *asked[ASKED];
  int n_asked;
  uint64_t now, draws;
};

static int draw(struct world *w, int n)
{
  return (int)random_below(9, 0, w->draws++, (uint64_t)n);
}

static struct net_peer peer_of(int client)
{
  return (struct net_peer){.name = {7, (unsigned char)client}, .bytes = 2};
}

static struct plain *plain_find(struct world *w, int client, uint64_t number)
{
  for (int i = 0; i < MOST; i++) {
    struct plain *p = &w->plain[i];
    if (p->is.is_used && p->client == client && p->is.number == number) return p;
  }
  return NULL;
}

static struct plain *plain_room(struct world *w)
{
  struct plain *oldest = NULL;
  for (int i = 0; i < MOST; i++) {
    struct plain *p = &w->plain[i];
    if (!p->is.is_used) return p;
    int is_silent = w->now - p->is.heard > (uint64_t)SILENCE * SECOND;
    if (!p->is.waiting && is_silent && (!oldest || p->is.heard < oldest->is.heard)) oldest = p;
  }
  return oldest;
}

/* Accept a request by the plain list.  Returns its stream; NULL: it is refused, with *code. */
static struct plain *plain_accept(struct world *w, int client, const struct request *r,
                                  enum error_code *code)
{
  uint64_t position = r->header.position;
  struct plain *p = plain_find(w, client, r->header.step);
  *code = ERROR_BAD;
  if (position && (!p || p->is.is_ended || p->is.is_broken || position != (uint64_t)p->is.next))
    return NULL;
  if (!position && p && p->is.waiting) return NULL;
  if (!position && !p && !(p = plain_room(w))) {
    *code = ERROR_BUSY;
    return NULL;
  }
  *code = 0;
  if (!position)
    *p = (struct plain){.client = client, .is = {.number = r->header.step, .is_used = 1}};
  p->is.next += r->header.rows;
  p->is.waiting++;
  p->is.heard = r->arrived;
  return p;
}

static void request_try(struct world *w)
{
  enum error_code code, wanted;
  const char *why;
  int client = draw(w, CLIENTS), number = draw(w, NUMBERS);
  const struct plain *p = plain_find(w, client, (uint64_t)number);
  uint64_t position = draw(w, 3) || !p ? 0 : (uint64_t)p->is.next + !draw(w, 9);
  if (p && draw(w, 2)) position = (uint64_t)p->is.next;
  struct request *r = calloc(1, sizeof *r);
  if (!r || w->n_asked == ASKED) {
    free(r);
    return;
  }
  *r = (struct request){.peer = peer_of(client), .arrived = w->now};
  r->header = (struct header){
      .step = (uint64_t)number, .position = position, .rows = (uint32_t)(1 + draw(w, 3))};
  p = plain_accept(w, client, r, &wanted);
  stream_accept(&w->streams, r, &code, &why);
  ok(code == wanted && !code == !why && !p == !r->stream, "%d of client %d from %d on: %d, not %d",
     number, client, (int)position, code, wanted);
  if (r->stream)
    w->asked[w->n_asked++] = r;
  else
    free(r);
}

static void request_answer(struct world *w)
{
  if (!w->n_asked) return;
  int which = draw(w, w->n_asked);
  struct request *r = w->asked[which];
  struct plain *p = plain_find(w, r->peer.name[1], r->header.step);
  w->asked[which] = w->asked[--w->n_asked];
  if (!draw(w, 6)) r->error = ERROR_LATE;
  if (!ok(p != NULL, "a request waits, and so its stream is there")) return;
  if (r->error) {
    p->is.lost = p->is.is_broken ? imin(p->is.lost, r->position) : r->position;
    p->is.is_broken = 1;
  }
  p->is.waiting--;
  p->is.is_used = !(p->is.is_ended && !p->is.waiting);
  stream_answered(&w->streams, r);
  free(r);
}

static void end_try(struct world *w)
{
  int client = draw(w, CLIENTS), number = draw(w, NUMBERS);
  struct plain *p = plain_find(w, client, (uint64_t)number);
  const struct net_peer peer = peer_of(client);
  stream_end(&w->streams, &peer, (uint64_t)number);
  if (!p) return;
  p->is.is_ended = 1;
  p->is.is_used = p->is.waiting > 0;
}

static int same(const struct stream *a, const struct stream *b)
{
  return a->number == b->number && a->next == b->next && a->waiting == b->waiting &&
         a->heard == b->heard && a->is_broken == b->is_broken && a->is_ended == b->is_ended &&
         (!a->is_broken || a->lost == b->lost);
}

/* Check that the used streams are those of the plain list. */
static void all_check(struct world *w, int try)
{
  int used = 0, wanted = 0;
  for (int i = 0; i < MOST; i++) wanted += w->plain[i].is.is_used;
  for (int i = 0; i < MOST; i++) {
    const struct stream *s = &w->streams.all[i];
    if (!s->is_used) continue;
    used++;
    const struct plain *p = plain_find(w, s->peer.name[1], s->number);
    ok(p && same(&p->is, s), "try %d, slot %d", try, i);
  }
  ok(used == wanted, "try %d: %d are used, not %d", try, used, wanted);
}

static void tries_check(idx slots)
{
  struct world w = {.draws = (uint64_t)slots << 32};
  claim_begin(
      "%d slots: requests, replies and ends in random order leave the streams of a plain list",
      slots);
  ok(streams_init(&w.streams, slots) == OK, "there is memory");
  for (int i = slots; i < MOST; i++) /* these slots do not exist, so they are never free */
    w.plain[i] = (struct plain){.client = -1, .is = {.is_used = 1, .waiting = 1}};
  for (int i = 0; i < TRIES; i++) {
    w.now += draw(&w, 50) ? (uint64_t)SECOND : (uint64_t)(SILENCE + 1) * SECOND;
    int what = draw(&w, 10);
    if (what < 5)
      request_try(&w);
    else if (what < 9)
      request_answer(&w);
    else
      end_try(&w);
    if (i % 7 == 0 && slots == MOST) all_check(&w, i);
  }
  while (w.n_asked) request_answer(&w);
  streams_free(&w.streams);
  claim_end();
}

/* Seconds for tokens of `slots` streams in turn. */
static double seconds_of(idx slots)
{
  enum { TOKENS = 1 << 15 };
  struct streams streams;
  struct request r = {.peer = peer_of(0), .header.rows = 1};
  enum error_code code;
  const char *why;
  uint64_t begun = 0;
  int taken = 0;
  ok(streams_init(&streams, slots) == OK, "there is memory");
  for (idx i = 0; i < slots + TOKENS; i++) {
    if (i == slots) begun = clock_ns();
    r.header.step = (uint64_t)(i % slots);
    r.header.position = (uint64_t)(i / slots);
    r.arrived = (uint64_t)i;
    stream_accept(&streams, &r, &code, &why);
    taken += !code;
    stream_answered(&streams, &r);
  }
  ok(taken == slots + TOKENS, "%d tokens are taken", taken);
  streams_free(&streams);
  return (double)(clock_ns() - begun) * 1e-9;
}

int main(void)
{
  const double most = 60; /* for caches; a walk through a list takes hundreds of times as long */
  for (idx slots = 1; slots <= MOST; slots += 2) tries_check(slots);
  claim_begin("finding a token among 16,384 streams takes less than 60 times as long as among 64");
  double few = seconds_of(64), many = seconds_of(16384);
  ok(many < most * few, "%.4f s, and %.4f s with 64 streams", many, few);
  claim_end();
  return done_testing();
}
