/* SPDX-License-Identifier: BSD-3-Clause
 * The log and the progress of a run for the program that started it: lines of JSON, written to a
 * file descriptor (--progress-fd).  doc/json.md lists the entries of a line.
 *
 * Floor: base.
 *
 * Nothing is written before events_open().  A line that cannot be written is dropped, since a job
 * must not depend on its observers.  Any thread may call these functions. */
#ifndef BASE_EVENTS_H
#define BASE_EVENTS_H

/* From here on lines are written to the descriptor fd; fd 0: no lines are written.  ERR_USAGE when
 * it is not open for writing. */
int events_open(int fd);

/* A line of the log.  kind: log, debug or warning; id: the name of a warning, or NULL. */
void events_log(const char *kind, const char *id, double seconds, const char *text);

/* A line of progress: `done` of `total` units of the phase `what`.  At most ten lines per second
 * are written, and in addition a line for the last unit. */
void events_progress(const char *what, const char *unit, long long done, long long total);

/* Is the descriptor a pipe without a reader?  Then the program that started this one has ended. */
int events_unread(void);

#endif
