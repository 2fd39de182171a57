/* SPDX-License-Identifier: BSD-3-Clause
 * The capacity of a table is doubled when it is full.  If there is no room for a whole step, no
 * part of the step is recorded. */
#include "serve/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/num.h"
#include "base/status.h"

static gidx bytes_of(const struct recorder *r)
{
  const struct ledger *l = &r->ledger;
  return 8 * (l->steps.capacity * STEP_COLUMNS + l->parts.capacity * PART_COLUMNS +
              l->requests.capacity * REQUEST_COLUMNS) +
         r->row_capacity * r->p * (gidx)sizeof(float);
}

/* Grow *(T **)array to at least count items.  Returns 0 if there is no memory, or if all tables
 * together would exceed the limit. */
static int grow(const struct recorder *r, void *array, gidx *capacity, gidx count, size_t size)
{
  enum { LEAST = 256 };
  void *old;
  if (count <= *capacity) return 1;
  gidx wanted = imax(imax(2 * *capacity, count), LEAST);
  wanted = imin(wanted, *capacity + (r->limit - bytes_of(r)) / (gidx)size);
  if (wanted < count) return 0;
  memcpy(&old, array, sizeof old);
  void *grown = realloc(old, (size_t)wanted * size);
  if (!grown) return 0;
  memcpy(array, &grown, sizeof grown);
  *capacity = wanted;
  return 1;
}

/* Step n has no room: the ledger ends with the step before it. */
static void give_up(struct recorder *r, struct recorded_step *step, gidx n)
{
  r->is_full = 1;
  r->end = n;
  r->ledger.parts.count = step->parts;
  r->ledger.requests.count = step->requests;
  r->n_rows = step->rows;
  step->is_on = 0;
}

/* Returns a new line of a table, or NULL if grow() failed. */
static gidx *line_add(const struct recorder *r, struct ledger_table *t, int columns)
{
  size_t size = (size_t)columns * sizeof *t->values;
  if (!grow(r, &t->values, &t->capacity, t->count + 1, size)) return NULL;
  return t->values + columns * t->count++;
}

static gidx time_of(const struct recorder *r, uint64_t ns)
{
  return (gidx)(ns - r->begun);
}

/* Record a request that step n is the first to find in a queue.  Returns 0 if grow() failed. */
static int request_see(struct recorder *r, gidx n, struct request *request)
{
  gidx rows = request->header.rows;
  if (r->has_rows && rows) {
    if (!grow(r, &r->rows, &r->row_capacity, r->n_rows + rows, (size_t)r->p * sizeof *r->rows))
      return 0;
    memcpy(r->rows + r->n_rows * r->p, request->rows, (size_t)(rows * r->p) * sizeof *r->rows);
  }
  gidx *line = line_add(r, &r->ledger.requests, REQUEST_COLUMNS);
  if (!line) return 0;
  r->n_rows += rows;
  request->record = r->ledger.requests.count;
  line[REQUEST_CLIENT] = (gidx)hash64(request->peer.name, request->peer.bytes);
  line[REQUEST_NUMBER] = (gidx)request->header.number;
  line[REQUEST_CLASS] = request->header.class;
  line[REQUEST_ROWS] = rows;
  line[REQUEST_ARRIVED] = time_of(r, request->arrived);
  line[REQUEST_SEEN] = n;
  line[REQUEST_ANSWERED] = line[REQUEST_GONE] = -1;
  line[REQUEST_STATUS] = line[REQUEST_TERMS] = 0;
  return 1;
}

void recorder_begin(struct recorder *r, struct recorded_step *step, gidx n,
                    const struct request_queue *live, const struct request_queue *bulk)
{
  enum { IN_WORK = 8 }; /* spare lines: steps in work need them when they end */
  const struct request_queue *queues[] = {live, bulk};
  struct ledger_table *steps = &r->ledger.steps;
  *step = (struct recorded_step){.is_on = r->is_on && !r->is_full,
                                 .parts = r->ledger.parts.count,
                                 .requests = r->ledger.requests.count,
                                 .rows = r->n_rows,
                                 .planned = clock_ns()};
  if (!step->is_on) return;
  if (!grow(r, &steps->values, &steps->capacity, steps->count + IN_WORK,
            STEP_COLUMNS * sizeof *steps->values))
    give_up(r, step, n);
  for (int q = 0; q < LENGTH(queues); q++)
    for (struct request *request = queues[q]->first; request; request = request->next)
      if (step->is_on && !request->record && !request_see(r, n, request)) give_up(r, step, n);
}

void recorder_part(struct recorder *r, struct recorded_step *step, gidx n,
                   const struct request *request, const struct recorded_part *part)
{
  if (!step->is_on || part->rows == 0) return;
  gidx *line = line_add(r, &r->ledger.parts, PART_COLUMNS);
  if (!line) {
    give_up(r, step, n);
    return;
  }
  line[PART_STEP] = n;
  line[PART_REQUEST] = request ? request->record - 1 : -1;
  line[PART_FILE] = part->file;
  line[PART_FIRST] = part->first;
  line[PART_ROWS] = part->rows;
}

void recorder_end(struct recorder *r, const struct recorded_step *step, gidx n, gidx rows)
{
  r->left_out += r->is_on && rows > 0 && !step->is_on;
  if (!step->is_on || rows == 0) return;
  gidx *line = line_add(r, &r->ledger.steps, STEP_COLUMNS); /* recorder_begin() made room */
  if (!line) return;
  line[STEP_NUMBER] = n;
  line[STEP_BEGUN] = time_of(r, step->planned);
  line[STEP_ENDED] = time_of(r, clock_ns());
  line[STEP_WATCHED] = step->watched;
  line[STEP_LIVE] = step->plan.live_rows;
  line[STEP_TARGET] = step->plan.target;
  line[STEP_ALLOWANCE] = step->plan.allowance;
  line[STEP_CAP] = step->plan.cap;
  line[STEP_FILE_ROWS] = step->file_rows;
}

void recorder_gone(struct recorder *r, gidx n, const struct request *request)
{
  struct ledger_table *t = &r->ledger.requests;
  if (!r->is_on || !request->record || request->record > t->count || (r->is_full && n > r->end))
    return;
  gidx *line = t->values + (request->record - 1) * REQUEST_COLUMNS;
  if (line[REQUEST_GONE] >= 0) return;
  line[REQUEST_ANSWERED] = time_of(r, clock_ns());
  line[REQUEST_GONE] = n;
  line[REQUEST_STATUS] = request->error;
  line[REQUEST_TERMS] = (gidx)request->terms;
}

void recorder_free(struct recorder *r)
{
  free(r->ledger.steps.values);
  free(r->ledger.parts.values);
  free(r->ledger.requests.values);
  free(r->rows);
}
