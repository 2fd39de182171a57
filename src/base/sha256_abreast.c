/* SPDX-License-Identifier: BSD-3-Clause
 * FIPS 180-4 by Intel's SHA extensions; Gulley et al., Intel SHA Extensions, 2013, describe their
 * use.  The eight numbers of a state are in two registers, as the instructions need them: a, b, e,
 * f in one, c, d, g, h in the other. */
#include "base/sha256_abreast.h"

#include <stdint.h>
#include <string.h>

#include "base/sha256.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

enum { BLOCK = 64, MOST = 3, ROUNDS = 64, WORDS = 8 };
#define BY_SHA __attribute__((target("sha,sse4.1,ssse3")))
#define INLINE __attribute__((always_inline)) static inline

static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
static const uint32_t begin[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* The state of one hash. */
struct state {
  __m128i abef, cdgh, w[4]; /* w: the last sixteen words of the message schedule */
};

BY_SHA INLINE struct state state_load(const uint32_t *h)
{
  __m128i a = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0xb1);
  __m128i e = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(h + 4)), 0x1b);
  return (struct state){.abef = _mm_alignr_epi8(a, e, 8), .cdgh = _mm_blend_epi16(e, a, 0xf0)};
}

BY_SHA INLINE void state_store(const struct state *s, uint32_t *h)
{
  __m128i a = _mm_shuffle_epi32(s->abef, 0x1b), c = _mm_shuffle_epi32(s->cdgh, 0xb1);
  _mm_storeu_si128((__m128i *)h, _mm_blend_epi16(a, c, 0xf0));
  _mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(c, a, 8));
}

BY_SHA INLINE void words_load(struct state *s, const unsigned char *block)
{
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (int i = 0; i < 4; i++)
    s->w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * i)), swap);
}

/* Rounds 4 r .. 4 r + 3; and compute words of the message schedule for later rounds. */
BY_SHA INLINE void rounds_run(struct state *s, int r)
{
  __m128i *last = &s->w[r % 4], *next = &s->w[(r + 1) % 4];
  __m128i sum = _mm_add_epi32(*last, _mm_loadu_si128((const __m128i *)(constants + 4 * r)));
  s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, sum);
  s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, _mm_shuffle_epi32(sum, 0x0e));
  if (r < 3 || r == ROUNDS / 4 - 1) return;
  __m128i some = _mm_sha256msg1_epu32(*next, s->w[(r + 2) % 4]);
  some = _mm_add_epi32(some, _mm_alignr_epi8(*last, s->w[(r + 3) % 4], 4));
  *next = _mm_sha256msg2_epu32(some, *last);
}

/* Update the hashes h[count]: add to h[i] the n consecutive blocks that begin at at[i]. */
BY_SHA INLINE void blocks_add(uint32_t (*h)[WORDS], int count, const unsigned char *const *at,
                              size_t n)
{
  struct state s[MOST], before[MOST];
  for (int i = 0; i < count; i++) s[i] = state_load(h[i]);
  for (size_t b = 0; b < n; b++) {
    for (int i = 0; i < count; i++) {
      before[i] = s[i];
      words_load(&s[i], at[i] + BLOCK * b);
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROUNDS / 4; r++)
#pragma GCC unroll 3
      for (int i = 0; i < count; i++) rounds_run(&s[i], r);
    for (int i = 0; i < count; i++) {
      s[i].abef = _mm_add_epi32(s[i].abef, before[i].abef);
      s[i].cdgh = _mm_add_epi32(s[i].cdgh, before[i].cdgh);
    }
  }
  for (int i = 0; i < count; i++) state_store(&s[i], h[i]);
}

BY_SHA __attribute__((noinline)) static void two_add(uint32_t (*h)[WORDS],
                                                     const unsigned char *const *at, size_t n)
{
  blocks_add(h, 2, at, n);
}

BY_SHA __attribute__((noinline)) static void three_add(uint32_t (*h)[WORDS],
                                                       const unsigned char *const *at, size_t n)
{
  blocks_add(h, 3, at, n);
}

/* Ask the processor for its features.  In a virtual machine this takes microseconds, so the answer
 * is kept. */
static int features_find(void)
{
  enum { SSSE3 = 1 << 9, SSE41 = 1 << 19, SHA = 1 << 29 };
  unsigned a, b, c, d, sse = SSSE3 | SSE41;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & sse) != sse) return 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & SHA) != 0;
}

int sha256_abreast_has(void)
{
  static _Atomic int known = -1;
  if (known < 0) known = features_find();
  return known;
}

/* end[2 BLOCK] <- the last bytes[count] of a text of `length` bytes, with the padding of SHA-256;
 * returns the number of blocks. */
static size_t end_fill(unsigned char *end, const unsigned char *bytes, size_t count, size_t length)
{
  size_t blocks = count + 9 <= BLOCK ? 1 : 2;
  uint64_t bits = __builtin_bswap64(8 * (uint64_t)length);
  memset(end, 0, 2 * BLOCK);
  memcpy(end, bytes, count);
  end[count] = 0x80;
  memcpy(end + blocks * BLOCK - sizeof bits, &bits, sizeof bits);
  return blocks;
}

/* A leaf is the hash of a zero byte and the part, so the hashed blocks begin one byte before
 * multiples of BLOCK in the part. */
void sha256_abreast(const unsigned char *const *parts, int count, size_t length,
                    unsigned char *const *leaves)
{
  void (*add)(uint32_t(*)[WORDS], const unsigned char *const *, size_t) =
      count == 2 ? two_add : three_add;
  uint32_t h[MOST][WORDS] = {{0}};
  unsigned char own[MOST][2 * BLOCK];
  const unsigned char *at[MOST] = {NULL};
  size_t n = (length + 1) / BLOCK - 1, rest = (length + 1) % BLOCK, blocks = 0;
  for (int i = 0; i < count; i++) {
    memcpy(h[i], begin, sizeof begin);
    own[i][0] = 0;
    memcpy(own[i] + 1, parts[i], BLOCK - 1);
    at[i] = own[i];
  }
  add(h, at, 1);
  for (int i = 0; i < count; i++) at[i] = parts[i] + BLOCK - 1;
  add(h, at, n);
  for (int i = 0; i < count; i++) {
    blocks = end_fill(own[i], parts[i] + length - rest, rest, length + 1);
    at[i] = own[i];
  }
  add(h, at, blocks);
  for (int i = 0; i < count; i++)
    for (int w = 0; w < WORDS; w++) {
      uint32_t word = __builtin_bswap32(h[i][w]);
      memcpy(leaves[i] + 4 * w, &word, sizeof word);
    }
}
#else
int sha256_abreast_has(void)
{
  return 0;
}

void sha256_abreast(const unsigned char *const *parts, int count, size_t length,
                    unsigned char *const *leaves)
{
  (void)parts, (void)count, (void)length, (void)leaves;
}
#endif
