/* SPDX-License-Identifier: BSD-3-Clause
 * Only this user can connect to a path.  A port needs keys, which also encrypt its connections.
 * With --no-keys all users of this machine can connect to the port, without encryption. */
#include "encoding/serve_access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/status.h"

int serve_access_check(const char *listen, const char *keys, int no_keys)
{
  char address[ADDRESS_BYTES + 1];
  int is_tcp = listen && address_is_tcp(listen);
  CHECK(is_tcp || !(keys || no_keys), ERR_USAGE,
        "'--%s' is for --listen tcp:PORT, since only this user connects at a path: leave it out",
        keys ? "keys" : "no-keys");
  CHECK(!keys || !no_keys, ERR_USAGE,
        "'--keys' does not go with '--no-keys': leave one of them out");
  if (!is_tcp || keys) return OK;
  TRY(address_find(listen, address));
  CHECK(address_is_local(address), ERR_USAGE,
        "'--listen %s' is reached from other machines: make keys with `sagitta serve --make-keys "
        "DIR`, and give --keys DIR",
        listen);
  CHECK(no_keys, ERR_USAGE,
        "'--listen %s' is reached by every user of this machine: make keys with `sagitta serve "
        "--make-keys DIR`, and give --keys DIR, or --no-keys to serve them all",
        listen);
  log_warn("every user of this machine is served at '%s', because of --no-keys", address);
  return OK;
}

int serve_access_open(struct serve_access *a, const char *listen, const char *keys)
{
  TRY(address_find(listen, a->address));
  if (keys) TRY(keys_read(&a->keys, keys));
  return address_is_tcp(a->address) ? OK : address_lock(a->address, &a->lock);
}

void serve_access_close(struct serve_access *a)
{
  address_free(a->lock);
}

int serve_access_ready(struct serve_access *a, const char *address, const char *file)
{
  char name[4096];
  snprintf(a->address, sizeof a->address, "%s", address);
  log_info("accepts clients at '%s'%s%s", a->address, a->keys.folder ? ", with keys of " : "",
           a->keys.folder ? a->keys.folder : "");
  if (!file) return OK;
  int n = snprintf(name, sizeof name, "%s.part", file);
  FILE *out = n < (int)sizeof name ? fopen(name, "w") : NULL;
  CHECK(out, ERR_CREATE, "cannot create '%s': %s", file, strerror(errno));
  struct json j = {.out = out};
  json_object(&j, NULL);
  json_text(&j, "address", a->address);
  json_long(&j, "pid", getpid());
  json_end(&j);
  int failed = ferror(out) != 0;
  failed = fclose(out) || failed || rename(name, file);
  CHECK(!failed, ERR_CREATE, "cannot write '%s': %s", file, strerror(errno));
  return OK;
}

int serve_keys_make(const char *folder)
{
  TRY(keys_make(folder));
  log_info("keys    in '%s': serve with --listen tcp:HOST:PORT --keys %s", folder, folder);
  log_info("a client needs server.pub and client.secret, in a folder that nobody else may enter: "
           "sagitta.live.connect(\"tcp:HOST:PORT\", keys=FOLDER)");
  return OK;
}
