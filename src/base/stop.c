/* SPDX-License-Identifier: BSD-3-Clause
 * The handler only notes which signal came, and lets the next SIGTERM or SIGINT do what it did
 * before. */
#include "base/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t asked;
static const char *reason = "a signal";

static const int numbers[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT};
static struct sigaction before[sizeof numbers / sizeof *numbers];
static int listens;

static void note(int number)
{
  asked = number;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i] == number && (number == SIGTERM || number == SIGINT))
      sigaction(number, &before[i], NULL);
}

void stop_listen(void)
{
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(numbers[i], &action, &before[i]);
  }
  listens = 1;
}

void stop_listen_end(void)
{
  for (size_t i = 0; listens && i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i] == SIGTERM || numbers[i] == SIGINT) sigaction(numbers[i], &before[i], NULL);
  listens = 0;
}

int stop_signal(void)
{
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
