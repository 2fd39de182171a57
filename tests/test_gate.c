/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a client's key keeps its line in the gate's list of recent keys, however many strangers
 * come with keys of their own.  A client whose key was removed is refused after a while. */
#include "net/curve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "config.h"
#include "tap.h"

#ifdef HAVE_ZMQ

enum { STRANGERS = 3 * GATE_KEYS };

static int has_line(const struct gate *gate, const char *key)
{
  for (int i = 0; i < GATE_KEYS; i++)
    if (!strcmp(gate->recent[i].key, key)) return 1;
  return 0;
}

static void key_read(const char *path, char key[KEY_BYTES + 1])
{
  FILE *f = fopen(path, "r");
  key[0] = 0;
  if (f && !fgets(key, KEY_BYTES + 1, f)) key[0] = 0;
  if (f) fclose(f);
}

static void strangers_check(const char *folder)
{
  char path[256], own[KEY_BYTES + 1], other[KEY_BYTES + 1], secret[KEY_BYTES + 1];
  struct keys keys = {.folder = folder};
  struct gate gate = {.keys = &keys};
  snprintf(path, sizeof path, "%s/clients/client.pub", folder);
  key_read(path, own);
  ok(strlen(own) == KEY_BYTES && gate_knows(&gate, own) && has_line(&gate, own),
     "the client's key is known");
  for (int i = 0; i < STRANGERS; i++)
    ok(!curve_make(other, secret) && !gate_knows(&gate, other),
       "the key of stranger %d is not known", i);
  ok(has_line(&gate, own) && gate.n_recent == 1, "one line is left in the end, not %u",
     gate.n_recent);
  ok(gate_knows(&gate, own), "the client's key is still known");
  ok(unlink(path) == 0, "the file of the client's key is removed");
  double begun = log_seconds();
  while (gate_knows(&gate, own) && log_seconds() - begun < 30) usleep(10000);
  ok(!gate_knows(&gate, own), "the removed key is refused");
}

int main(void)
{
  char folder[64], command[96];
  snprintf(folder, sizeof folder, "/tmp/test_gate-%d", (int)getpid());
  snprintf(command, sizeof command, "rm -rf %s", folder);
  claim_begin("strangers do not take the line of a client's key");
  if (curve_check())
    skip("%s", status_message());
  else if (ok(keys_make(folder) == OK, "keys are made: %s", status_message()))
    strangers_check(folder);
  ok(system(command) == 0, "the folder of keys is removed");
  claim_end();
  return done_testing();
}

#else

int main(void)
{
  claim_begin("strangers do not take the line of a client's key");
  skip("built without ZeroMQ");
  claim_end();
  return done_testing();
}

#endif
