/* SPDX-License-Identifier: BSD-3-Clause
 * The list of objects is walked once for each of the two hashes; files have few attributes. */
#include "io/attributes.h"

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/status.h"
#include "io/h5/listing.h"
#include "io/h5/values.h"

static const char hash_name[] = "attributes_sha256";

int hash_names(const char *attribute)
{
  return strcmp(attribute, hash_name) == 0 || h5_hash_names(attribute);
}

int name_is_hash(const char *attribute)
{
  size_t length = strlen(attribute), end = strlen("_hash");
  return length > end && strcmp(attribute + length - end, "_hash") == 0;
}

int path_is_run(const char *path)
{
  return strcmp(path, "/run") == 0 || strncmp(path, "/run/", 5) == 0;
}

static int string_add(struct sha256 *hash, const char *text)
{
  TRY(sha256_add(hash, text, strlen(text) + 1));
  return OK;
}

/* Hash item i of the block: a text followed by a zero byte, other items as they are stored. */
static int item_add(struct sha256 *hash, const struct h5_values *v, gidx i)
{
  char *text = NULL;
  size_t length = 0;
  if (!v->is_text) return sha256_add(hash, v->block + (size_t)i * v->bytes, v->bytes);
  int status = h5_values_text(v, i, &text, &length);
  if (status == OK) status = sha256_add(hash, text, length + 1);
  free(text);
  return status;
}

/* Add an attribute that was opened. */
static int values_add(struct sha256 *hash, const char *path, const char *name, struct h5_values *v)
{
  TRY(string_add(hash, path));
  TRY(string_add(hash, name));
  if (!v->is_readable) return OK;
  for (;;) {
    TRY(h5_values_next(v));
    if (v->count == 0) return OK;
    for (gidx i = 0; i < v->count; i++) TRY(item_add(hash, v, i));
  }
}

static int attributes_add(const struct h5_file *f, struct sha256 *hash, const char *path)
{
  struct h5_listing names = {0};
  int status = h5_list_attributes(f, path, &names);
  for (gidx i = 0; i < names.count && status == OK; i++) {
    const char *name = names.entries[i].path;
    struct h5_values v;
    if (strcmp(name, hash_name) == 0) continue;
    status = h5_values_open(f, path, name, &v);
    if (status == OK) status = values_add(hash, path, name, &v);
    h5_values_close(&v);
  }
  h5_listing_free(&names);
  return status;
}

/* text[SHA256_HEX] <- the hash of the attributes in /run, or of those outside. */
static int part_hash(const struct h5_file *f, const struct h5_listing *list, int in_run, char *text)
{
  struct sha256 hash = {0};
  unsigned char digest[SHA256_BYTES];
  int status = sha256_begin(&hash);
  for (gidx i = 0; i < list->count && status == OK; i++) {
    const struct h5_entry *e = &list->entries[i];
    if (e->kind <= ENTRY_TYPE && path_is_run(e->path) == in_run)
      status = attributes_add(f, &hash, e->path);
  }
  if (status == OK) status = sha256_end(&hash, digest);
  sha256_free(&hash);
  if (status == OK) sha256_hex(digest, text);
  return status;
}

/* hashes[0], hashes[1] <- the hash of the attributes outside /run, and of those in it. */
static int both_hash(const struct h5_file *f, char hashes[2][SHA256_HEX])
{
  struct h5_listing list = {0};
  int status = h5_list(f, &list);
  for (int in_run = 0; in_run < 2 && status == OK; in_run++)
    status = part_hash(f, &list, in_run, hashes[in_run]);
  h5_listing_free(&list);
  return status;
}

int attributes_digest(const struct h5_file *f)
{
  char hashes[2][SHA256_HEX];
  TRY(h5_flush(f));
  TRY(both_hash(f, hashes));
  TRY(h5_attribute_hash(f, "/", hash_name, hashes[0]));
  TRY(h5_attribute_hash(f, "/run", hash_name, hashes[1]));
  return OK;
}

int attributes_check(const struct h5_file *f)
{
  char hashes[2][SHA256_HEX], stored[SHA256_HEX];
  TRY(both_hash(f, hashes));
  for (int in_run = 0; in_run < 2; in_run++) {
    TRY(h5_read_text(f, in_run ? "/run" : "/", hash_name, stored, sizeof stored));
    CHECK(
        strcmp(stored, hashes[in_run]) == 0, ERR_INPUT,
        "the attributes %s /run of '%s' are not what was written: their SHA-256 is %s, not %s" ANEW,
        in_run ? "in" : "outside", f->path, hashes[in_run], stored);
  }
  return OK;
}
