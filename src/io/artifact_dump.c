/* SPDX-License-Identifier: BSD-3-Clause
 * Both files are written under temporary names and renamed when they are complete. */
#include "io/artifact_dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "io/place.h"
#include "io/temporary.h"

/* Could the name of the dump be mistaken for the name of a result, a deck (used.in), a log, a file
 * of JSON, a lock or a temporary file? */
static int is_taken(const char *path)
{
  static const char *const ends[] = {".h5", ".in", ".log", ".json", ".lock", ".tmp"};
  size_t length = strlen(path);
  for (int i = 0; i < LENGTH(ends); i++) {
    size_t tail = strlen(ends[i]);
    if (length >= tail && strcmp(path + length - tail, ends[i]) == 0) return 1;
  }
  return 0;
}

int artifact_dump_claim(struct artifact_path *place, const char *path, int force)
{
  char atoms[4096];
  int length = snprintf(atoms, sizeof atoms, "%s.atoms", path);
  CHECK(*path && length < (int)sizeof atoms, ERR_CREATE,
        "the name '%s' of the dump is empty or too long", path);
  CHECK(!is_taken(path), ERR_CREATE,
        "the dump '%s' would pass for a result or its companion: give it another name", path);
  TRY(output_claim(path, force, place->path[0]));
  return output_claim(atoms, force, place->path[1]);
}

/* Write, as one step of the watchdog.  Returns 1 if all was written. */
static int text_write(const void *text, size_t bytes, FILE *file)
{
  int step = watchdog_begin(ERR_IO, "writing the artifact", NULL);
  int good = fwrite(text, 1, bytes, file) == bytes;
  watchdog_end(step);
  return good;
}

/* Write both texts to open files. */
static int dump_fill(FILE **file, const struct artifact *a, const float *atoms, idx k, idx d, idx p)
{
  struct arena arena = {0};
  size_t bytes = artifact_atom_bytes(d, p);
  unsigned char *text = NULL;
  TRY(arena_alloc(&arena, &text, (gidx)bytes, 1));
  int good = text_write(a->text, a->bytes, file[0]);
  for (idx i = 0; i < k && good; i++) {
    artifact_atom(atoms + (gidx)i * d * p, d, p, text);
    good = text_write(text, bytes, file[1]);
  }
  arena_free(&arena);
  CHECK(good, ERR_IO, "cannot write the dump: %s", strerror(errno));
  return OK;
}

int artifact_dump(const struct artifact_path *place, const struct artifact *a, const float *atoms,
                  idx k, idx d, idx p)
{
  struct temporary t[2];
  FILE *file[2];
  for (int i = 0; i < 2; i++) TRY(temporary_create(&t[i], place->path[i], NULL, &file[i]));
  TRY(dump_fill(file, a, atoms, k, d, p));
  for (int i = 0; i < 2; i++) TRY(temporary_close(&t[i], file[i]));
  for (int i = 0; i < 2; i++) TRY(temporary_publish(&t[i]));
  return OK;
}
