/* SPDX-License-Identifier: BSD-3-Clause
 * The hash is computed by OpenSSL's EVP interface; its error text becomes our message. */
#include "base/sha256.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "base/status.h"

static int done_check(int good)
{
  CHECK(good == 1, ERR_INTERNAL, "SHA-256 failed: %s", ERR_error_string(ERR_get_error(), NULL));
  return OK;
}

int sha256(const void *bytes, size_t length, unsigned char *digest)
{
  unsigned int written = 0;
  int good = EVP_Digest(bytes, length, digest, &written, EVP_sha256(), NULL);
  TRY(done_check(good == 1 && written == SHA256_BYTES));
  return OK;
}

int sha256_begin(struct sha256 *h)
{
  h->context = EVP_MD_CTX_new();
  CHECK(h->context, ERR_MEMORY, "cannot allocate a hash");
  TRY(done_check(EVP_DigestInit_ex(h->context, EVP_sha256(), NULL)));
  return OK;
}

int sha256_add(struct sha256 *h, const void *bytes, size_t length)
{
  TRY(done_check(EVP_DigestUpdate(h->context, bytes, length)));
  return OK;
}

int sha256_end(struct sha256 *h, unsigned char *digest)
{
  unsigned int written = 0;
  int good = EVP_DigestFinal_ex(h->context, digest, &written);
  sha256_free(h);
  TRY(done_check(good == 1 && written == SHA256_BYTES));
  return OK;
}

void sha256_free(struct sha256 *h)
{
  EVP_MD_CTX_free(h->context);
  h->context = NULL;
}

void sha256_hex(const unsigned char *digest, char *text)
{
  for (int i = 0; i < SHA256_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
}
