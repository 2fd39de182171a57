/* SPDX-License-Identifier: BSD-3-Clause
 * What the process itself needs from its first line to its last: standard streams, signals, the
 * watchdog.
 *
 * Floor: job.  Not collective. */
#ifndef JOB_PROCESS_H
#define JOB_PROCESS_H

/* Make sure of three standard streams, so that no file of ours takes the place of one; let writes
 * beyond a limit fail (EFBIG) instead of ending the process; start the watchdog, with the deadline
 * of the command line.  Commands that only print die of SIGPIPE, like any filter.  ERR_MEMORY
 * when there is no thread for the watchdog. */
int process_begin(int argc, char **argv);

/* From here on writes to a pipe that nobody reads fail (EPIPE): a job completes its result even so.
 */
void pipes_survive(void);

/* Bring what was printed to where it goes.  *unread <- 1 when that is a pipe without a reader,
 * which is no failure; else ERR_IO when it cannot be written. */
int stdout_flush(int *unread);

/* The end of main, which the watchdog watches too: returns OK, or dies of SIGPIPE where output was
 * left unread. */
int process_end(int unread);

#endif
