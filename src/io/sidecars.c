/* SPDX-License-Identifier: BSD-3-Clause
 * A run has one pair of sidecar files: used.in and run.log. */
#include "io/sidecars.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/retry.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "io/temporary.h"

static struct {
  struct temporary used, log;
  int has_used, has_log; /* 1: begun, and not published yet */
  int has_result;        /* this run has published a result */
} pair;

static int is_there(const char *path)
{
  struct stat facts;
  int step = watchdog_begin(ERR_IO, "looking at", path), failed = lstat(path, &facts);
  watchdog_end(step);
  return !failed;
}

/* Open an earlier log to append to it.  NULL: it is missing, or not a file. */
static FILE *log_append(const char *path)
{
  struct stat facts;
  int step = watchdog_begin(ERR_IO, "opening", path);
  int file = retry_open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  watchdog_end(step);
  if (file < 0) return NULL;
  FILE *log = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) ? fdopen(file, "a") : NULL;
  if (!log) close(file);
  return log;
}

int sidecars_open(const struct output_path *place, int appends, FILE **used, FILE **log)
{
  memset(&pair, 0, sizeof pair);
  TRY(temporary_create(&pair.used, place->used, place->used_failed, used));
  pair.has_used = 1;
  *log = appends ? log_append(place->log) : NULL;
  if (*log) return OK;
  TRY(temporary_create(&pair.log, place->log, place->log_failed, log));
  pair.has_log = 1;
  return OK;
}

int sidecars_begin(FILE *used, const char **log_name)
{
  *log_name = NULL;
  TRY(temporary_close(&pair.used, used));
  int waits = is_there(pair.used.path) || !pair.has_log || is_there(pair.log.path);
  if (waits) {
    if (pair.has_log) *log_name = pair.log.name;
    return OK;
  }
  TRY(temporary_show(&pair.used));
  return temporary_show(&pair.log);
}

static void sidecar_publish(struct temporary *t, int *waits)
{
  if (!*waits) return;
  *waits = temporary_publish(t) != OK;
  if (!*waits) return;
  log_warn("%s: the file there is an earlier run's; the result's own /run says how it came to be",
           status_message());
  status_clear();
}

int sidecars_are_published(void)
{
  return pair.has_result;
}

void sidecars_publish(void)
{
  pair.has_result = 1;
  sidecar_publish(&pair.used, &pair.has_used);
  sidecar_publish(&pair.log, &pair.has_log);
}
