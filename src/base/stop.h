/* SPDX-License-Identifier: BSD-3-Clause
 * Being asked to stop, by a signal: a job that can go on later ends at its next safe point.
 *
 * Floor: base. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include "base/types.h"

/* From here on SIGUSR1 and SIGUSR2, which otherwise end the process, ask.  Called as early as can
 * be, since who sends them does not know how far a job is, and again behind what may have loaded a
 * library that takes them; the wish is remembered. */
void stop_heed(void);
/* From here on SIGTERM and SIGINT ask too, and those two again; a second one of SIGTERM or SIGINT
 * does what it did before, such as ending the process.  Called once, when there is something to
 * save and a first file is begun: removing it is what they did before (io/temporary.c). */
void stop_listen(void);
/* Nobody will look any more: from here on SIGTERM and SIGINT do what they did before, the others
 * nothing.  Safe without the first two. */
void stop_listen_end(void);

/* Is this signal one that asks, by now? */
int stop_takes(int number);
/* The last of these signals, 0: none has come; SIGUSR1 too where nobody reads --progress-fd any
 * more, since who started the job has ended. */
int stop_signal(void);

/* Ask as a signal would: why is a phrase that lives on, such as "--max-seconds". */
void stop_ask(const char *why);
/* That phrase, "a signal" where nothing was asked so. */
const char *stop_why(void);

/* What a job asks at its safe points.  No function is collective. */
struct stops {
  uint64_t (*asked)(void *self); /* what asks this rank to end there, as bits; NULL: nothing ever */
  void (*stopped)(void *self, uint64_t asked); /* what asks some rank, on every rank: it ends,
                                                * unless STOPS_SAVE is all that asks */
  void *self;                                  /* borrowed */
};
/* Among the bits: to save what there is, and go on. */
#define STOPS_SAVE (UINT64_C(1) << 63)
/* What asks this rank; stops may be NULL. */
uint64_t stops_asked(const struct stops *stops);

#endif
