/* SPDX-License-Identifier: BSD-3-Clause
 * What a process needs from its first line to its last: standard streams, signals, the watchdog.
 *
 * Floor: job.  Not collective. */
#ifndef JOB_PROCESS_H
#define JOB_PROCESS_H

/* Open the standard streams that are closed, so that no file of ours gets their numbers.  Let
 * writes beyond a file size limit fail (EFBIG) instead of ending the process.  Let SIGPIPE end it,
 * as it ends any filter, until pipes_survive() is called.  Start the watchdog, with the deadline of
 * the command line.  ERR_MEMORY: the watchdog's thread cannot be started. */
int process_begin(int argc, char **argv);

/* From here on writes to a pipe without a reader fail (EPIPE), so that a job still completes its
 * result. */
void pipes_survive(void);

/* Flush stdout.  *unread <- 1 if it cannot be written because it is a pipe without a reader, which
 * is no failure.  ERR_IO: it cannot be written for another reason. */
int stdout_flush(int *unread);

/* The end of main, which the watchdog watches, too.  unread: the result of stdout_flush(); 1: the
 * process dies of SIGPIPE.  Otherwise returns OK. */
int process_end(int unread);

#endif
