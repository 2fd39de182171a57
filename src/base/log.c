/* SPDX-License-Identifier: BSD-3-Clause
 * A line is `[ seconds] text`.  The file gets the same lines, without the redrawn lines of a
 * terminal. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/events.h"
#include "base/status.h"
#include "base/text.h"
#include "base/watchdog.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while a line is written */
static int level, rank;
static _Atomic int drawn; /* width of the progress line now on the terminal */
static FILE *file;
static char early[1 << 14]; /* whole lines: warnings that were logged before there was a file */
static size_t early_used;
static struct timespec origin;

double log_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - origin.tv_sec) + 1e-9 * (double)(now.tv_nsec - origin.tv_nsec);
}

void log_setup(int new_level, int new_rank)
{
  if (!origin.tv_sec) clock_gettime(CLOCK_MONOTONIC, &origin);
  level = new_level;
  rank = new_rank;
}

void log_attach(FILE *opened)
{
  pthread_mutex_lock(&lock);
  file = opened;
  if (file && early_used) fputs(early, file);
  early_used = 0;
  pthread_mutex_unlock(&lock);
}

/* Keep a warning for a file that will be opened later, as long as there is room. */
static void early_keep(double seconds, const char *text)
{
  int more =
      snprintf(early + early_used, sizeof early - early_used, "[%10.3f] %s\n", seconds, text);
  if (early_used + (size_t)more < sizeof early)
    early_used += (size_t)more;
  else
    early[early_used] = '\0';
}

void log_close(void)
{
  pthread_mutex_lock(&lock);
  FILE *closed = file;
  file = NULL;
  pthread_mutex_unlock(&lock);
  int step = watchdog_begin(ERR_IO, "writing the log", NULL);
  if (closed) fclose(closed);
  watchdog_end(step);
}

/* The watchdog watches writes to stderr only if stderr is a file: a terminal, a pager or a launcher
 * may be slow to read. */
static int is_watched(void)
{
  struct stat facts;
  return fstat(STDERR_FILENO, &facts) == 0 && S_ISREG(facts.st_mode);
}

enum { TO_TERMINAL = 1, IS_WARNING = 2 };

static void line_out(int how, const char *text)
{
  pthread_mutex_lock(&lock);
  double t = log_seconds();
  if (how & IS_WARNING && !file) early_keep(t, text);
  if (how & TO_TERMINAL) {
    int is_step = is_watched(),
        step = is_step ? watchdog_begin(ERR_IO, "writing to stderr", NULL) : 0;
    if (drawn) fprintf(stderr, "\r%*s\r", drawn, "");
    drawn = 0;
    fprintf(stderr, "[%10.3f] %s\n", t, text);
    if (is_step) watchdog_end(step);
  }
  if (file) {
    int step = watchdog_begin(ERR_IO, "writing the log", NULL);
    fprintf(file, "[%10.3f] %s\n", t, text);
    fflush(file);
    watchdog_end(step);
  }
  pthread_mutex_unlock(&lock);
}

int log_is_shown(void)
{
  return rank == 0;
}

int log_verbose(void)
{
  return level >= LOG_VERBOSE;
}

void log_failure(const char *message)
{
  char text[2200];
  snprintf(text, sizeof text, "failed: %s", message);
  line_out(0, text);
}

/* How a line is written to the log, and to --progress-fd. */
struct line_form {
  int how;
  const char *prefix, *event, *id; /* event NULL: no event */
};

static void line_format(const struct line_form *form, const char *format, va_list args)
{
  char text[1024];
  int used = snprintf(text, sizeof text, "%s", form->prefix);
  vsnprintf(text + used, sizeof text - (size_t)used, format, args);
  text_clean(text);
  if (form->event) events_log(form->event, form->id, log_seconds(), text + used);
  line_out(form->how, text);
}

void log_info(const char *format, ...)
{
  if (rank != 0) return;
  va_list args;
  va_start(args, format);
  line_format(&(struct line_form){level >= LOG_NORMAL, "", "log", NULL}, format, args);
  va_end(args);
}

void log_debug(const char *format, ...)
{
  if (rank != 0 || level < LOG_VERBOSE) return;
  va_list args;
  va_start(args, format);
  line_format(&(struct line_form){1, "", "debug", NULL}, format, args);
  va_end(args);
}

void log_notice(const char *format, ...)
{
  if (rank != 0) return;
  va_list args;
  va_start(args, format);
  line_format(&(struct line_form){1, "", "log", NULL}, format, args);
  va_end(args);
}

void log_warn(const char *format, ...)
{
  if (rank != 0) return;
  va_list args;
  va_start(args, format);
  line_format(&(struct line_form){TO_TERMINAL | IS_WARNING, "warning: ", "warning", NULL}, format,
              args);
  va_end(args);
}

void log_warn_named(const char *id, const char *format, ...)
{
  if (rank != 0) return;
  va_list args;
  va_start(args, format);
  line_format(&(struct line_form){TO_TERMINAL | IS_WARNING, "warning: ", "warning", id}, format,
              args);
  va_end(args);
}

void log_rank(const char *format, ...)
{
  char prefix[32];
  snprintf(prefix, sizeof prefix, "rank %d: ", rank);
  va_list args;
  va_start(args, format);
  line_format(&(struct line_form){level >= LOG_NORMAL, prefix, NULL, NULL}, format, args);
  va_end(args);
}

void progress_start(struct progress *p, const char *what, const char *unit, long long total)
{
  *p = (struct progress){.what = what, .unit = unit, .total = total};
  p->start = p->shown = log_seconds();
}

void progress_show(struct progress *p, long long done)
{
  if (rank != 0) return;
  events_progress(p->what, p->unit, done, p->total);
  if (level < LOG_NORMAL) return;
  int terminal = isatty(STDERR_FILENO);
  double now = log_seconds(), spent = now - p->start;
  int last = done >= p->total;
  if (now - p->shown < (terminal ? 0.5 : 10.0) && !(last && drawn)) return;
  p->shown = now;
  double rate = spent > 0 ? (double)(done - p->before) / spent : 0;
  double left = rate > 0 ? (double)(p->total - done) / rate : 0;
  char text[160];
  int length =
      snprintf(text, sizeof text, "%s   %lld of %lld %s (%.0f %%)", p->what, done, p->total,
               p->unit, p->total ? 100.0 * (double)done / (double)p->total : 100.0);
  if (rate > 0 && length < (int)sizeof text)
    snprintf(text + length, sizeof text - (size_t)length, ", %.0f %s/s, %.0f s left", rate, p->unit,
             left);
  if (!terminal) {
    line_out(1, text);
    return;
  }
  pthread_mutex_lock(&lock);
  int width = fprintf(stderr, "\r%s", text) - 1;
  if (width < drawn) fprintf(stderr, "%*s", drawn - width, "");
  drawn = width;
  if (last) {
    fprintf(stderr, "\r%*s\r", drawn, "");
    drawn = 0;
  }
  fflush(stderr);
  pthread_mutex_unlock(&lock);
}
