/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: dense operations on a GPU have the bits of the plain loops: factor, pivots, inverse,
 * entries and products, for sizes at and around those of tiles and panels.  A bad pivot is found
 * where the plain loops find it. */
#include "device_dense.h"

int main(void)
{
  static const idx sizes[] = {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 66, 79, 127, 128, 129, 130, 191,
                              200, 513, 530,
                              /* Large sizes, left out if is_small(): */
                              256, 257, 383, 512, 575, 576, 577, 640, 1000, 1024, 1025, 1537, 2100};
  enum { SMALL_SIZES = 20 };
  int count = is_small() ? SMALL_SIZES : LENGTH(sizes);
  struct device dev = {0};
  struct device_options options = how_options(&how_cuda, 1, 1, 0);
  struct dense_way way = {&dev, DENSE_MAX_PANEL};
  if (!gpu_present()) return done_testing();
  if (!ok(device_open(&dev, &options) == OK, "a GPU: %s", status_message())) return done_testing();
  for (int i = 0; i < count; i++) {
    idx n = sizes[i];
    ok(dense_check(n, DENSE_DEFINITE, &way, 1), "n = %d: factor, pivots, inverse, entries", n);
    ok(dense_check(n, DENSE_INDEFINITE, &way, 1) && dense_check(n, DENSE_NAN, &way, 1),
       "n = %d: the bad pivot", n);
  }
  for (int i = 4; i < count && sizes[i] <= 600; i += 5)
    ok(products_check(&way, sizes[i]) && triangles_check(&way, sizes[i]), "n = %d: products",
       sizes[i]);
  device_close(&dev);
  return done_testing();
}
