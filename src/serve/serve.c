/* SPDX-License-Identifier: BSD-3-Clause
 * Open, measure how long steps take, serve, and end. */
#include "serve/serve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "serve/report.h"
#include "serve/step.h"

enum { TRIES = 5, WAIT = 50 }; /* steps that are timed; most ms between checks of stops when idle */

static int time_order(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* *ms <- the median time of TRIES steps with the rows of a piece. */
static int steps_time(struct serve *s, struct piece *piece, real *ms)
{
  uint64_t times[TRIES];
  for (int i = -1; i < TRIES; i++) /* the first time is not used: threads start in it */
    TRY(step_time(s, piece, &times[i < 0 ? 0 : i]));
  qsort(times, TRIES, sizeof *times, time_order);
  *ms = (real)times[TRIES / 2] / 1e6;
  return OK;
}

/* *ms <- the median time of steps of n random rows. */
static int steps_measure(struct serve *s, gidx n, real *ms)
{
  idx p = s->task->encode->rows->p;
  struct piece piece = {.n = (idx)n};
  int status = piece_alloc(&piece, &s->front, n);
  for (gidx v = 0; !status && v < n * p; v++) piece.x[v] = (float)random_normal(1, 0, (uint64_t)v);
  if (!status) status = steps_time(s, &piece, ms);
  piece_free(&piece, &s->front);
  return status;
}

/* The largest number of rows of a step that takes at most target_ms (L.7 of doc/live.md), but at
 * least q (knobs.quantum) and at most M (knobs.step_rows).  few, many: the measured ms of steps of
 * q and of M rows.  A step of n rows is taken to need base + row * n ms. */
static gidx target_rows(const struct serve *s, real few, real many)
{
  gidx q = s->knobs.quantum, m = s->knobs.step_rows;
  real row = (many - few) / (real)(m - q), base = few - row * (real)q;
  real target = row > 0 ? floor((s->task->target_ms - base) / row) : (real)m;
  return (gidx)fmax((real)q, fmin(target, (real)m));
}

static int target_find(struct serve *s)
{
  struct admission_knobs *k = &s->knobs;
  gidx q = k->quantum, m = k->step_rows;
  real few, many, aim = s->task->target_ms;
  if (k->target) return OK;
  k->target = m;
  if (k->policy != ADMISSION_DYNAMIC || q == m) return OK;
  k->target = q; /* the least target; it stays if steps of q rows take too long */
  int status = steps_measure(s, q, &few);
  if (!status && few < aim) {
    status = steps_measure(s, m, &many);
    if (!status) k->target = target_rows(s, few, many);
  }
  if (status == ERR_MEMORY) {
    status_clear();
    log_info("steps   cannot be timed, memory is short: the target is %lld rows", (long long)q);
    return OK;
  }
  TRY(status);
  log_info("steps   of %lld rows take %.2f ms: the target of %.3g ms is %lld rows", (long long)q,
           few, aim, (long long)k->target);
  return OK;
}

/* f->hello <- JSON for the reply to hello. */
static int hello_write(struct serve *s)
{
  struct front *f = &s->front;
  const struct message_limits *m = &f->limits;
  struct json j = {.out = fmemopen(f->hello, sizeof f->hello, "w")};
  char hash[20];
  CHECK(j.out, ERR_MEMORY, "cannot allocate what clients are told first");
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)lane_dictionary(s->ranks.lane));
  json_object(&j, NULL);
  json_long(&j, "columns", m->p);
  json_long(&j, "atoms", m->k);
  json_long(&j, "top_s", m->s);
  json_long(&j, "frame", m->d);
  json_long(&j, "live_rows", m->live_rows);
  json_long(&j, "bulk_rows", m->bulk_rows);
  json_long(&j, "credit", f->credit);
  json_long(&j, "queue_bytes", f->queue_bytes);
  json_long(&j, "unread_bytes", f->unread_bytes);
  json_text(&j, "dictionary_hash", hash);
  if (m->mixer) {
    json_long(&j, "mixer_channels", gated_delta_channels(m->mixer));
    json_long(&j, "mixer_decays", m->mixer->heads * gated_delta_decays(m->mixer));
    json_long(&j, "mixer_heads", m->mixer->heads);
  }
  json_end(&j);
  fclose(j.out);
  return OK;
}

/* Limits of messages (net.h).
 *
 * message_bytes: four times the longest valid message, and at least 64 MiB.  So a message that is a
 * little too long is received, and the server can tell the client.
 * requests: how many of the longest valid messages fit into 64 MiB; at least 1, at most 16.
 * replies: for each request of the credit its reply and one refusal of another request.  Replies to
 * cancel and status requests are short; SHORT_REPLIES is for them, because a client may send many
 * of these requests before it reads. */
static struct net_options net_options_of(const struct serve_task *t)
{
  const gidx room = (gidx)64 << 20;
  enum { SHORT_REPLIES = 1024 };
  gidx rows = imax(t->live_rows, t->bulk_rows);
  gidx numbers = t->mixer ? token_numbers(&t->mixer->net) : 0;
  gidx most = HEADER_BYTES + rows * imax(t->encode->rows->p, numbers) * (gidx)sizeof(float);
  return (struct net_options){.address = t->address,
                              .keys = t->keys,
                              .message_bytes = imax(4 * most, room),
                              .requests = (int)imax(1, imin(room / most, 16)),
                              .replies = 2 * t->credit + SHORT_REPLIES};
}

static void front_init(struct serve *s)
{
  const struct serve_task *t = s->task;
  const struct encode_task *e = t->encode;
  s->front.limits = (struct message_limits){.k = e->atoms->k,
                                            .p = e->rows->p,
                                            .s = e->top_s,
                                            .d = e->atoms->d,
                                            .live_rows = t->live_rows,
                                            .bulk_rows = t->bulk_rows,
                                            .has_codes = e->codes,
                                            .mixer = t->mixer ? &t->mixer->net : NULL};
  s->front.lane = s->ranks.lane;
}

static int front_begin(struct serve *s)
{
  const struct serve_task *t = s->task;
  struct front *f = &s->front;
  f->credit = t->credit;
  f->queue_bytes = t->queue_bytes;
  f->unread_bytes = t->unread_bytes;
  f->net_options = net_options_of(t);
  TRY(hello_write(s));
  return front_open(f);
}

/* If the server is asked to stop: accept no more requests.  From now on step_choose() refuses bulk
 * requests of which no step has rows.  Other requests may wait for drain_seconds seconds more. */
static void closing_begin(struct serve *s)
{
  const struct stops *stops = &s->task->stops;
  uint64_t asked = s->is_closing ? 0 : stops_asked(stops);
  if (!asked) return;
  s->is_closing = 1;
  s->closes = clock_ns() + (uint64_t)(s->task->drain_seconds * 1e9);
  pthread_mutex_lock(&s->front.lock);
  s->front.is_closing = 1;
  pthread_mutex_unlock(&s->front.lock);
  stops->stopped(stops->self, asked);
}

static int steps_loop(struct serve *s)
{
  for (int is_idle = 0; !(s->is_closing && is_idle);) {
    closing_begin(s);
    if (!s->is_closing) TRY(s->in_work ? front_check(&s->front) : front_wait(&s->front, WAIT));
    if (!s->in_work) TRY(ranks_wait(&s->ranks));
    int was_closing = s->is_closing;
    TRY(step_run(s, &is_idle));
    is_idle = is_idle && was_closing;
  }
  return OK;
}

static int files_run(void *argument)
{
  struct serve *s = argument;
  const struct serve_files *files = &s->task->files;
  return files->run(files->self, &s->front);
}

static int files_begin(struct serve *s)
{
  if (!s->task->files.run) return OK;
  TRY(worker_open(&s->files));
  return worker_start(&s->files, files_run, s);
}

/* Wait for the thread of files, which publishes the rows that have codes.  Meanwhile the thread of
 * the sockets refuses requests, because the server is closing. */
static int files_end(struct serve *s)
{
  if (!s->task->files.run) return OK;
  int status = worker_wait(&s->files);
  worker_close(&s->files);
  return status;
}

static int mixing_begin(struct serve *s)
{
  const struct serve_task *t = s->task;
  if (!t->mixer) return OK;
  TRY(streams_init(&s->front.streams, t->streams));
  return mixing_open(&s->mixing, t->mixer, &s->front.streams, t->encode->threads,
                     t->encode->variant);
}

static void record_begin(struct serve *s)
{
  const struct serve_record_options *o = &s->task->record;
  s->recorder = (struct recorder){.is_on = o->is_on,
                                  .has_rows = o->has_rows,
                                  .limit = o->limit,
                                  .p = s->front.limits.p,
                                  .begun = s->front.begun,
                                  .ledger = {.knobs = s->knobs}};
}

/* Rank 0: open everything, serve until asked to stop, and close. */
static int serve_all(struct serve *s)
{
  const struct serve_task *task = s->task;
  front_init(s);
  TRY(target_find(s));
  struct serve_facts facts = {.cosine = nan_canonical()};
  if (task->files.run) /* before clients connect, because it takes a while */
    TRY(lane_cosine(s->ranks.lane, &facts.cosine));
  TRY(mixing_begin(s));
  TRY(front_begin(s));
  record_begin(s);
  facts.dictionary = s->dictionary = lane_dictionary(s->ranks.lane);
  facts.address = net_address(s->front.net);
  facts.target = s->knobs.target;
  facts.device = lane_device(s->ranks.lane);
  snprintf(facts.variant, sizeof facts.variant, "%s", lane_variant(s->ranks.lane));
  TRY(task->ready(task->self, &facts));
  TRY(worker_open(&s->copier));
  TRY(files_begin(s));
  TRY(steps_loop(s));
  int status = files_end(s);
  worker_close(&s->copier);
  TRY(front_close(&s->front));
  TRY(status);
  return ranks_end(&s->ranks);
}

int serve_run(const struct serve_task *task, struct comm *c, struct serve **serve)
{
  TRY(struct_alloc(serve, sizeof **serve));
  struct serve *s = *serve;
  s->task = task;
  s->knobs = task->knobs;
  TRY(ranks_open(&s->ranks, task->encode, c));
  if (task->opened) TRY(task->opened(task->self));
  TRY(c->rank ? ranks_follow(&s->ranks) : serve_all(s));
  return ranks_close(&s->ranks);
}

void serve_json(struct serve *serve, struct json *j)
{
  front_json(&serve->front, j);
}

struct serve_record serve_record(const struct serve *s)
{
  const struct recorder *r = &s->recorder;
  return (struct serve_record){.ledger = &r->ledger,
                               .rows = r->rows,
                               .n_rows = r->n_rows,
                               .left_out = r->left_out,
                               .p = r->p,
                               .dictionary = s->dictionary};
}

void serve_free(struct serve *s)
{
  if (s->ranks.c->rank == 0) front_free(&s->front);
  recorder_free(&s->recorder);
  mixing_close(&s->mixing);
  for (int i = 0; i < MAX_STEPS; i++) free(s->steps[i].parts);
  free(s->sizes);
  free(s->admitted);
  free(s->jobs);
  free(s->requests);
  free(s);
}
