/* SPDX-License-Identifier: BSD-3-Clause
 * Choose the rows of the next step among the requests and file rows that no step has taken yet. */
#include "serve/choose.h"

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"

/* Refuse a request that is cancelled.  If no step in work has its rows, refuse it also if its
 * deadline passed before a step took rows of it, or if the closing server no longer computes it.
 * Returns 1 if the request is refused, now or earlier. */
static int is_given_up(const struct serve *s, struct request *r, uint64_t now)
{
  if (r->error) return 1; /* refused earlier, for example while steps had its rows */
  if (r->is_cancelled)
    request_refuse(r, ERROR_CANCELLED, "cancelled");
  else if (r->steps)
    return 0; /* steps still hold its rows: decide later */
  else if (r->header.deadline && !r->taken && now - r->arrived > r->header.deadline)
    request_refuse(r, ERROR_LATE, "its deadline passed before it was admitted");
  else if (s->is_closing && (now > s->closes || (r->header.class == CLASS_BULK && !r->taken)))
    request_refuse(r, ERROR_CLOSING, "the server is about to end");
  return r->error != 0;
}

/* A request of a stream is held until steps have taken all earlier tokens of the stream.  Then it
 * moves to its queue.  It is refused if it is cancelled, or if an earlier request of the stream was
 * given up. */
static void streams_release(struct serve *s)
{
  struct front *f = &s->front;
  for (struct request *before = NULL, *r = f->held.first, *next; r; r = next) {
    const struct stream *stream = r->stream;
    next = r->next;
    if (r->is_cancelled)
      request_refuse(r, ERROR_CANCELLED, "cancelled");
    else if (stream_is_lost(r))
      request_refuse(r, ERROR_BAD, "an earlier request of its stream was given up");
    else if (r->position != stream->taken) {
      before = r;
      continue;
    }
    if (r->error) stream_break(r);
    queue_take(&f->held, before);
    queue_add(r->error ? &s->finished : r->header.class == CLASS_LIVE ? &f->live : &f->bulk, r);
  }
}

/* Remove requests that are given up.  If steps still have rows of such a request, it stays in the
 * queue until the last of these steps ends. */
static void queue_prune(struct serve *s, struct request_queue *q)
{
  uint64_t now = clock_ns();
  for (struct request *before = NULL, *r = q->first, *next; r; r = next) {
    next = r->next;
    int gone = is_given_up(s, r, now);
    if (gone) recorder_gone(&s->recorder, s->number, r);
    if (gone && !r->steps)
      queue_add(&s->finished, queue_take(q, before));
    else
      before = r;
  }
}

static void part_add(struct serve *s, struct step *step, const struct step_part *from, gidx n)
{
  struct step_part *part = &step->parts[step->n_parts++];
  struct request *r = from->request;
  struct piece *p = from->piece;
  *part = (struct step_part){r, p, step->rows, n, r ? r->taken : p->taken};
  const struct recorded_part recorded = {p ? p->line : 0, part->first + (p ? p->first : 0), n};
  recorder_part(&s->recorder, &step->recorded, s->number, r, &recorded);
  step->rows += n;
  if (r && r->stream) r->stream->taken += n;
  if (r)
    r->taken += n, r->steps++;
  else
    p->taken += (idx)n;
}

/* Add n rows of the file.  They may be in several pieces. */
static void file_add(struct serve *s, struct step *step, gidx n)
{
  for (struct piece *p = s->front.pieces; n > 0; p = p->next) {
    gidx own = imin(n, p->n - p->taken);
    if (own) part_add(s, step, &(struct step_part){.piece = p}, own);
    n -= own;
  }
}

static int arrays_reserve(struct serve *s, struct step *step, gidx live, gidx jobs)
{
  gidx parts = live + jobs + FILE_PIECES;
  TRY(array_reserve(&step->parts, &step->part_capacity, parts, sizeof *step->parts));
  TRY(array_reserve(&s->sizes, &s->size_capacity, live, sizeof *s->sizes));
  TRY(array_reserve(&s->admitted, &s->admitted_capacity, jobs, sizeof *s->admitted));
  TRY(array_reserve(&s->jobs, &s->job_capacity, jobs, sizeof *s->jobs));
  return array_reserve(&s->requests, &s->request_capacity, jobs, sizeof(struct request *));
}

static int is_watched(const struct serve *s)
{
  uint64_t seen = s->front.live_seen;
  int lingers = seen && (real)(clock_ns() - seen) < s->task->linger_ms * 1e6;
  return s->front.live.first != NULL || lingers;
}

/* The queues from which admission_plan() plans the step.  A bulk request is left out if it is given
 * up, or if steps have taken all its rows.  A bulk request without rows is in one step, which
 * answers it. */
static struct admission_queues queues_of(struct serve *s, int watched)
{
  gidx n = 0, m = 0;
  for (struct request *r = s->front.live.first; r; r = r->next) s->sizes[n++] = r->header.rows;
  for (struct request *r = s->front.bulk.first; r; r = r->next) {
    gidx left = r->header.rows - r->taken;
    if (r->error || (left == 0 && (r->steps || r->header.rows))) continue;
    s->requests[m] = r;
    s->jobs[m++] = (struct admission_job){left, 0};
  }
  gidx rows = feed_rows(&s->front, s->is_closing);
  if (rows) {
    s->requests[m] = NULL;
    s->jobs[m++] = (struct admission_job){rows, 1};
  }
  return (struct admission_queues){s->number, watched, s->sizes, n, s->jobs, m};
}

static void admit(struct serve *s, struct step *step, const struct admission *plan, gidx jobs)
{
  for (gidx i = 0; i < plan->n_live; i++) {
    struct request *r = queue_take(&s->front.live, NULL);
    queue_add(&step->taken, r);
    part_add(s, step, &(struct step_part){.request = r}, r->header.rows);
  }
  for (gidx j = 0; j < jobs; j++)
    if (s->jobs[j].is_file)
      file_add(s, step, s->admitted[j]);
    else if (s->admitted[j] || !s->jobs[j].left)
      part_add(s, step, &(struct step_part){.request = s->requests[j]}, s->admitted[j]);
}

int step_choose(struct serve *s, struct step *step, int *is_there)
{
  struct front *f = &s->front;
  struct admission plan;
  streams_release(s);
  int watched = is_watched(s);
  *is_there = 0;
  if (s->in_work && (watched || s->is_closing)) return OK;
  *step = (struct step){
      .number = s->number, .parts = step->parts, .part_capacity = step->part_capacity};
  recorder_begin(&s->recorder, &step->recorded, s->number, &f->live, &f->bulk);
  queue_prune(s, &f->live);
  queue_prune(s, &f->bulk);
  TRY(arrays_reserve(s, step, f->live.count, f->bulk.count + 1));
  const struct admission_queues queues = queues_of(s, watched);
  gidx last = queues.n_jobs - 1;
  admission_plan(&s->knobs, &queues, &plan, s->admitted);
  step->recorded.watched = queues.watched;
  step->recorded.plan = plan;
  step->recorded.file_rows = last >= 0 && s->jobs[last].is_file ? s->jobs[last].left : 0;
  admit(s, step, &plan, queues.n_jobs);
  *is_there = step->n_parts > 0;
  s->is_behind = f->held.first != NULL;
  return OK;
}
