/* SPDX-License-Identifier: BSD-3-Clause
 * Counts that threads share are read with the lock held.  Latencies are those of the last LATENCIES
 * live requests. */
#include "serve/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/text.h"

void front_count(struct front *f, const struct request *r)
{
  pthread_mutex_lock(&f->lock);
  f->bytes -= request_bytes(r, f->limits.p);
  int live = r->header.class == CLASS_LIVE;
  if (r->error)
    f->counts.refused[r->error]++;
  else if (live)
    f->counts.live++;
  else
    f->counts.bulk++;
  if (live && !r->error) f->latencies[f->n_latencies++ % LATENCIES] = clock_ns() - r->arrived;
  pthread_mutex_unlock(&f->lock);
}

static int latency_order(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* A percentile of n ascending latencies, in ms; NaN if n is 0.  part: the percentile / 100. */
static real percentile(const uint64_t *sorted, gidx n, real part)
{
  if (!n) return nan_canonical();
  return (real)sorted[(gidx)(part * (real)(n - 1))] / 1e6;
}

/* A copy of shared fields, all from the same moment. */
struct snapshot {
  struct serve_counts counts;
  gidx live, live_rows, bulk, bulk_rows, bytes, n;
  int is_closing;
  uint64_t sorted[LATENCIES];
};

static void snapshot_take(struct front *f, struct snapshot *s)
{
  pthread_mutex_lock(&f->lock);
  *s = (struct snapshot){.counts = f->counts,
                         .live = f->live.count,
                         .live_rows = f->live.rows,
                         .bulk = f->bulk.count,
                         .bulk_rows = f->bulk.rows,
                         .bytes = f->bytes,
                         .n = imin(f->n_latencies, LATENCIES),
                         .is_closing = f->is_closing};
  memcpy(s->sorted, f->latencies, sizeof s->sorted);
  pthread_mutex_unlock(&f->lock);
  qsort(s->sorted, (size_t)s->n, sizeof *s->sorted, latency_order);
}

void front_json(struct front *f, struct json *j)
{
  static const char *const codes[] = {NULL, "bad", "busy", "late", "closing", "cancelled"};
  struct snapshot s;
  snapshot_take(f, &s);
  json_real(j, "seconds", (real)(clock_ns() - f->begun) / 1e9);
  json_long(j, "steps", s.counts.steps);
  json_long(j, "live_requests", s.counts.live);
  json_long(j, "live_rows", s.counts.live_rows);
  json_long(j, "bulk_requests", s.counts.bulk);
  json_long(j, "bulk_rows", s.counts.bulk_rows);
  json_object(j, "files");
  json_long(j, "all", s.counts.files);
  json_long(j, "done", s.counts.files_done);
  json_long(j, "failed", s.counts.files_failed);
  json_long(j, "rows", s.counts.file_rows);
  json_end(j);
  json_object(j, "refused");
  for (int i = ERROR_BAD; i <= ERROR_CANCELLED; i++) json_long(j, codes[i], s.counts.refused[i]);
  json_end(j);
  json_object(j, "waiting");
  json_long(j, "live_requests", s.live);
  json_long(j, "live_rows", s.live_rows);
  json_long(j, "bulk_requests", s.bulk);
  json_long(j, "bulk_rows", s.bulk_rows);
  json_long(j, "bytes", s.bytes);
  json_end(j);
  json_object(j, "unread");
  json_long(j, "replies", unread_replies(f->clients.unread));
  json_long(j, "bytes", unread_bytes(f->clients.unread));
  json_long(j, "lost", s.counts.lost);
  json_end(j);
  json_object(j, "live_milliseconds");
  json_long(j, "requests", s.n);
  json_real(j, "p50", percentile(s.sorted, s.n, 0.5));
  json_real(j, "p99", percentile(s.sorted, s.n, 0.99));
  json_real(j, "max", percentile(s.sorted, s.n, 1));
  json_end(j);
  json_long(j, "clients", f->clients.count);
  json_flag(j, "closing", s.is_closing);
}

int front_status(struct front *f, char **text, size_t *bytes)
{
  struct json j = {0};
  TRY(text_open(&j.out, text, bytes, "the status"));
  json_object(&j, NULL);
  front_json(f, &j);
  json_end(&j);
  return text_close(j.out, "the status");
}
