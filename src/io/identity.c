/* SPDX-License-Identifier: BSD-3-Clause
 * A table gives the attribute of each hash. */
#include "io/identity.h"

#include <stddef.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"

static const struct {
  const char *name;
  size_t offset;
} hash_rows[IDENTITY_HASHES] = {
    {"rows_hash", offsetof(struct identity, rows)},
    {"dictionary_hash", offsetof(struct identity, dictionary)},
    {"supports_hash", offsetof(struct identity, supports)},
    {"codes_hash", offsetof(struct identity, codes)},
    {"classes_hash", offsetof(struct identity, classes)},
    {"encoder_hash", offsetof(struct identity, encoder)},
};

static uint64_t hash_of(const struct identity *identity, int i)
{
  uint64_t hash;
  memcpy(&hash, (const char *)identity + hash_rows[i].offset, sizeof hash);
  return hash;
}

int identity_write(const struct h5_file *f, const char *group, const struct identity *identity)
{
  for (int i = 0; i < IDENTITY_HASHES; i++) {
    uint64_t hash = hash_of(identity, i);
    if (hash) TRY(h5_attribute_long(f, group, hash_rows[i].name, (gidx)hash));
  }
  return OK;
}

void identity_json(const struct identity *identity, struct json *out)
{
  for (int i = 0; i < IDENTITY_HASHES; i++) {
    uint64_t hash = hash_of(identity, i);
    if (hash) json_hash(out, hash_rows[i].name, hash);
  }
}

int identity_read(const struct h5_file *f, const char *group, struct identity *identity)
{
  *identity = (struct identity){0};
  int there;
  TRY(h5_exists(f, group, &there));
  if (!there) return OK;
  for (int i = 0; i < IDENTITY_HASHES; i++) {
    gidx hash;
    TRY(h5_attribute_exists(f, group, hash_rows[i].name, &there));
    if (!there) continue;
    TRY(h5_read_long(f, group, hash_rows[i].name, &hash));
    memcpy((char *)identity + hash_rows[i].offset, &hash, sizeof hash);
  }
  return OK;
}
