/* SPDX-License-Identifier: BSD-3-Clause
 * mkdir() comes first, then the folder is checked, because another user may have made it. */
#include "net/address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

static int folder_make(const char *folder)
{
  struct stat s;
  CHECK(mkdir(folder, 0700) == 0 || errno == EEXIST, ERR_CREATE, "cannot create '%s': %s", folder,
        strerror(errno));
  CHECK(lstat(folder, &s) == 0, ERR_CREATE, "cannot open '%s': %s", folder, strerror(errno));
  CHECK(S_ISDIR(s.st_mode), ERR_CREATE, "'%s' is no folder, or a link: give --listen PATH", folder);
  CHECK(s.st_uid == geteuid() && !(s.st_mode & 077), ERR_CREATE,
        "'%s' is of user %u with mode %04o, not this user's with 0700: give --listen PATH", folder,
        (unsigned)s.st_uid, (unsigned)s.st_mode & 07777);
  return OK;
}

int address_is_tcp(const char *address)
{
  return strncmp(address, "tcp:", 4) == 0;
}

int address_is_local(const char *address)
{
  return strncmp(address, "tcp:127.", 8) == 0 || strncmp(address, "tcp:[::1]:", 10) == 0;
}

/* tcp:HOST:PORT; ZeroMQ's "tcp://" means the same. */
static int tcp_find(const char *listen, char *address)
{
  const char *rest = listen + (strncmp(listen, "tcp://", 6) ? 4 : 6), *colon = strrchr(rest, ':');
  const char *port = colon ? colon + 1 : rest;
  size_t digits = strspn(port, "0123456789");
  CHECK(digits > 0 && digits < 6 && !port[digits] && atoi(port) <= 65535 && colon != rest,
        ERR_USAGE, "'--listen' is '%s': give tcp:PORT, or tcp:HOST:PORT, with a port of 0 to 65535",
        listen);
  int n = snprintf(address, ADDRESS_BYTES + 1, "tcp:%s%s", colon ? "" : "127.0.0.1:", rest);
  CHECK(n <= ADDRESS_BYTES, ERR_USAGE, "'--listen' has %d bytes, at most %d are possible", n,
        ADDRESS_BYTES);
  return OK;
}

int address_find(const char *listen, char *path)
{
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  char folder[4096];
  int is_own = runtime && runtime[0] == '/';
  if (listen && address_is_tcp(listen)) return tcp_find(listen, path);
  if (is_own)
    snprintf(folder, sizeof folder, "%s/sagitta", runtime);
  else
    snprintf(folder, sizeof folder, "/tmp/sagitta-%u", (unsigned)geteuid());
  int n = listen ? snprintf(path, ADDRESS_BYTES + 1, "%s", listen)
                 : snprintf(path, ADDRESS_BYTES + 1, "%s/live", folder);
  CHECK(n > 0 && n <= ADDRESS_BYTES, ERR_USAGE,
        "'--listen' is a path of %d bytes: a socket's has 1 to %d", n, ADDRESS_BYTES);
  return listen ? OK : folder_make(folder);
}

int address_lock(const char *path, int *lock)
{
  char name[ADDRESS_BYTES + 8];
  struct stat s;
  CHECK(lstat(path, &s) != 0 || S_ISSOCK(s.st_mode), ERR_CREATE,
        "'%s' is there and no socket: give --listen another path", path);
  snprintf(name, sizeof name, "%s.lock", path);
  *lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  CHECK(*lock >= 0, ERR_CREATE, "cannot create '%s': %s", name, strerror(errno));
  if (flock(*lock, LOCK_EX | LOCK_NB) == 0) return OK;
  int error = errno;
  close(*lock);
  *lock = -1;
  CHECK(error != EWOULDBLOCK, ERR_CREATE,
        "another server listens at '%s': give this one --listen PATH, or end that one", path);
  FAIL(ERR_CREATE, "cannot lock '%s': %s", name, strerror(error));
}

void address_free(int lock)
{
  if (lock >= 0) close(lock);
}
