/* SPDX-License-Identifier: BSD-3-Clause
 * Tables grow by doubling.  A step that cannot be written down as a whole is not at all. */
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

/* Let *(T **)array have room for count items; 0: there is no memory. */
static int grow(void *array, gidx *capacity, gidx count, size_t size)
{
  enum { LEAST = 256 };
  void *old;
  if (count <= *capacity) return 1;
  gidx wanted = imax(imax(2 * *capacity, count), LEAST);
  memcpy(&old, array, sizeof old);
  void *grown = realloc(old, (size_t)wanted * size);
  if (!grown) return 0;
  memcpy(array, &grown, sizeof grown);
  *capacity = wanted;
  return 1;
}

/* The ledger ends with the step before this one. */
static void give_up(struct recorder *r)
{
  r->is_full = 1;
  r->ledger.parts.count = r->parts;
  r->ledger.requests.count = r->requests;
  r->n_rows = r->step_rows;
}

/* A new line of a table; NULL: it is full. */
static gidx *line_add(struct recorder *r, struct ledger_table *t, int columns)
{
  size_t size = (size_t)columns * sizeof *t->values;
  if (r->is_full) return NULL;
  if (!grow(&t->values, &t->capacity, t->count + 1, size)) {
    give_up(r);
    return NULL;
  }
  return t->values + columns * t->count++;
}

static gidx time_of(const struct recorder *r, uint64_t ns)
{
  return (gidx)(ns - r->begun);
}

/* A request is seen for the first time. */
static void request_see(struct recorder *r, gidx n, struct request *request)
{
  gidx rows = request->header.rows;
  if (r->has_rows && !r->is_full) {
    if (!grow(&r->rows, &r->row_capacity, r->n_rows + rows, (size_t)r->p * sizeof *r->rows))
      give_up(r);
    else if (rows)
      memcpy(r->rows + r->n_rows * r->p, request->rows, (size_t)request_bytes(request));
  }
  gidx *line = line_add(r, &r->ledger.requests, REQUEST_COLUMNS);
  if (!line) return;
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
}

void recorder_begin(struct recorder *r, gidx n, const struct request_queue *live,
                    const struct request_queue *bulk)
{
  const struct request_queue *queues[] = {live, bulk};
  if (!r->is_on) return;
  r->planned = clock_ns();
  r->parts = r->ledger.parts.count;
  r->requests = r->ledger.requests.count;
  r->step_rows = r->n_rows;
  if (bytes_of(r) > r->limit) r->is_full = 1;
  for (int q = 0; q < LENGTH(queues); q++)
    for (struct request *request = queues[q]->first; request; request = request->next)
      if (!request->record) request_see(r, n, request);
}

void recorder_plan(struct recorder *r, int watched, gidx file_rows, const struct admission *plan)
{
  r->watched = watched;
  r->file_rows = file_rows;
  r->plan = *plan;
}

void recorder_part(struct recorder *r, gidx n, const struct request *request, gidx file, gidx first,
                   gidx rows)
{
  if (!r->is_on || rows == 0) return;
  gidx *line = line_add(r, &r->ledger.parts, PART_COLUMNS);
  if (!line) return;
  line[PART_STEP] = n;
  line[PART_REQUEST] = request ? request->record - 1 : -1;
  line[PART_FILE] = file;
  line[PART_FIRST] = first;
  line[PART_ROWS] = rows;
}

void recorder_end(struct recorder *r, gidx n, gidx rows)
{
  if (!r->is_on || rows == 0) return;
  gidx *line = line_add(r, &r->ledger.steps, STEP_COLUMNS);
  r->left_out += line == NULL;
  if (!line) return;
  line[STEP_NUMBER] = n;
  line[STEP_BEGUN] = time_of(r, r->planned);
  line[STEP_ENDED] = time_of(r, clock_ns());
  line[STEP_WATCHED] = r->watched;
  line[STEP_LIVE] = r->plan.live_rows;
  line[STEP_TARGET] = r->plan.target;
  line[STEP_ALLOWANCE] = r->plan.allowance;
  line[STEP_CAP] = r->plan.cap;
  line[STEP_FILE_ROWS] = r->file_rows;
}

void recorder_gone(struct recorder *r, gidx n, const struct request *request)
{
  struct ledger_table *t = &r->ledger.requests;
  if (!r->is_on || !request->record || request->record > t->count || n > r->ledger.steps.count)
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
