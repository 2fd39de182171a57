/* SPDX-License-Identifier: BSD-3-Clause
 * Under the lock requests are chosen; without it their rows are copied and computed. */
#include "serve/step.h"

#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"

/* Why a request that waits is given up; 0: it is not. */
static int is_given_up(const struct serve *s, struct request *r, uint64_t now)
{
  if (r->is_cancelled)
    request_refuse(r, ERROR_CANCELLED, "cancelled");
  else if (r->header.deadline && !r->done && now - r->arrived > r->header.deadline)
    request_refuse(r, ERROR_LATE, "its deadline passed before it was admitted");
  else if (s->is_closing && (now > s->closes || (r->header.class == CLASS_BULK && !r->done)))
    request_refuse(r, ERROR_CLOSING, "the server is about to end");
  return r->error != 0;
}

static void queue_prune(struct serve *s, struct request_queue *q)
{
  uint64_t now = clock_ns();
  for (struct request *before = NULL, *r = q->first, *next; r; r = next) {
    next = r->next;
    if (is_given_up(s, r, now)) {
      recorder_gone(&s->recorder, s->number, r);
      queue_add(&s->finished, queue_take(q, before));
    } else {
      before = r;
    }
  }
}

static void part_add(struct serve *s, struct request *r, struct piece *p, gidx n)
{
  s->parts[s->n_parts++] = (struct step_part){r, p, s->rows, n};
  recorder_part(&s->recorder, s->number, r, p ? p->line : 0, r ? r->done : p->first + p->done, n);
  s->rows += n;
}

/* Rows of the file, which may go over to its next piece. */
static void file_add(struct serve *s, gidx n)
{
  for (struct piece *p = s->front.pieces; n > 0; p = p->next) {
    gidx own = imin(n, p->n - p->done);
    if (own) part_add(s, NULL, p, own);
    n -= own;
  }
}

static int arrays_reserve(struct serve *s, gidx live, gidx jobs)
{
  TRY(array_reserve(&s->parts, &s->part_capacity, live + jobs + FILE_PIECES, sizeof *s->parts));
  TRY(array_reserve(&s->sizes, &s->size_capacity, live, sizeof *s->sizes));
  TRY(array_reserve(&s->admitted, &s->admitted_capacity, jobs, sizeof *s->admitted));
  TRY(array_reserve(&s->jobs, &s->job_capacity, jobs, sizeof *s->jobs));
  return array_reserve(&s->requests, &s->request_capacity, jobs, sizeof(struct request *));
}

/* The queues as the plan sees them. */
static struct admission_queues queues_of(struct serve *s)
{
  const struct request_queue *live = &s->front.live, *bulk = &s->front.bulk;
  gidx n = 0, m = 0;
  for (struct request *r = live->first; r; r = r->next) s->sizes[n++] = r->header.rows;
  for (struct request *r = bulk->first; r; r = r->next) {
    s->requests[m] = r;
    s->jobs[m++] = (struct admission_job){r->header.rows - r->done, 0};
  }
  gidx rows = feed_rows(&s->front, s->is_closing);
  if (rows) {
    s->requests[m] = NULL;
    s->jobs[m++] = (struct admission_job){rows, 1};
  }
  uint64_t seen = s->front.live_seen;
  int lingers = seen && (real)(clock_ns() - seen) < s->task->linger_ms * 1e6;
  return (struct admission_queues){s->number, n > 0 || lingers, s->sizes, n, s->jobs, m};
}

/* Choose the rows of the step.  A bulk request stays in its queue until it is done. */
static int step_choose(struct serve *s)
{
  struct front *f = &s->front;
  struct admission plan;
  recorder_begin(&s->recorder, s->number, &f->live, &f->bulk);
  queue_prune(s, &f->live);
  queue_prune(s, &f->bulk);
  TRY(arrays_reserve(s, f->live.count, f->bulk.count + 1));
  const struct admission_queues queues = queues_of(s);
  gidx last = queues.n_jobs - 1,
       files = last >= 0 && s->jobs[last].is_file ? s->jobs[last].left : 0;
  admission_plan(&s->knobs, &queues, &plan, s->admitted);
  recorder_plan(&s->recorder, queues.watched, files, &plan);
  for (gidx i = 0; i < plan.n_live; i++) {
    struct request *r = queue_take(&f->live, NULL);
    queue_add(&s->taken, r);
    part_add(s, r, NULL, r->header.rows);
  }
  for (gidx j = 0; j < queues.n_jobs; j++)
    if (queues.jobs[j].is_file)
      file_add(s, s->admitted[j]);
    else if (s->admitted[j] || !s->jobs[j].left)
      part_add(s, s->requests[j], NULL, s->admitted[j]);
  return OK;
}

/* The rows of a part, of which those of files are less the mean already. */
static void part_gather(struct serve *s, const struct step_part *part)
{
  const struct request *r = part->request;
  gidx p = s->front.limits.p;
  const float *from = r ? r->rows + r->done * p : part->piece->x + part->piece->done * p;
  memcpy(lane_rows(s->lane) + part->at * p, from, (size_t)part->n * (size_t)p * sizeof *from);
  if (r) lane_center(s->lane, part->at, part->n);
}

/* Make room for replies, and copy rows.  Who gets no memory is refused. */
static void rows_gather(struct serve *s)
{
  for (gidx i = 0; i < s->n_parts; i++) {
    struct request *r = s->parts[i].request;
    if (r && !r->reply && request_begin(r, &s->front.limits)) {
      status_clear();
      request_refuse(r, ERROR_BUSY, "memory is short: try again later");
    }
    part_gather(s, &s->parts[i]);
  }
}

static int step_compute(struct serve *s)
{
  struct support_block block = {0};
  rows_gather(s);
  if (s->rows) TRY(lane_run(s->lane, (idx)s->rows, &block));
  const struct message_limits *limits = &s->front.limits;
  for (gidx i = 0; i < s->n_parts; i++) {
    const struct step_part *part = &s->parts[i];
    struct request *r = part->request;
    if (!r)
      piece_fill(part->piece, limits, &block, lane_quality(s->lane), part->at, part->n);
    else if (!r->error)
      request_fill(r, limits, &block, part->at, part->n);
  }
  return OK;
}

/* Live requests are done, and bulk ones that have all rows. */
static void step_end(struct serve *s)
{
  struct front *f = &s->front;
  gidx live = s->taken.rows, files = 0;
  for (gidx i = 0; i < s->n_parts; i++) files += s->parts[i].request ? 0 : s->parts[i].n;
  while (s->taken.first) queue_add(&s->finished, queue_take(&s->taken, NULL));
  pthread_mutex_lock(&f->lock);
  for (struct request *before = NULL, *r = f->bulk.first, *next; r; r = next) {
    next = r->next;
    if (r->error || (r->reply && r->done == r->header.rows))
      queue_add(&s->finished, queue_take(&f->bulk, before));
    else
      before = r;
  }
  if (s->rows) f->counts.steps++;
  f->counts.live_rows += live;
  f->counts.bulk_rows += s->rows - live - files;
  f->counts.file_rows += files;
  feed_return(f, s->is_closing, s->is_closing && clock_ns() > s->closes);
  pthread_mutex_unlock(&f->lock);
}

int step_run(struct serve *s, int *is_idle)
{
  s->n_parts = s->rows = 0;
  pthread_mutex_lock(&s->front.lock);
  int status = step_choose(s);
  pthread_mutex_unlock(&s->front.lock);
  TRY(status);
  *is_idle = s->n_parts == 0 && !s->finished.first;
  if (s->n_parts) TRY(step_compute(s));
  step_end(s);
  recorder_end(&s->recorder, s->number, s->rows);
  gidx next = s->number + (s->rows > 0);
  for (struct request *r = s->finished.first; r; r = r->next)
    recorder_gone(&s->recorder, next, r); /* unless it was before */
  if (s->finished.first) front_answer(&s->front, &s->finished, (uint64_t)s->number);
  s->number = next;
  return OK;
}
