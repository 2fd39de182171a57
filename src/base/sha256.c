/* SPDX-License-Identifier: BSD-3-Clause
 * One call of OpenSSL's EVP interface, whose error text becomes the failure's message. */
#include "base/sha256.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "base/status.h"

int sha256(const void *bytes, size_t length, unsigned char *digest)
{
  unsigned int written = 0;
  int good = EVP_Digest(bytes, length, digest, &written, EVP_sha256(), NULL);
  CHECK(good == 1 && written == SHA256_BYTES, ERR_INTERNAL, "SHA-256 failed: %s",
        ERR_error_string(ERR_get_error(), NULL));
  return OK;
}

void sha256_hex(const unsigned char *digest, char *text)
{
  for (int i = 0; i < SHA256_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
}
