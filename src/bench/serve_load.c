/* SPDX-License-Identifier: BSD-3-Clause
 * Requests are due at times that do not depend on replies, and latency is counted from these times.
 * So a pause of the server lengthens the latencies of all requests that are due during it. */
#include "bench/serve_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "net/net_clients.h"

enum { SEED = 1, STATUS_MS = 50, MOST_REQUESTS = 1 << 22 };

/* Status requests have numbers from here on; other requests have lower numbers. */
static const uint64_t STATUS_NUMBER = UINT64_C(1) << 40;

struct client_run {
  struct serve_load *load;
  double *due; /* [MOST_REQUESTS] when each request is due, by its number */
  gidx sent, status_sent;
  double *status_begun;   /* when each status request was sent, by its number - STATUS_NUMBER */
  unsigned char *message; /* a header and a row */
  size_t bytes;
  struct arena arena;
};

static int is_over(struct serve_load *l)
{
  return __atomic_load_n(&l->is_over, __ATOMIC_ACQUIRE);
}

static int message_init(struct client_run *r)
{
  const struct serve_load *l = r->load;
  struct header h = {.kind = KIND_ENCODE, .rows = 1, .columns = (uint32_t)l->p, .type = ROW_F32};
  r->bytes = HEADER_BYTES + (size_t)l->p * sizeof(float);
  r->message = message_make(&h, NULL, r->bytes - HEADER_BYTES);
  CHECK(r->message, ERR_MEMORY, "cannot allocate a message");
  return OK;
}

static int request_send(struct client_run *r, double due)
{
  const struct serve_load *l = r->load;
  int is_lost, which = (int)random_below(SEED, 11, (uint64_t)r->sent, (uint64_t)l->streams);
  gidx row = (gidx)random_below(SEED, 12, (uint64_t)r->sent, (uint64_t)l->n_rows);
  uint64_t number = (uint64_t)r->sent;
  memcpy(r->message + offsetof(struct header, number), &number, sizeof number);
  memcpy(r->message + HEADER_BYTES, l->rows + row * l->p, (size_t)l->p * sizeof(float));
  r->due[r->sent++] = due;
  return net_clients_send(r->load->clients, which, r->message, r->bytes, &is_lost);
}

static int status_send(struct client_run *r, double now)
{
  int is_lost;
  struct header h = {.kind = KIND_STATUS, .number = STATUS_NUMBER + (uint64_t)r->status_sent};
  unsigned char *m = message_make(&h, NULL, 0);
  CHECK(m, ERR_MEMORY, "cannot allocate a message");
  r->status_begun[r->status_sent++] = now;
  int status = net_clients_send(r->load->clients, r->load->streams, m, HEADER_BYTES, &is_lost);
  free(m);
  return status;
}

/* Count a reply, if its request was due at `from` or later.  A status request is due when it is
 * sent. */
static void reply_count(struct client_run *r, const unsigned char *data, double from)
{
  struct serve_load *l = r->load;
  struct header h;
  double now = log_seconds();
  memcpy(&h, data, sizeof h);
  if (h.number >= STATUS_NUMBER) {
    double begun = r->status_begun[h.number - STATUS_NUMBER];
    if (begun >= from) l->status[l->statuses++] = 1e3 * (now - begun);
    return;
  }
  double due = r->due[h.number];
  if (due < from) return;
  if (h.kind == KIND_ERROR)
    l->refused++;
  else
    l->latency[l->answered++] = 1e3 * (now - due);
}

static int replies_take(struct client_run *r, int wait, double from)
{
  const unsigned char *data;
  size_t bytes;
  int is_there;
  TRY(net_clients_wait(r->load->clients, wait));
  for (int i = 0; i <= r->load->streams; i++) do {
      TRY(net_clients_receive(r->load->clients, i, &data, &bytes, &is_there));
      if (is_there && bytes >= HEADER_BYTES) reply_count(r, data, from);
    } while (is_there);
  return OK;
}

/* *rows, *steps <- the rows of the backlog and the steps that the server has done so far. */
static void counts_take(struct serve_load *l, gidx *rows, gidx *steps)
{
  *rows = *steps = 0;
  struct front *front = __atomic_load_n(&l->front, __ATOMIC_ACQUIRE);
  if (!front) return;
  pthread_mutex_lock(&front->lock);
  *rows = front->counts.file_rows;
  *steps = front->counts.steps;
  pthread_mutex_unlock(&front->lock);
}

/* Draw the seconds from one request to the next, of all clients together. */
static double gap_draw(const struct client_run *r)
{
  double u = ((double)(random_bits(SEED, 13, (uint64_t)r->sent) >> 11) + 0.5) / 0x1p53;
  return -log(u) / (r->load->rate * r->load->streams);
}

/* Send requests and receive replies until `until`.  Requests that are due at `from` or later are
 * measured; status requests begin at `from`. */
static int requests_run(struct client_run *r, double from, double until)
{
  const struct serve_load *l = r->load;
  double due = log_seconds(), status_due = from;
  for (double now = due; now < until; now = log_seconds()) {
    for (; l->streams && due <= now && r->sent < MOST_REQUESTS; due += gap_draw(r))
      TRY(request_send(r, due));
    if (now >= status_due) {
      TRY(status_send(r, now));
      status_due = now + STATUS_MS / 1e3;
    }
    double next = l->streams ? fmin(due, status_due) : status_due;
    TRY(replies_take(r, next - now > 2e-3 ? (int)(1e3 * (next - now)) : 0, from));
  }
  return OK;
}

/* Count the measured requests, and receive their remaining replies, for 10 seconds at most. */
static int rest_take(struct client_run *r, double from)
{
  double end = log_seconds() + 10;
  gidx all = 0;
  for (gidx i = 0; i < r->sent; i++) all += r->due[i] >= from;
  while (r->load->answered + r->load->refused < all && log_seconds() < end)
    TRY(replies_take(r, 10, from));
  r->load->requests = all;
  return OK;
}

static int run_open(struct client_run *r)
{
  struct serve_load *l = r->load;
  gidx statuses = (gidx)(1e3 * (l->warm + l->seconds) / STATUS_MS) + 16;
  TRY(arena_alloc(&r->arena, &r->due, MOST_REQUESTS, sizeof *r->due));
  TRY(arena_alloc(&r->arena, &r->status_begun, statuses, sizeof(double)));
  l->latency = malloc(MOST_REQUESTS * sizeof *l->latency);
  l->status = malloc((size_t)statuses * sizeof *l->status);
  CHECK(l->latency && l->status, ERR_MEMORY, "cannot allocate the measurements");
  TRY(message_init(r));
  return net_clients_open(&l->clients, l->path, l->streams + 1);
}

static int run(struct client_run *r)
{
  struct serve_load *l = r->load;
  gidx before, after, steps_before, steps_after;
  TRY(run_open(r));
  double begun = log_seconds(), from = begun + l->warm, until = from + l->seconds;
  TRY(requests_run(r, from, from));
  counts_take(l, &before, &steps_before);
  double measured = log_seconds();
  TRY(requests_run(r, measured, until));
  counts_take(l, &after, &steps_after);
  l->backlog = (double)(after - before) / (log_seconds() - measured);
  l->steps = steps_after - steps_before;
  return rest_take(r, measured);
}

static int thread_run(void *load)
{
  struct client_run r = {.load = load};
  int status = run(&r);
  net_clients_close(r.load->clients);
  arena_free(&r.arena);
  free(r.message);
  __atomic_store_n(&r.load->is_over, 1, __ATOMIC_RELEASE);
  return status;
}

int serve_load_begin(struct serve_load *l)
{
  TRY(worker_open(&l->worker));
  return worker_start(&l->worker, thread_run, l);
}

int serve_load_end(struct serve_load *l)
{
  int status = worker_wait(&l->worker);
  worker_close(&l->worker);
  return status;
}

void serve_load_free(struct serve_load *l)
{
  free(l->latency);
  free(l->status);
}

static int piece_make(const struct serve_load *l, const struct front *front, struct piece *piece,
                      int i)
{
  TRY(piece_alloc(piece, front, l->piece));
  piece->n = (idx)l->piece;
  for (gidx v = 0; v < l->piece; v++)
    memcpy(piece->x + v * l->p, l->rows + (v + i * 7) % l->n_rows * l->p,
           (size_t)l->p * sizeof(float));
  return OK;
}

static void pieces_run(struct serve_load *l, struct front *front, struct piece *pieces)
{
  for (int i = 0; i < FILE_PIECES; i++) feed_put(front, &pieces[i]);
  for (int i = 0; !feed_is_closing(front) && !is_over(l); i = (i + 1) % FILE_PIECES) {
    feed_wait(front, &pieces[i]);
    feed_put(front, &pieces[i]);
  }
  for (int i = 0; i < FILE_PIECES; i++) feed_wait(front, &pieces[i]);
}

int serve_load_feed(void *load, struct front *front)
{
  struct serve_load *l = load;
  struct piece pieces[FILE_PIECES] = {0};
  int status = OK;
  __atomic_store_n(&l->front, front, __ATOMIC_RELEASE);
  if (!l->has_backlog) return OK;
  for (int i = 0; i < FILE_PIECES && !status; i++) status = piece_make(l, front, &pieces[i], i);
  if (!status) pieces_run(l, front, pieces);
  for (int i = 0; i < FILE_PIECES; i++) piece_free(&pieces[i], front);
  return status;
}
