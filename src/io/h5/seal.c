/* SPDX-License-Identifier: BSD-3-Clause
 * The hash goes on as long as the bytes that are read follow those before; what is read again is
 * left out, so that blocks may overlap. */
#include "io/h5/seal.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

static const char hash_name[] = "sha256", zeros_name[] = "zero_chunks";

int h5_hash_names(const char *attribute)
{
  return strcmp(attribute, hash_name) == 0 || strcmp(attribute, zeros_name) == 0;
}

static int seal_alloc(struct h5_seal **seal)
{
  *seal = calloc(1, sizeof **seal);
  CHECK(*seal, ERR_MEMORY, "cannot allocate a hash");
  return OK;
}

int h5_seal_begin(struct h5_seal **seal)
{
  TRY(seal_alloc(seal));
  TRY(sha256_begin(&(*seal)->hash));
  return OK;
}

int h5_seal_write(struct h5_seal *seal, const void *bytes, size_t length)
{
  TRY(sha256_add(&seal->hash, bytes, length));
  seal->next += (gidx)length;
  return OK;
}

/* text[SHA256_HEX] <- the hash of all bytes so far, which ends it. */
static int hash_end(struct h5_seal *seal, char *text)
{
  unsigned char digest[SHA256_BYTES];
  TRY(sha256_end(&seal->hash, digest));
  sha256_hex(digest, text);
  return OK;
}

int h5_seal_end(struct h5_seal *seal, const char *path, const char *object, int64_t dataset)
{
  TRY(hash_end(seal, seal->wanted));
  herr_t done = h5_attribute_put_hash(dataset, hash_name, seal->wanted);
  if (done >= 0)
    done = h5_attribute_put(dataset, zeros_name, H5T_STD_I64LE, H5T_NATIVE_INT64, -1,
                            &seal->zero_chunks);
  TRY_H5(done, ERR_IO, "cannot write the hash of '%s' of '%s'", object, path);
  return OK;
}

static int seal_read(const struct h5_file *f, const char *object, struct h5_seal *seal)
{
  TRY(h5_read_text(f, object, hash_name, seal->wanted, sizeof seal->wanted));
  TRY(h5_read_long(f, object, zeros_name, &seal->zero_chunks));
  if (!f->is_hashed) TRY(sha256_begin(&seal->hash));
  return OK;
}

int h5_seal_open(const struct h5_file *f, const char *object, gidx bytes, struct h5_seal **seal)
{
  int there;
  *seal = NULL;
  if (f->version < H5_SEALED_FROM) return OK;
  TRY(h5_attribute_exists(f, object, hash_name, &there));
  if (!there) return OK;
  TRY(seal_alloc(seal));
  (*seal)->end = bytes;
  int status = seal_read(f, object, *seal);
  if (status) h5_seal_free(seal);
  if (status) return status_pass(status, __FILE__, __LINE__);
  return OK;
}

void h5_seal_chunks(const struct h5_seal *seal, struct h5_chunks *chunks)
{
  chunks->is_sealed = seal != NULL;
  chunks->has_zeros = !seal || seal->zero_chunks > 0;
}

int h5_seal_read(struct h5_seal *seal, const char *path, const char *object, gidx first,
                 size_t length, const void *bytes)
{
  char found[SHA256_HEX];
  gidx end = first + (gidx)length;
  if (!seal || !seal->hash.context || end <= seal->next) return OK;
  if (first > seal->next) {
    sha256_free(&seal->hash);
    return OK;
  }
  TRY(sha256_add(&seal->hash, (const char *)bytes + (seal->next - first),
                 (size_t)(end - seal->next)));
  seal->next = end;
  if (end < seal->end) return OK;
  TRY(hash_end(seal, found));
  CHECK(strcmp(found, seal->wanted) == 0, ERR_INPUT,
        "'%s' of '%s' is not what was written: its SHA-256 is %s, not %s" ANEW, object, path, found,
        seal->wanted);
  return OK;
}

void h5_seal_free(struct h5_seal **seal)
{
  if (*seal) sha256_free(&(*seal)->hash);
  free(*seal);
  *seal = NULL;
}
