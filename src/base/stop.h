/* SPDX-License-Identifier: BSD-3-Clause
 * Requests to stop, by signals: a job that can be resumed ends at its next safe point.
 *
 * Floor: base. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include "base/types.h"

/* From here on SIGUSR1 and SIGUSR2 are requests to stop; otherwise they end the process.  Call it
 * as early as possible, since the sender does not know how far a job is.  Call it again after
 * loading libraries that may replace the handlers.  A request is remembered. */
void stop_heed(void);
/* From here on SIGTERM and SIGINT are requests, too.  A second SIGTERM or SIGINT does what it did
 * before, such as ending the process.  Called once, when there is something to save and a first
 * file is begun: until then these signals remove that file (io/temporary.c). */
void stop_listen(void);
/* Requests are not read any more: from here on SIGTERM and SIGINT do what they did before, the
 * others nothing.  Safe without the first two functions. */
void stop_listen_end(void);

/* Is this signal a request, by now? */
int stop_takes(int number);
/* The last of these signals; 0: none came.  SIGUSR1 also if --progress-fd has no reader any more,
 * since the program that started the job has ended. */
int stop_signal(void);

/* Make a request without a signal; why is a phrase that stays valid, such as "--max-seconds". */
void stop_ask(const char *why);
/* That phrase; "a signal" if no request was made so. */
const char *stop_why(void);

/* The functions that a job calls at its safe points.  None is collective. */
struct stops {
  uint64_t (*asked)(void *self); /* the reasons that this rank has to stop there, as bits; NULL: it
                                  * never stops */
  /* Called on every rank with the reasons of all ranks: the job ends, unless STOPS_SAVE is the only
   * one. */
  void (*stopped)(void *self, uint64_t asked);
  void *self; /* borrowed */
};
/* A bit: save the state, and continue. */
#define STOPS_SAVE (UINT64_C(1) << 63)
/* The reasons that this rank has; stops may be NULL. */
uint64_t stops_asked(const struct stops *stops);

#endif
