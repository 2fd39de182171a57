/* SPDX-License-Identifier: BSD-3-Clause
 * Requests to stop, by signals: a job that can be resumed ends at its next safe point.
 *
 * Floor: base. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include "base/types.h"

/* From here on SIGUSR1 and SIGUSR2 are requests to stop.  Before this call they end the process.
 * Call it as early as possible, since the sender cannot know whether it was called.  Call it again
 * after loading libraries that may replace the handlers.  A request is remembered. */
void stop_heed(void);
/* From here on SIGTERM and SIGINT are requests, too.  A second SIGTERM, or a second SIGINT, has the
 * action from before this call, such as to end the process.  Called once, when there is something
 * to save and a first file is begun.  Before this call these signals remove that file
 * (io/temporary.c). */
void stop_listen(void);
/* Called when the job no longer reads requests.  From here on SIGTERM and SIGINT have their actions
 * from before stop_listen(); SIGUSR1 and SIGUSR2 have no effect.  Safe if stop_heed() and
 * stop_listen() were not called. */
void stop_listen_end(void);

/* Is this signal a request at present? */
int stop_takes(int number);
/* The last request: the number of its signal; 0: there was none.  A request by stop_ask() counts as
 * SIGUSR1.  If --progress-fd has lost its reader, the program that started the job has ended, and
 * this function makes a request. */
int stop_signal(void);

/* Make a request without a signal; why is a phrase that stays valid, such as "--max-seconds". */
void stop_ask(const char *why);
/* The phrase of the last stop_ask(); "a signal" if it was not called. */
const char *stop_why(void);

/* The functions that a job calls at its safe points.  None is collective. */
struct stops {
  /* returns the reasons that this rank has to stop at this point, as bits; NULL: it never stops */
  uint64_t (*asked)(void *self);
  /* Called on every rank with the reasons of all ranks.  The job then ends, unless STOPS_SAVE is
   * the only reason. */
  void (*stopped)(void *self, uint64_t asked);
  void *self; /* borrowed */
};
/* A reason that does not end the job: save the state, and continue. */
#define STOPS_SAVE (UINT64_C(1) << 63)
/* The result of stops->asked(), or 0 if it is NULL; stops may be NULL. */
uint64_t stops_asked(const struct stops *stops);

#endif
