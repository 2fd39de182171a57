/* SPDX-License-Identifier: BSD-3-Clause
 * The handler only notes which signal came, and restores the earlier action for the next SIGTERM or
 * SIGINT. */
#include "base/stop.h"

#include <signal.h>
#include <stddef.h>

#include "base/events.h"
#include "base/pace.h"

static volatile sig_atomic_t asked;
static const char *reason = "a signal";

static const int ending[] = {SIGTERM, SIGINT};
static struct sigaction before[sizeof ending / sizeof *ending];
static int listens;

static void note(int number)
{
  asked = number;
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
    if (ending[i] == number) sigaction(number, &before[i], NULL);
}

static void take(int number, struct sigaction *earlier)
{
  struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, earlier);
}

void stop_heed(void)
{
  take(SIGUSR1, NULL);
  take(SIGUSR2, NULL);
}

void stop_listen(void)
{
  stop_heed();
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) take(ending[i], &before[i]);
  listens = 1;
}

void stop_listen_end(void)
{
  for (size_t i = 0; listens && i < sizeof ending / sizeof *ending; i++)
    sigaction(ending[i], &before[i], NULL);
  listens = 0;
}

int stop_takes(int number)
{
  struct sigaction now;
  return sigaction(number, NULL, &now) == 0 && now.sa_handler == note;
}

int stop_signal(void)
{
  pace_step();
  if (!asked && events_unread()) stop_ask("the end of the program that started it");
  return asked;
}

void stop_ask(const char *why)
{
  reason = why;
  asked = SIGUSR1;
}

const char *stop_why(void)
{
  return reason;
}

uint64_t stops_asked(const struct stops *s)
{
  return s && s->asked ? s->asked(s->self) : 0;
}
