/* SPDX-License-Identifier: BSD-3-Clause
 * The run's log: on stderr, and in a file once there is one.
 *
 * Floor: base.
 *
 * Only rank 0 prints, except that log_rank() prints on every rank, with a prefix.  Results go to
 * stdout, never through these functions.  Any thread may log. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdio.h>

enum log_level { LOG_QUIET = -1, LOG_NORMAL = 0, LOG_VERBOSE = 1 };

/* Set the level and the rank; the first call starts the clock of log_seconds(). */
void log_setup(int level, int rank);

/* From here on rank 0 also writes its lines to an open file, which log_close() closes.  Warnings
 * that were logged before, such as those about inputs, are written to it first. */
void log_attach(FILE *file);
void log_close(void);

/* Does this rank print log lines? */
int log_is_shown(void);

/* Returns 1 with --verbose. */
int log_verbose(void);

/* Write the message of a failed run to the file only; the caller writes it to stderr. */
void log_failure(const char *message);

/* A line of the log.  log_debug() prints only with --verbose.  log_notice() and log_warn() also
 * print with --quiet; log_warn() puts "warning: " before the text. */
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A warning with a name for programs, such as "massive-rows" (doc/json.md). */
void log_warn_named(const char *id, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_rank(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds since the first log_setup(), which is called when the program starts. */
double log_seconds(void);

/* Progress of a loop over `total` items.  If stderr is a terminal, it is a line that is redrawn
 * twice a second, and the file gets nothing.  Otherwise it is a plain line every ten seconds, in
 * the file, too.  With --quiet nothing is printed.  done == total ends it. */
struct progress {
  const char *what; /* borrowed: the phase */
  const char *unit; /* borrowed: rows, atoms */
  long long total;
  /* items that an earlier run did, which the rate does not count.  Set it after progress_start() */
  long long before;
  double start, shown; /* seconds */
};
void progress_start(struct progress *p, const char *what, const char *unit, long long total);
void progress_show(struct progress *p, long long done);

#endif
