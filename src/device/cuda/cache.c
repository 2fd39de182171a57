/* SPDX-License-Identifier: BSD-3-Clause
 * One file for each image, named after the SHA-256 of its key.
 *
 * A file is a struct header, then the image.  It is written under a temporary name and renamed, so
 * that readers see all of it or nothing. */
#include "device/cuda/cache.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sha256.h"
#include "base/status.h"

struct header {
  char magic[24];
  unsigned char key[SHA256_BYTES], image[SHA256_BYTES];
  uint64_t image_size;
};
static const char magic[24] = "sagitta kernel 2\n";

/* path <- the file for a key's digest; creates the folder.  Returns 0 if there is no folder. */
static int entry_path(const unsigned char *digest, char *path, size_t capacity)
{
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char folder[3072], name[SHA256_HEX];
  int length = base && *base   ? snprintf(folder, sizeof folder, "%s", base)
               : home && *home ? snprintf(folder, sizeof folder, "%s/.cache", home)
                               : 0;
  if (length <= 0 || length >= (int)sizeof folder - 16) return 0;
  mkdir(folder, 0777);
  strcat(folder, "/sagitta");
  if (mkdir(folder, 0777) && errno != EEXIST) return 0;
  sha256_hex(digest, name);
  snprintf(path, capacity, "%s/%s.cubin", folder, name);
  return 1;
}

/* *head, path <- the header of a key's file, without the image, and its path.  Returns 0 if there
 * is no folder, otherwise 1. */
static int entry_of(const char *key, struct header *head, char *path, size_t capacity)
{
  *head = (struct header){.image_size = 0};
  memcpy(head->magic, magic, sizeof magic);
  if (!sha256(key, strlen(key), head->key) && entry_path(head->key, path, capacity)) return 1;
  status_clear();
  log_debug("there is no folder in which compiled kernels can be kept");
  return 0;
}

static int entry_read(FILE *file, const struct header *wanted, struct kernel_image *image)
{
  struct header head;
  unsigned char digest[SHA256_BYTES];
  if (fread(&head, sizeof head, 1, file) != 1 || memcmp(head.magic, magic, sizeof magic)) return 0;
  if (memcmp(head.key, wanted->key, sizeof head.key) || head.image_size > (uint64_t)1 << 30)
    return 0;
  image->size = (size_t)head.image_size;
  image->bytes = malloc(image->size + 1);
  return image->bytes && fread(image->bytes, 1, image->size, file) == image->size &&
         !sha256(image->bytes, image->size, digest) && !memcmp(digest, head.image, sizeof digest);
}

int cache_find(const char *key, struct kernel_image *image)
{
  char path[4096];
  struct header wanted;
  *image = (struct kernel_image){0};
  if (!entry_of(key, &wanted, path, sizeof path)) return 0;
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  int whole = entry_read(file, &wanted, image);
  fclose(file);
  if (whole) return 1;
  log_debug("'%s' is damaged: the kernel is compiled again", path);
  status_clear();
  free(image->bytes);
  *image = (struct kernel_image){0};
  return 0;
}

void cache_store(const char *key, const struct kernel_image *image)
{
  char path[4096], temporary[4160];
  struct header head;
  if (!entry_of(key, &head, path, sizeof path)) return;
  head.image_size = image->size;
  snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
  int good = !sha256(image->bytes, image->size, head.image);
  FILE *file = good ? fopen(temporary, "wb") : NULL;
  good = file && fwrite(&head, sizeof head, 1, file) == 1 &&
         fwrite(image->bytes, 1, image->size, file) == image->size;
  if (file && fclose(file)) good = 0;
  if (good && !rename(temporary, path)) return;
  log_debug("cannot keep a compiled kernel as '%s': %s", path, strerror(errno));
  status_clear();
  unlink(temporary);
}
