/* SPDX-License-Identifier: BSD-3-Clause
 * The hash goes on as long as the bytes that are read follow those before; what is read again is
 * left out, so that blocks may overlap. */
#include "io/h5/digest.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

static const char hash_name[] = "sha256", zeros_name[] = "zero_chunks";

int h5_hash_names(const char *attribute)
{
  return strcmp(attribute, hash_name) == 0 || strcmp(attribute, zeros_name) == 0;
}

static int digest_alloc(struct h5_digest **digest)
{
  *digest = calloc(1, sizeof **digest);
  CHECK(*digest, ERR_MEMORY, "cannot allocate a hash");
  return OK;
}

int h5_digest_begin(struct h5_digest **digest)
{
  TRY(digest_alloc(digest));
  TRY(sha256_begin(&(*digest)->hash));
  return OK;
}

int h5_digest_write(struct h5_digest *digest, const void *bytes, size_t length)
{
  TRY(sha256_add(&digest->hash, bytes, length));
  digest->next += (gidx)length;
  return OK;
}

/* text[SHA256_HEX] <- the hash of all bytes so far, which ends it. */
static int hash_end(struct h5_digest *digest, char *text)
{
  unsigned char raw[SHA256_BYTES];
  TRY(sha256_end(&digest->hash, raw));
  sha256_hex(raw, text);
  return OK;
}

int h5_digest_end(struct h5_digest *digest, const char *path, const char *object, int64_t dataset)
{
  TRY(hash_end(digest, digest->wanted));
  herr_t done = h5_attribute_put_hash(dataset, hash_name, digest->wanted);
  if (done >= 0)
    done = h5_attribute_put(dataset, zeros_name, H5T_STD_I64LE, H5T_NATIVE_INT64, -1,
                            &digest->zero_chunks);
  TRY_H5(done, ERR_IO, "cannot write the hash of '%s' of '%s'", object, path);
  return OK;
}

static int digest_read(const struct h5_file *f, const char *object, struct h5_digest *digest)
{
  TRY(h5_read_text(f, object, hash_name, digest->wanted, sizeof digest->wanted));
  TRY(h5_read_long(f, object, zeros_name, &digest->zero_chunks));
  if (!f->is_hashed) TRY(sha256_begin(&digest->hash));
  return OK;
}

int h5_digest_open(const struct h5_file *f, const char *object, gidx bytes,
                   struct h5_digest **digest)
{
  int there;
  *digest = NULL;
  if (f->version < H5_SEALED_FROM) return OK;
  TRY(h5_attribute_exists(f, object, hash_name, &there));
  if (!there) return OK;
  TRY(digest_alloc(digest));
  (*digest)->end = bytes;
  int status = digest_read(f, object, *digest);
  if (status) h5_digest_free(digest);
  if (status) return status_pass(status, __FILE__, __LINE__);
  return OK;
}

void h5_digest_chunks(const struct h5_digest *digest, struct h5_chunks *chunks)
{
  chunks->is_sealed = digest != NULL;
  chunks->has_zeros = !digest || digest->zero_chunks > 0;
}

int h5_digest_read(struct h5_digest *digest, const char *path, const char *object, gidx first,
                   size_t length, const void *bytes)
{
  char found[SHA256_HEX];
  gidx end = first + (gidx)length;
  if (!digest || !digest->hash.context || end <= digest->next) return OK;
  if (first > digest->next) {
    sha256_free(&digest->hash);
    return OK;
  }
  TRY(sha256_add(&digest->hash, (const char *)bytes + (digest->next - first),
                 (size_t)(end - digest->next)));
  digest->next = end;
  if (end < digest->end) return OK;
  TRY(hash_end(digest, found));
  CHECK(strcmp(found, digest->wanted) == 0, ERR_INPUT,
        "'%s' of '%s' is not what was written: its SHA-256 is %s, not %s" ANEW, object, path, found,
        digest->wanted);
  return OK;
}

void h5_digest_free(struct h5_digest **digest)
{
  if (*digest) sha256_free(&(*digest)->hash);
  free(*digest);
  *digest = NULL;
}
