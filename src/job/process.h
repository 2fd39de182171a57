/* SPDX-License-Identifier: BSD-3-Clause
 * What the process needs from its first line to its last: standard streams, signals, the watchdog.
 *
 * Floor: job.  Not collective. */
#ifndef JOB_PROCESS_H
#define JOB_PROCESS_H

/* Make sure that three standard streams are open, so that no file of ours gets their numbers.  Let
 * writes beyond a file size limit fail (EFBIG) instead of ending the process.  Start the watchdog,
 * with the deadline of the command line.  Commands that only print die of SIGPIPE, like any filter.
 * ERR_MEMORY if the watchdog's thread cannot be started. */
int process_begin(int argc, char **argv);

/* From here on writes to a pipe without a reader fail (EPIPE): a job still completes its result. */
void pipes_survive(void);

/* Flush stdout.  *unread <- 1 if it is a pipe without a reader, which is no failure.  ERR_IO if it
 * cannot be written. */
int stdout_flush(int *unread);

/* The end of main, also watched by the watchdog: returns OK, or dies of SIGPIPE if output was left
 * unread. */
int process_end(int unread);

#endif
