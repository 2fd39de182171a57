/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: products and gradients of matrices that are stored as bf16 or f16 have the bits of those
 * of f32 matrices with the same numbers.  It does not matter which matrices are stored so and how
 * their lines are aligned, with wgmma or with mma.sync.  A stored result is the f32 result,
 * rounded.  With SMALL=1 there are few shapes. */
#include "base/half.h"
#include "triad_case.h"

static const struct device_test mma = {.mma = 1};
static const struct device_test bands = {.band = 128};
static const struct how hows[] = {{.kind = "cuda", .variant = "auto", .threads = 1},
                                  {.kind = "cuda", .variant = "auto", .threads = 1, .test = &bands},
                                  {.kind = "cuda", .variant = "auto", .threads = 1, .test = &mma}};
static const enum precision precisions[] = {PRECISION_BF16, PRECISION_F16};

/* A matrix as f32 and in a 16-bit precision.  Between its lines there are NaNs. */
struct matrix {
  idx lines, numbers;
  gidx stride;
  float *wide;
  uint16_t *stored;
};

/* x[m][k], w[k][n], dy[m][n].  Lines have gaps between them, and the first number of a matrix is
 * number `shift` of its memory. */
struct stored_case {
  struct triad_shape z;
  gidx shift;
  struct matrix x, w, dy;
  float *bias, *start, *wanted, *got; /* wanted, got: as large as the largest result */
  uint16_t *got_stored;
  struct arena arena;
};

static uint16_t bits_of(float x, enum precision precision)
{
  return precision == PRECISION_BF16 ? bf16_bits(x) : f16_bits(x);
}

static struct matrix matrix_make(struct arena *arena, idx lines, idx numbers, idx gap, gidx shift,
                                 uint64_t stream, enum triad_values kind, enum precision precision)
{
  struct matrix m = {lines, numbers, numbers + gap, NULL, NULL};
  gidx all = shift + lines * m.stride;
  if (arena_alloc(arena, &m.wide, all, sizeof *m.wide) ||
      arena_alloc(arena, &m.stored, all, sizeof *m.stored))
    return m;
  for (gidx i = 0; i < all; i++) {
    int is_there = i >= shift && (i - shift) % m.stride < numbers;
    m.wide[i] = is_there ? precision_round(triad_value(stream, i, kind), precision) : NAN;
    m.stored[i] = bits_of(m.wide[i], precision);
  }
  m.wide += shift;
  m.stored += shift;
  return m;
}

static void case_make(struct stored_case *c, struct triad_shape z, idx gap, gidx shift,
                      enum triad_values kind, enum precision precision)
{
  gidx m = z.m, k = z.k, n = z.n, most = imax(imax(m * k, m * n), k * n);
  *c = (struct stored_case){.z = z, .shift = shift};
  c->x = matrix_make(&c->arena, z.m, z.k, gap, shift, 1, kind, precision);
  c->w = matrix_make(&c->arena, z.k, z.n, gap, shift, 2, kind, precision);
  c->dy = matrix_make(&c->arena, z.m, z.n, gap, shift, 3, kind, precision);
  ok(!arena_alloc(&c->arena, &c->bias, n, sizeof *c->bias) &&
         !arena_alloc(&c->arena, &c->start, k * n, sizeof *c->start) &&
         !arena_alloc(&c->arena, &c->wanted, most, sizeof *c->wanted) &&
         !arena_alloc(&c->arena, &c->got, most, sizeof *c->got) &&
         !arena_alloc(&c->arena, &c->got_stored, most, sizeof *c->got_stored),
     "memory");
  for (gidx j = 0; j < n; j++) c->bias[j] = triad_value(4, j, VALUES_NORMAL);
  for (gidx i = 0; i < k * n; i++) c->start[i] = triad_value(5, i, VALUES_NORMAL);
}

/* Copy a matrix to the device.  It begins at number `shift` of its memory, as in the case. */
static const float *matrix_put(struct triad_side *s, const struct matrix *m, gidx shift,
                               int is_stored)
{
  gidx numbers = shift + (m->lines - 1) * m->stride + m->numbers;
  if (is_stored) {
    uint16_t *at = side_put(s, m->stored - shift, numbers * (gidx)sizeof *at);
    return at ? (const float *)(const void *)(at + shift) : NULL;
  }
  float *at = side_put(s, m->wide - shift, numbers * (gidx)sizeof *at);
  return at ? at + shift : NULL;
}

/* Run the forward or the back product.  Results have no gaps between lines. */
static int product_run(struct device *dev, enum precision precision, const struct stored_case *c,
                       int is_back, struct tensor_stored stored, float *y)
{
  struct triad_side s = {.dev = dev};
  const struct matrix *left = is_back ? &c->dy : &c->x;
  idx n = is_back ? c->z.k : c->z.n;
  const float *x = matrix_put(&s, left, c->shift, stored.left);
  const float *w = matrix_put(&s, &c->w, c->shift, stored.right);
  struct triad_weights weights = {w, is_back ? 1 : c->w.stride, is_back ? c->w.stride : 1};
  struct triad_product p = {x, weights, NULL, NULL, left->stride, n, c->z.m, left->numbers, n};
  if (!is_back) p.bias = side_put(&s, c->bias, n * (gidx)sizeof *c->bias);
  void *work = side_work(&s, device_tensor_product_bytes(dev, precision, &p, stored));
  if (stored.result)
    p.y = side_put(&s, c->got_stored, (gidx)c->z.m * n * (gidx)sizeof *c->got_stored);
  else
    p.y = side_put(&s, y, (gidx)c->z.m * n * (gidx)sizeof *y);
  if (!s.status) s.status = device_tensor_product(dev, precision, &p, stored, work);
  return side_end(&s, 1);
}

static int gradient_run(struct device *dev, enum precision precision, const struct stored_case *c,
                        struct tensor_stored stored, float *dw)
{
  struct triad_side s = {.dev = dev};
  idx k = c->z.k, n = c->z.n;
  const float *x = matrix_put(&s, &c->x, c->shift, stored.left);
  const float *dy = matrix_put(&s, &c->dy, c->shift, stored.right);
  struct triad_gradient g = {x, dy, NULL, c->x.stride, c->dy.stride, n, c->z.m, k, n};
  void *work = side_work(&s, device_tensor_gradient_bytes(dev, precision, &g, stored));
  memcpy(dw, c->start, (size_t)k * (size_t)n * sizeof *dw);
  g.dw = side_put(&s, dw, (gidx)k * n * (gidx)sizeof *dw);
  if (!s.status) s.status = device_tensor_gradient(dev, precision, &g, stored, work);
  return side_end(&s, 1);
}

/* Is a stored result the f32 result, rounded? */
static int stored_same(const uint16_t *got, const float *wanted, gidx count,
                       enum precision precision)
{
  for (gidx i = 0; i < count; i++)
    if (got[i] != (wanted[i] == wanted[i]
                       ? bits_of(precision_round(wanted[i], precision), precision)
                       : 0x7fff))
      return 0;
  return 1;
}

static void product_check(struct device *dev, enum precision precision, struct stored_case *c,
                          int is_back)
{
  gidx count = (gidx)c->z.m * (is_back ? c->z.k : c->z.n);
  struct tensor_stored none = {0};
  int wanted = product_run(dev, precision, c, is_back, none, c->wanted), same = !wanted;
  for (int which = 1; which < 8 && same; which++) {
    struct tensor_stored stored = {which & 1, which >> 1 & 1, which >> 2};
    memset(c->got, 0, (size_t)count * sizeof *c->got);
    memset(c->got_stored, 0, (size_t)count * sizeof *c->got_stored);
    int status = product_run(dev, precision, c, is_back, stored, c->got);
    same = !status && (stored.result ? stored_same(c->got_stored, c->wanted, count, precision)
                                     : !memcmp(c->got, c->wanted, (size_t)count * sizeof *c->got));
    if (!same) printf("# stored: %d %d %d\n", stored.left, stored.right, stored.result);
  }
  ok(same, "%s: %d x %d x %d, lines of x %lld apart: %s", is_back ? "back" : "forward", c->z.m,
     c->z.k, c->z.n, (long long)c->x.stride, status_message());
  status_clear();
}

static void gradient_check(struct device *dev, enum precision precision, struct stored_case *c)
{
  gidx count = (gidx)c->z.k * c->z.n;
  struct tensor_stored none = {0};
  int same = !gradient_run(dev, precision, c, none, c->wanted);
  for (int which = 1; which < 4 && same; which++) {
    struct tensor_stored stored = {which & 1, which >> 1, 0};
    same = !gradient_run(dev, precision, c, stored, c->got) &&
           !memcmp(c->got, c->wanted, (size_t)count * sizeof *c->got);
    if (!same) printf("# stored: %d %d\n", stored.left, stored.right);
  }
  ok(same, "gradient: %d x %d x %d, lines of x %lld apart: %s", c->z.m, c->z.k, c->z.n,
     (long long)c->x.stride, status_message());
  status_clear();
}

/* Lines at multiples of 16 bytes or not, whole tiles or not, and gradients of several chunks. */
static void check_bits(struct device *dev, enum precision precision)
{
  static const struct {
    struct triad_shape z;
    idx gap, shift;
  } uses[] = {{{384, 256, 320}, 0, 0},  {{2176, 640, 64}, 0, 0}, {{130, 72, 264}, 0, 0},
              {{33, 64, 40}, 24, 8},    {{1, 8, 8}, 0, 0},       {{70, 31, 129}, 0, 0},
              {{1100, 200, 136}, 0, 0}, {{300, 136, 520}, 8, 0}, {{260, 96, 96}, 0, 3},
              {{3, 1000, 250}, 6, 0},   {{1, 1, 1}, 0, 0},       {{2500, 264, 72}, 0, 0},
              {{1024, 128, 256}, 0, 0}, {{17, 2056, 8}, 0, 0},   {{8, 8, 3000}, 0, 0},
              {{4096, 640, 776}, 0, 0}};
  struct stored_case c;
  claim_begin("%s: stored operands and results give the bits of operands in float32",
              precision_name(precision));
  for (int i = 0; i < 2 * LENGTH(uses); i++) {
    if (is_small() && (i / 2 >= 7 || i % 2)) continue;
    case_make(&c, uses[i / 2].z, uses[i / 2].gap, uses[i / 2].shift,
              i % 2 ? VALUES_WILD : VALUES_NORMAL, precision);
    product_check(dev, precision, &c, 0);
    product_check(dev, precision, &c, 1);
    gradient_check(dev, precision, &c);
    arena_free(&c.arena);
  }
  claim_end();
}

/* With wgmma, two stored operands whose lines are aligned are not copied. */
static void check_work(struct device *dev, const struct how *how)
{
  int is_wgmma = !(how->test && how->test->mma) &&
                 (strstr(dev->variant, "H100") || strstr(dev->variant, "H200"));
  static uint16_t x[64];
  const float *at = (const float *)(((uintptr_t)x + 15) / 16 * 16);
  struct tensor_stored both = {1, 1, 1}, one = {1, 0, 1};
  struct triad_product p = {at, {at, 8, 1}, NULL, NULL, 8, 8, 2, 8, 8};
  claim_begin("stored operands with aligned lines need no work space if wgmma is used");
  ok((device_tensor_product_bytes(dev, PRECISION_BF16, &p, both) == 0) == is_wgmma, "both");
  ok(device_tensor_product_bytes(dev, PRECISION_BF16, &p, one) > 0, "only one operand is stored");
  p.x_stride = 9;
  ok(device_tensor_product_bytes(dev, PRECISION_BF16, &p, both) > 0, "lines that are not aligned");
  claim_end();
}

static void check_refused(struct device *dev)
{
  float x[4] = {0};
  struct tensor_stored both = {1, 1, 0}, result = {0, 0, 1};
  const struct triad_product p = {x, {x, 1, 1}, NULL, x, 1, 1, 1, 1, 1};
  const struct triad_gradient g = {x, x, x, 1, 1, 1, 1, 1, 1};
  claim_begin("stored tf32, stored gradients and stored f32 are refused");
  ok(device_tensor_product(dev, PRECISION_TF32, &p, both, NULL) == ERR_INTERNAL, "%s",
     status_message());
  ok(device_tensor_gradient(dev, PRECISION_BF16, &g, result, NULL) == ERR_INTERNAL, "%s",
     status_message());
  ok(device_tensor_product(dev, PRECISION_F32, &p, both, NULL) == ERR_INTERNAL, "%s",
     status_message());
  status_clear();
  claim_end();
}

static void check_form(const struct how *how)
{
  struct device dev = {0};
  struct device_options options = how_options(how, 1, 1, 0);
  ok(device_open(&dev, &options) == OK, "a GPU: %s", status_message());
  printf("# %s, %s\n", dev.variant,
         !how->test       ? "the kernels that jobs run"
         : how->test->mma ? "mma.sync"
                          : "rows are narrowed beside products");
  for (int i = 0; i < LENGTH(precisions); i++) check_bits(&dev, precisions[i]);
  check_work(&dev, how);
  check_refused(&dev);
  device_close(&dev);
}

int main(void)
{
  if (!gpu_present()) return done_testing();
  for (int i = 0; i < LENGTH(hows); i++) check_form(&hows[i]);
  return done_testing();
}
