/* SPDX-License-Identifier: BSD-3-Clause
 * The run's log: stderr and, once there is one, a file.
 *
 * Floor: base.
 *
 * Only rank 0 prints, but for log_rank(), which prints from every rank with a prefix.  Results go
 * to stdout and never through here.  Any thread may log. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdio.h>

enum log_level { LOG_QUIET = -1, LOG_NORMAL = 0, LOG_VERBOSE = 1 };

/* Set what is printed, and start the clock of log_seconds() the first time. */
void log_setup(int level, int rank);

/* From here on rank 0 writes its lines to an open file too, which log_close() closes; warnings from
 * before, as of inputs, come first. */
void log_attach(FILE *file);
void log_close(void);

/* Does this rank print lines of the log? */
int log_is_shown(void);

/* 1 with --verbose. */
int log_verbose(void);

/* Write the message of a failed run to the file alone; the caller prints it. */
void log_failure(const char *message);

/* A line of the log; log_debug() prints with --verbose alone, log_notice() and log_warn(), which
 * says "warning: " first, with --quiet too. */
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A warning that programs know by a name, such as "massive-rows" (doc/json.md). */
void log_warn_named(const char *id, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_rank(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds since the first log_setup(), which is called when the program starts. */
double log_seconds(void);

/* Progress of a loop over `total` items: on a terminal a line that is redrawn twice a second,
 * elsewhere a plain line every ten seconds, in the file too, nothing with --quiet.  done == total
 * ends it. */
struct progress {
  const char *what; /* borrowed: the phase */
  const char *unit; /* borrowed: rows, atoms */
  long long total;
  long long before;    /* done by an earlier run: in no rate.  Set behind progress_start() */
  double start, shown; /* seconds */
};
void progress_start(struct progress *p, const char *what, const char *unit, long long total);
void progress_show(struct progress *p, long long done);

#endif
