/* SPDX-License-Identifier: BSD-3-Clause
 * A file that fails does not end the server.  The log says why it failed; backlog_end() counts
 * failures. */
#include "encoding/backlog.h"

#include <stdio.h>

#include "base/log.h"
#include "base/status.h"

static void file_fail(struct backlog *b, const struct backlog_entry *entry, int status)
{
  log_warn("line %d of '%s' fails: %s", entry->line, b->list.name, status_message());
  if (!b->failed++) {
    b->code = status;
    status_take(b->reason, sizeof b->reason);
  }
  status_clear();
}

static void counts_show(const struct backlog *b, struct front *front)
{
  pthread_mutex_lock(&front->lock);
  front->counts.files = b->list.count;
  front->counts.files_done = b->done;
  front->counts.files_failed = b->failed;
  pthread_mutex_unlock(&front->lock);
}

int backlog_run(void *self, struct front *front)
{
  struct backlog *b = self;
  b->task.front = front;
  counts_show(b, front);
  for (gidx i = 0; i < b->list.count && !feed_is_closing(front); i++) {
    int is_left = 0, status = served_file_encode(&b->task, &b->list.all[i], &is_left);
    if (status)
      file_fail(b, &b->list.all[i], status);
    else
      b->done += !is_left;
    counts_show(b, front);
  }
  served_files_free(&b->task);
  return OK;
}

int backlog_end(const struct backlog *b, int *is_left)
{
  *is_left = b->done + b->failed < b->list.count;
  CHECK(!b->failed, b->code, "%lld of the %lld files of '%s' failed; the first error is: %s",
        (long long)b->failed, (long long)b->list.count, b->list.name, b->reason);
  return OK;
}
