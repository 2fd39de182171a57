/* SPDX-License-Identifier: BSD-3-Clause
 * While reading, bytes are hashed as long as none is skipped; bytes that are read again are not
 * hashed twice, so blocks may overlap.  The single hash of old files is handled as a tree of one
 * leaf, hashed without a leaf's prefix byte. */
#include "io/h5/digest.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "io/h5/leaves.h"

static const char tree_name[] = "sha256_tree", stream_name[] = "sha256",
                  zeros_name[] = "zero_chunks";

int h5_hash_names(const char *attribute)
{
  return strcmp(attribute, tree_name) == 0 || strcmp(attribute, stream_name) == 0 ||
         strcmp(attribute, zeros_name) == 0;
}

static const char *hash_name(const struct h5_file *f)
{
  return f->version < H5_TREE_FROM ? stream_name : tree_name;
}

int h5_digest_begin(struct h5_digest **digest)
{
  *digest = calloc(1, sizeof **digest);
  CHECK(*digest, ERR_MEMORY, "cannot allocate a hash");
  (*digest)->is_tree = 1;
  return OK;
}

int h5_digest_reserve(struct h5_digest *digest, gidx n, unsigned char **leaves)
{
  gidx used = (gidx)digest->tree.leaves, wanted = used + n;
  if (wanted > digest->capacity) {
    gidx capacity = imax(wanted, 2 * digest->capacity);
    unsigned char *more = realloc(digest->leaves, (size_t)capacity * SHA256_BYTES);
    CHECK(more, ERR_MEMORY, "cannot allocate %lld hashes", (long long)capacity);
    digest->leaves = more;
    digest->capacity = capacity;
  }
  *leaves = digest->leaves + used * SHA256_BYTES;
  return OK;
}

int h5_digest_add(struct h5_digest *digest, gidx n)
{
  for (gidx i = 0; i < n; i++)
    TRY(sha256_tree_add(&digest->tree, digest->leaves + digest->tree.leaves * SHA256_BYTES));
  return OK;
}

int h5_digest_end(struct h5_digest *digest, const char *path, const char *object, int64_t dataset)
{
  TRY(sha256_tree_root(&digest->tree, digest->wanted));
  herr_t done = h5_attribute_put_hash(dataset, tree_name, digest->wanted);
  if (done >= 0)
    done = h5_attribute_put(dataset, zeros_name, H5T_STD_I64LE, H5T_NATIVE_INT64, -1,
                            &digest->zero_chunks);
  TRY_H5(done, ERR_IO, "cannot write the hash of '%s' of '%s'", object, path);
  return h5_leaves_write(digest, path, object, dataset);
}

int h5_digest_text(const struct h5_file *f, const char *object, char *text, int capacity)
{
  int there;
  *text = '\0';
  TRY(h5_attribute_exists(f, object, hash_name(f), &there));
  return there ? h5_read_text(f, object, hash_name(f), text, capacity) : OK;
}

/* The bytes that a leaf covers: those of a chunk's entries, or all bytes if there are no chunks or
 * only one; at least 1. */
static gidx leaf_bytes(hid_t dataset, gidx bytes)
{
  hsize_t dims[H5S_MAX_RANK] = {0}, chunk[H5S_MAX_RANK];
  hid_t creation = H5Dget_create_plist(dataset), space = H5Dget_space(dataset);
  int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);
  int is_chunked = creation >= 0 && rank >= 1 && dims[0] > 0 &&
                   H5Pget_layout(creation) == H5D_CHUNKED &&
                   H5Pget_chunk(creation, rank, chunk) == rank && chunk[0] < dims[0];
  if (creation >= 0) H5Pclose(creation);
  if (space >= 0) H5Sclose(space);
  return imax(1, is_chunked ? bytes / (gidx)dims[0] * (gidx)chunk[0] : bytes);
}

static int digest_fill(const struct h5_file *f, const char *object, int64_t dataset, gidx bytes,
                       struct h5_digest *digest)
{
  TRY(h5_read_text(f, object, hash_name(f), digest->wanted, sizeof digest->wanted));
  TRY(h5_read_long(f, object, zeros_name, &digest->zero_chunks));
  digest->is_tree = f->version >= H5_TREE_FROM;
  digest->is_compared = !f->is_hashed;
  digest->end = bytes;
  digest->leaf = digest->is_tree ? leaf_bytes(dataset, bytes) : imax(1, bytes);
  return OK;
}

int h5_digest_open(const struct h5_file *f, const char *object, int64_t dataset, gidx bytes,
                   struct h5_digest **digest)
{
  int there;
  *digest = NULL;
  if (f->version < H5_SEALED_FROM) return OK;
  TRY(h5_attribute_exists(f, object, hash_name(f), &there));
  if (!there) return OK;
  TRY(h5_digest_begin(digest));
  int status = digest_fill(f, object, dataset, bytes, *digest);
  if (status) h5_digest_free(digest);
  if (status) return status_pass(status, __FILE__, __LINE__);
  return OK;
}

gidx h5_digest_leaves(const struct h5_digest *digest)
{
  return digest->end / digest->leaf + (digest->end % digest->leaf > 0);
}

void h5_digest_chunks(const struct h5_digest *digest, struct h5_chunks *chunks)
{
  chunks->is_sealed = digest != NULL;
  chunks->has_zeros = !digest || digest->zero_chunks > 0;
}

/* Hash the next n bytes, which one leaf covers. */
static int leaf_add(struct h5_digest *digest, const char *bytes, gidx n)
{
  unsigned char leaf[SHA256_BYTES];
  if (!digest->hash.context)
    TRY(digest->is_tree ? sha256_leaf_begin(&digest->hash) : sha256_begin(&digest->hash));
  TRY(sha256_add(&digest->hash, bytes, (size_t)n));
  digest->next += n;
  if (digest->next < digest->end && digest->next % digest->leaf) return OK;
  TRY(sha256_end(&digest->hash, leaf));
  return sha256_tree_add(&digest->tree, leaf);
}

int h5_digest_read(struct h5_digest *digest, const char *path, const char *object, gidx first,
                   size_t length, const void *bytes)
{
  char found[SHA256_HEX];
  gidx end = first + (gidx)length;
  if (!h5_digest_hashes(digest) || end <= digest->next) return OK;
  if (first > digest->next) {
    h5_digest_stop(digest);
    return OK;
  }
  while (digest->next < end) {
    gidx left = imin(end - digest->next, digest->leaf - digest->next % digest->leaf);
    TRY(leaf_add(digest, (const char *)bytes + (digest->next - first), left));
  }
  if (end < digest->end) return OK;
  digest->is_compared = 0;
  TRY(sha256_tree_root(&digest->tree, found));
  CHECK(strcmp(found, digest->wanted) == 0, ERR_INPUT,
        "'%s' of '%s' is not what was written: its SHA-256 is %s, not %s" ANEW, object, path, found,
        digest->wanted);
  return OK;
}

void h5_digest_stop(struct h5_digest *digest)
{
  if (!digest) return;
  sha256_free(&digest->hash);
  digest->is_compared = 0;
}

void h5_digest_free(struct h5_digest **digest)
{
  h5_digest_stop(*digest);
  if (*digest) free((*digest)->leaves);
  free(*digest);
  *digest = NULL;
}
