/* SPDX-License-Identifier: BSD-3-Clause
 * The deadline of a job: a thread that ends the process when one of its steps takes too long.
 *
 * Floor: base.
 *
 * A step is one call that may block: a read of a block, an fsync, MPI_Init.  A long job consists of
 * many steps; none of them may take longer than the deadline.  If one does, the watchdog prints a
 * message, removes unfinished files, and ends the process with the step's code.  The process ends
 * at most two seconds after the deadline, even if other calls block.
 *
 * The watchdog's clock runs only while the watchdog runs.  So the deadline does not count the time
 * in which the whole job was suspended (SIGTSTP by a batch system), or changes of the wall clock.
 * Any thread may call these functions, but no signal handler. */
#ifndef BASE_WATCHDOG_H
#define BASE_WATCHDOG_H

/* Start the thread.  Called once, at the start of main.  ERR_MEMORY if the thread cannot be
 * started. */
int watchdog_start(void);

/* Seconds that a step may take: 300, or the value that was set last. */
void watchdog_deadline_set(double seconds);
double watchdog_deadline(void);

/* How messages name this process: the name (borrowed, "sagitta encode") and the rank, -1 for a
 * single process. */
void watchdog_name(const char *name, int rank);

/* The function that removes unfinished files; called once, when the watchdog ends the process. */
void watchdog_discard(void (*discard)(void));

/* Seconds between two checks. */
double watchdog_period(void);

/* Begin a step, and end it; the code is ERR_IO, ERR_COMM or ERR_DEVICE.  what and subject (a file,
 * or NULL) are borrowed until the end, and form the message: `what 'subject' took longer than the
 * deadline`.  errno is kept. */
int watchdog_begin(int code, const char *what, const char *subject);
void watchdog_end(int step);

/* From here on this process only has to end, together with other ranks, which may end without
 * waiting for it.  If it is stopped (SIGSTOP) for longer than the deadline, a timer wakes it, and
 * it ends with ERR_COMM and a message; if it is stopped again, a timer kills it.  From here on a
 * suspension of the whole job also counts. */
void watchdog_ending(void);

/* The caller is about to report an error and to end the process.  If it does not end within a
 * second, since reporting may block, too, the watchdog ends it with `code`.  Another call begins
 * another second.  Does not return if the watchdog is already ending the process. */
void watchdog_leave(int code);

#endif
