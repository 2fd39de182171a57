/* SPDX-License-Identifier: BSD-3-Clause
 * The deadline of a job: a thread that ends the process when one of its steps takes too long.
 *
 * Floor: base.
 *
 * A step is one call that may block: a read of a block, an fsync, MPI_Init.  A long honest job is
 * many steps; none of them may take longer than the deadline.  When one does, the watchdog prints
 * the one message, removes what is unfinished, and ends the process with the step's code: no later
 * than two seconds after the deadline, whatever else blocks meanwhile.
 *
 * Its clock goes on only while the watchdog itself runs, so a job that was suspended as a whole
 * (SIGTSTP by a batch system) goes on as if nothing had been; steps of the wall clock do not matter
 * either.  Any thread may use all of this, but no signal handler. */
#ifndef BASE_WATCHDOG_H
#define BASE_WATCHDOG_H

/* Start the thread; at the begin of main, once.  ERR_MEMORY when there is no thread. */
int watchdog_start(void);

/* Seconds that a step may take: 300, or what was set last. */
void watchdog_deadline_set(double seconds);
double watchdog_deadline(void);

/* Who speaks: the name (borrowed, "sagitta encode") and the rank, -1 when there is one alone. */
void watchdog_name(const char *name, int rank);

/* What removes unfinished files; called once, when the watchdog ends the process. */
void watchdog_discard(void (*discard)(void));

/* Seconds between two looks. */
double watchdog_period(void);

/* Begin a step, and end it; the code is ERR_IO, ERR_COMM or ERR_DEVICE.  what and subject (a file,
 * or NULL) are borrowed until the end and make the message: `what 'subject' took longer than the
 * deadline`.  errno is kept. */
int watchdog_begin(int code, const char *what, const char *subject);
void watchdog_end(int step);

/* From here on this process does no more than end together with others, which may not wait for it:
 * where it is stopped (SIGSTOP) for longer than the deadline it is woken and ends with ERR_COMM and
 * a message, or is killed.  Until it has ended, a suspension of the whole job counts, too. */
void watchdog_ending(void);

/* The caller says why the process ends and ends it; where it cannot within a second, because that
 * blocks too, the watchdog does.  Called again, another second begins.  Does not return when the
 * watchdog has already begun to. */
void watchdog_leave(int code);

#endif
