/* SPDX-License-Identifier: BSD-3-Clause
 * The run's log: stderr and, once opened, a file.
 *
 * Floor: base.
 *
 * Rank 0 speaks (log_info); log_rank speaks from every rank, prefixed.  Results go to stdout and
 * never through here. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_QUIET = -1, LOG_NORMAL = 0, LOG_VERBOSE = 1 };

void log_setup(int level, int rank);

/* Also write to the file at path, from rank 0.  ERR_CREATE when it cannot be opened, or another run
 * has it open. */
int log_open(const char *path);
void log_close(void);
int log_verbose(void);

/* Keep the message of a failed run in the file; the caller has told the user. */
void log_failure(const char *message);

void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_rank(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds since the program started. */
double log_seconds(void);

/* Progress of a loop of total items: a line redrawn on a terminal twice a second, a plain line
 * every ten seconds elsewhere; nothing with --quiet.  done == total ends it. */
struct progress {
  const char *what; /* borrowed: the phase */
  const char *unit; /* borrowed: rows, atoms */
  long long total;
  double start, shown; /* seconds */
};
void progress_start(struct progress *p, const char *what, const char *unit, long long total);
void progress_show(struct progress *p, long long done);

#endif
