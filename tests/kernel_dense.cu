/* SPDX-License-Identifier: BSD-3-Clause
 * Runs the kernel dense_factor with the threads of kernel_threads.h, for test_kernel_races.py.
 * Compares the columns of a matrix's first panel with plain loops, bit for bit, and prints how many
 * cases differ.
 *
 * Its argument: 1 to run threads backward. */
#include "kernel_threads.h"

#include "dense_factor.cu"

enum kind { USUAL, BAD_PIVOT, TINY, ZEROS, KINDS };

static unsigned draws;
static double number_draw(void)
{
  return (double)((draws = draws * 1664525u + 1013904223u) >> 8) / 8388608. - 1;
}

/* The lower triangle of a matrix, column-major. */
static std::vector<double> matrix_make(int n, kind which)
{
  std::vector<double> s((size_t)(n * n));
  for (int j = 0; j < n; j++)
    for (int i = j; i < n; i++) s[(size_t)(i + j * n)] = number_draw() + (i == j) * n;
  if (which == BAD_PIVOT && n > 9) s[(size_t)(9 + 9 * n)] = -1;
  for (double &x : s) x *= which == TINY ? 1e-200 : 1; /* roots are then not usual (root.h) */
  for (int i = 1; i < n && which == ZEROS; i++) s[(size_t)i] = i % 3 ? -0.0 : i % 2 * 1e-310;
  return s;
}

/* Factor the first `width` columns by plain loops; returns the first bad pivot, or n. */
static int panel_factor(std::vector<double> &s, int n, int width, std::vector<double> &pivots)
{
  for (int j = 0; j < width; j++) {
    double *own = &s[(size_t)(j * n)];
    for (int i = j; i < n; i++)
      for (int k = 0; k < j; k++)
        own[i] = fma(-s[(size_t)(i + k * n)], s[(size_t)(j + k * n)], own[i]);
    double pivot = pivots[(size_t)j] = own[j];
    if (!(pivot > 0 && pivot <= LARGEST)) return j;
    own[j] = sqrt(pivot);
    for (int i = j + 1; i < n; i++) own[i] /= own[j];
  }
  return n;
}

static int is_equal(double a, double b)
{
  return bits_as<long long>(a) == bits_as<long long>(b);
}

static int differs(int n, kind which, int backward)
{
  int width = n < FACTOR_WIDTH ? n : FACTOR_WIDTH, good = n, is_other;
  int blocks = (n - width + FACTOR_ROWS - 1) / FACTOR_ROWS;
  std::vector<double> s = matrix_make(n, which), wanted = s, pivots((size_t)n), all = pivots;
  std::vector<double> corners(FACTOR_WIDTH * (FACTOR_WIDTH + 1));
  factor_args a = {s.data(), n, n, 0, corners.data(), pivots.data(), &good};
  memset(memory, 0xff, sizeof memory); /* NaN, as a GPU's shared memory may hold at the start */
  launch(blocks ? (unsigned)blocks : 1, FACTOR_THREADS, backward, [&] { dense_factor(a); });
  int known = panel_factor(wanted, n, width, all);
  is_other = good != known;
  for (int j = 0; j < (known < n ? known + 1 : width); j++)
    is_other |= !is_equal(pivots[(size_t)j], all[(size_t)j]);
  for (int j = 0; j < width && known == n; j++)
    for (int i = j; i < n; i++)
      is_other |= !is_equal(i < FACTOR_WIDTH ? corners[(size_t)(i + j * FACTOR_WIDTH)]
                                             : s[(size_t)(i + j * n)],
                            wanted[(size_t)(i + j * n)]);
  return is_other;
}

int main(int argc, char **argv)
{
  static const int sizes[] = {1, 5, 16, 17, 63, 64, 65, 150};
  int others = 0;
  for (int n : sizes)
    for (int which = 0; which < KINDS; which++)
      others += differs(n, (kind)which, argc > 1 && atoi(argv[1]));
  printf("differ %d\n", others);
}
