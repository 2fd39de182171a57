/* SPDX-License-Identifier: BSD-3-Clause
 * The handler only notes which signal came. */
#include "base/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t asked;

static void note(int number)
{
  asked = number;
}

void stop_listen(void)
{
  static const struct {
    int number, flags;
  } all[] = {{SIGUSR1, SA_RESTART},
             {SIGUSR2, SA_RESTART},
             {SIGTERM, SA_RESTART | (int)SA_RESETHAND},
             {SIGINT, SA_RESTART | (int)SA_RESETHAND}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct sigaction action = {.sa_handler = note, .sa_flags = all[i].flags};
    sigemptyset(&action.sa_mask);
    sigaction(all[i].number, &action, NULL);
  }
}

int stop_signal(void)
{
  return asked;
}
