/* SPDX-License-Identifier: BSD-3-Clause
 * A line is composed in memory and written at once, so that lines of threads do not mix. */
#include "base/events.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/status.h"

static const double SPACING = 0.1; /* seconds between two lines of progress */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int events_fd;
static double shown;

int events_open(int fd)
{
  if (!fd) return OK;
  int mode = fcntl(fd, F_GETFL);
  CHECK(
      mode >= 0 && (mode & O_ACCMODE) != O_RDONLY, ERR_USAGE,
      "'--progress-fd %d' is not open for writing: 2 is standard error, and a shell opens another "
      "by `%d> FILE`",
      fd, fd);
  events_fd = fd;
  return OK;
}

/* The JSON writer puts each entry on a line of its own, indented.  Join these lines to one; returns
 * the bytes of the joined line. */
static size_t line_join(char *text, size_t bytes)
{
  size_t used = 0;
  for (size_t i = 0; i < bytes; i++) {
    text[used++] = text[i];
    if (text[i] != '\n' || i + 1 == bytes) continue;
    text[used - 1] = ' ';
    while (text[i + 1] == ' ') i++;
  }
  return used;
}

static void line_write(char *text, size_t bytes)
{
  bytes = line_join(text, bytes);
  pthread_mutex_lock(&lock);
  for (size_t done = 0; done < bytes;) {
    ssize_t n = write(events_fd, text + done, bytes - done);
    if (n < 0 && errno != EINTR) break;
    if (n > 0) done += (size_t)n;
  }
  pthread_mutex_unlock(&lock);
}

/* Begin a line of at most `capacity` bytes in text.  line_end() drops a longer line. */
static int line_begin(struct json *j, char *text, size_t capacity, const char *kind)
{
  *j = (struct json){.out = events_fd ? fmemopen(text, capacity, "w") : NULL};
  if (!j->out) return 0;
  json_object(j, NULL);
  json_text(j, "event", kind);
  return 1;
}

static void line_end(struct json *j, char *text, size_t capacity)
{
  json_end(j);
  long bytes = ftell(j->out);
  int is_whole = fclose(j->out) == 0 && bytes > 0 && (size_t)bytes < capacity;
  if (is_whole) line_write(text, (size_t)bytes);
}

void events_log(const char *kind, const char *id, double seconds, const char *text)
{
  char line[8192];
  struct json j;
  if (!line_begin(&j, line, sizeof line, kind)) return;
  if (strcmp(kind, "warning") == 0) json_text(&j, "id", id);
  json_real(&j, "seconds", seconds);
  json_text(&j, "text", text);
  line_end(&j, line, sizeof line);
}

/* Is it time for another line of progress? */
static int is_due(int is_last)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  double t = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
  pthread_mutex_lock(&lock);
  int due = is_last || t - shown >= SPACING;
  if (due) shown = t;
  pthread_mutex_unlock(&lock);
  return due;
}

void events_progress(const char *what, const char *unit, long long done, long long total)
{
  char line[1024];
  struct json j;
  if (!events_fd || !is_due(done >= total)) return;
  if (!line_begin(&j, line, sizeof line, "progress")) return;
  json_text(&j, "what", what);
  json_text(&j, "unit", unit);
  json_long(&j, "done", done);
  json_long(&j, "total", total);
  line_end(&j, line, sizeof line);
}

int events_unread(void)
{
  struct pollfd pipe = {.fd = events_fd, .events = POLLOUT};
  return events_fd && poll(&pipe, 1, 0) == 1 && pipe.revents & POLLERR;
}
