/* SPDX-License-Identifier: BSD-3-Clause
 * Requests are chosen with the lock held.  Rows and results are copied without it.  If there is one
 * rank, the copier thread copies them while the lane computes other steps.  encode/lane.h explains
 * the lane and its slots. */
#include "serve/step.h"

#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "serve/choose.h"

enum { COPY_ROWS = 1024 }; /* rows that a thread copies in one task */

/* Rows of one step that threads copy into the lane, or results that they copy out of it. */
struct copying {
  struct serve *s;
  const struct step *step;
  const struct support_block *results;
};

/* Does a GPU read these rows directly from the piece? */
static int is_direct(const struct serve *s, const struct step_part *part)
{
  return part->piece && ranks_take_rows(&s->ranks);
}

/* A task of spare_run().  Copy up to COPY_ROWS rows of the step, from row i * COPY_ROWS on, to its
 * slot.  Rows that a GPU reads directly are not copied.  Rows of requests are centered here; those
 * of pieces are already centered. */
static void rows_copy(void *self, gidx i)
{
  const struct copying *c = self;
  struct serve *s = c->s;
  gidx p = s->front.limits.p, begin = i * COPY_ROWS, end = imin(begin + COPY_ROWS, c->step->rows);
  for (gidx j = 0; j < c->step->n_parts; j++) {
    const struct step_part *part = &c->step->parts[j];
    gidx from = imax(begin, part->at), n = imin(end, part->at + part->n) - from;
    if (n <= 0 || is_direct(s, part)) continue;
    const float *rows = part->request ? part->request->rows : part->piece->x;
    memcpy(lane_rows(s->ranks.lane, c->step->slot) + from * p,
           rows + (part->first + from - part->at) * p, (size_t)n * (size_t)p * sizeof *rows);
    if (part->request) lane_center(s->ranks.lane, c->step->slot, from, n);
  }
}

/* Copy the rows of the step to the GPU, in order: from the slot, or directly from pieces. */
static int step_put(struct serve *s, const struct step *step)
{
  struct lane *lane = s->ranks.lane;
  gidx p = s->front.limits.p, put = 0;
  for (gidx i = 0; i < step->n_parts; i++) {
    const struct step_part *part = &step->parts[i];
    if (!is_direct(s, part)) continue;
    TRY(lane_put(lane, step->slot, put, part->at - put));
    TRY(lane_put_from(lane, step->slot, part->at, part->n, part->piece->x + part->first * p));
    put = part->at + part->n;
  }
  return lane_put(lane, step->slot, put, step->rows - put);
}

/* Allocate replies, and copy the rows of the step to the device.  A request is refused if its reply
 * cannot be allocated. */
static int step_gather(struct serve *s, struct step *step)
{
  struct copying c = {s, step, NULL};
  for (gidx i = 0; i < step->n_parts; i++) {
    struct request *r = step->parts[i].request;
    if (r && !r->reply && request_begin(r, &s->front.limits)) {
      status_clear();
      request_refuse(r, ERROR_BUSY, "memory is short: try again later");
    }
  }
  spare_run(ceil_div(step->rows, COPY_ROWS), rows_copy, &c);
  if (!step->rows) return OK;
  return ranks_take_rows(&s->ranks) ? step_put(s, step)
                                    : ranks_put(&s->ranks, step->slot, (idx)step->rows);
}

/* A task of spare_run().  Copy results to pieces, for the same rows as in rows_copy(). */
static void results_copy(void *self, gidx i)
{
  const struct copying *c = self;
  const struct row_quality *quality = ranks_quality(&c->s->ranks);
  gidx begin = i * COPY_ROWS, end = imin(begin + COPY_ROWS, c->step->rows);
  for (gidx j = 0; j < c->step->n_parts; j++) {
    const struct step_part *part = &c->step->parts[j];
    gidx from = imax(begin, part->at), n = imin(end, part->at + part->n) - from;
    if (part->request || n <= 0) continue;
    piece_fill(part->piece, &c->s->front.limits, c->results, quality, from,
               part->first + from - part->at, n);
  }
}

/* Copy the results of the step to its requests and pieces.  Requests that were refused get none. */
static void step_fill(struct serve *s, const struct step *step, const struct support_block *block)
{
  struct copying c = {s, step, block};
  int has_piece = 0;
  for (gidx i = 0; i < step->n_parts; i++) {
    const struct step_part *part = &step->parts[i];
    struct request *r = part->request;
    if (!r)
      part->piece->done += (idx)part->n, has_piece = 1;
    else if (!r->error)
      request_fill(r, &s->front.limits, block, part->at, part->n);
  }
  if (has_piece) spare_run(ceil_div(step->rows, COPY_ROWS), results_copy, &c);
}

/* Move bulk requests from their queue to s->finished if they have all results, or are given up.
 * Requests with rows in steps in work stay.  Call with the lock held. */
static void bulk_finish(struct serve *s)
{
  struct request_queue *q = &s->front.bulk;
  for (struct request *before = NULL, *r = q->first, *next; r; r = next) {
    next = r->next;
    if (!r->steps && (r->error || (r->reply && r->done == r->header.rows)))
      queue_add(&s->finished, queue_take(q, before));
    else
      before = r;
  }
}

static void parts_count(struct serve *s, const struct step *step)
{
  struct serve_counts *c = &s->front.counts;
  gidx live = step->taken.rows, files = 0;
  for (gidx i = 0; i < step->n_parts; i++) {
    struct request *r = step->parts[i].request;
    files += r ? 0 : step->parts[i].n;
    if (r) r->steps--;
  }
  c->steps += step->rows > 0;
  c->live_rows += live;
  c->bulk_rows += step->rows - live - files;
  c->file_rows += files;
}

/* Answer the requests of s->finished.  number: the step that finished them, or that gave them up.
 * gone: the first step that is planned without them. */
static void answer(struct serve *s, gidx number, gidx gone)
{
  for (struct request *r = s->finished.first; r; r = r->next)
    recorder_gone(&s->recorder, gone, r); /* no effect if queue_prune() has recorded it */
  if (s->finished.first) front_answer(&s->front, &s->finished, (uint64_t)number);
}

static void pieces_return(struct serve *s)
{
  feed_return(&s->front, s->is_closing, s->is_closing && clock_ns() > s->closes);
}

/* End a step whose results are copied.  Answer its live requests, and the bulk requests that now
 * have all results. */
static void step_end(struct serve *s, struct step *step)
{
  struct front *f = &s->front;
  pthread_mutex_lock(&f->lock);
  parts_count(s, step);
  while (step->taken.first) queue_add(&s->finished, queue_take(&step->taken, NULL));
  bulk_finish(s);
  pieces_return(s);
  pthread_mutex_unlock(&f->lock);
  recorder_end(&s->recorder, &step->recorded, step->number, step->rows);
  answer(s, step->number, step->number + (step->rows > 0));
}

/* A slot of the lane that no step in work uses. */
static int slot_find(const struct serve *s)
{
  int used[LANE_SLOTS] = {0};
  for (int i = s->results.n > 0; i < s->in_work; i++) /* a step that ends has left its slot */
    used[s->steps[(s->oldest + i) % MAX_STEPS].slot] = 1;
  int slot = 0;
  while (slot < LANE_SLOTS - 1 && used[slot]) slot++;
  return slot;
}

/* Compute the rows of requests that sent tokens.  A request with a row that fails row_check() is
 * given up, with all later requests of its stream. */
static int tokens_mix(struct serve *s, const struct step *step)
{
  if (!s->mixing.source) return OK;
  for (gidx i = 0; i < step->n_parts; i++) {
    const struct step_part *part = &step->parts[i];
    if (part->request && part->request->tokens)
      TRY(mixing_add(&s->mixing, part->request, part->first, part->n));
  }
  TRY(mixing_end(&s->mixing));
  pthread_mutex_lock(&s->front.lock);
  for (gidx i = 0; i < step->n_parts; i++) {
    struct request *r = step->parts[i].request;
    if (r && r->error) stream_break(r);
  }
  pthread_mutex_unlock(&s->front.lock);
  return OK;
}

/* *step <- a new step whose rows must still be copied; NULL: there is none.  *is_there as for
 * step_choose().  A step without rows is finished here, and *step is NULL. */
static int step_begin(struct serve *s, struct step **step, int *is_there)
{
  struct step *new = &s->steps[(s->oldest + s->in_work) % MAX_STEPS];
  const struct support_block none = {.s = s->front.limits.s, .d = s->front.limits.d};
  *step = NULL;
  pthread_mutex_lock(&s->front.lock);
  int status = step_choose(s, new, is_there);
  if (s->is_closing) pieces_return(s);
  pthread_mutex_unlock(&s->front.lock);
  TRY(status);
  answer(s, s->number, s->number); /* requests that step_choose() gave up */
  if (!*is_there) return OK;
  TRY(tokens_mix(s, new));
  new->slot = slot_find(s);
  if (new->rows == 0) {
    TRY(step_gather(s, new));
    step_fill(s, new, &none);
    step_end(s, new);
    return OK;
  }
  s->number++;
  s->in_work++;
  *step = new;
  return OK;
}

/* Copy the results of s->filled, and the rows of s->gathered.  The copier thread runs this. */
static int copy_run(void *serve)
{
  struct serve *s = serve;
  if (s->filled) step_fill(s, s->filled, &s->results);
  return s->gathered ? step_gather(s, s->gathered) : OK;
}

/* One pass of the lane, which starts step `begun` unless it is NULL.  Meanwhile the copier runs
 * copy_run().  With several ranks this thread runs it before the pass. */
static int pass_run(struct serve *s, const struct step *begun)
{
  int copies = s->filled || s->gathered;
  if (copies && s->ranks.c->size > 1) { /* only the main thread may call MPI */
    TRY(copy_run(s));
    copies = 0;
  }
  if (copies) TRY(worker_start(&s->copier, copy_run, s));
  int status = ranks_pass(&s->ranks, begun ? begun->slot : 0, begun ? (idx)begun->rows : 0);
  int copied = copies ? worker_wait(&s->copier) : OK;
  return status ? status : copied;
}

/* *ended <- the oldest step if it has all results; NULL if not.  If no other step is in work, the
 * step is finished here, and *ended is NULL. */
static int step_advance(struct serve *s, struct step **ended)
{
  TRY(ranks_advance(&s->ranks, &s->results));
  *ended = s->results.n ? &s->steps[s->oldest] : NULL;
  if (!*ended || s->in_work > 1) return OK;
  step_fill(s, *ended, &s->results);
  s->oldest = (s->oldest + 1) % MAX_STEPS;
  s->in_work = 0;
  step_end(s, *ended);
  *ended = NULL;
  return OK;
}

int step_run(struct serve *s, int *is_idle)
{
  struct step *ended = NULL, *begun = NULL, *new = NULL;
  int had = s->in_work > 0, is_there = 0;
  TRY(step_advance(s, &ended));
  int is_free = ranks_is_free(&s->ranks);
  if (s->is_prepared && is_free) begun = &s->steps[(s->oldest + s->in_work - 1) % MAX_STEPS];
  if (!s->is_prepared || begun) TRY(step_begin(s, &new, &is_there));
  *is_idle = !had && !is_there && !s->is_behind;
  if (!s->in_work) return OK;
  if (new && s->in_work == 1) { /* no other step is in work: begin at once */
    TRY(step_gather(s, new));
    begun = new;
    new = NULL;
  }
  s->filled = ended;
  s->gathered = new;
  TRY(pass_run(s, begun));
  s->is_prepared = new != NULL || (s->is_prepared && !begun);
  if (!ended) return OK;
  s->oldest = (s->oldest + 1) % MAX_STEPS;
  s->in_work--;
  step_end(s, ended);
  return OK;
}

int step_time(struct serve *s, struct piece *piece, uint64_t *ns)
{
  struct step_part part = {.piece = piece, .n = piece->n};
  struct step step = {.rows = piece->n, .parts = &part, .n_parts = 1};
  struct support_block block;
  uint64_t begun = clock_ns();
  piece->done = 0;
  TRY(step_gather(s, &step));
  TRY(ranks_run(&s->ranks, piece->n, &block));
  step_fill(s, &step, &block);
  *ns = clock_ns() - begun;
  return OK;
}
