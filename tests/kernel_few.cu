/* SPDX-License-Identifier: BSD-3-Clause
 * Runs the kernel attention_few with the threads of kernel_threads.h, for test_kernel_races.py.
 * Prints a hash of its results for whole and incomplete blocks, several shards, windows, and
 * several queries.
 *
 * Needs the -D of attention_few.cu; CELLS is 0, f32.  Its argument: 1 to run threads backward. */
#include "kernel_threads.h"

#include "attention_few.cu"

static unsigned draws;
static std::vector<float> floats_make(int count)
{
  std::vector<float> out((size_t)count);
  for (float &x : out) x = (float)((draws = draws * 1664525u + 1013904223u) >> 8) / 8388608.f - 1;
  return out;
}

static void floats_hash(unsigned long long *hash, const std::vector<float> &x)
{
  for (float value : x) *hash = (*hash ^ __float_as_uint(value)) * 0x100000001b3ull;
}

/* Run the kernel for one sequence, whose last `queries` positions have queries: one query of FEW
 * heads, or FEW queries of one head. */
static void sequence_run(int positions, int queries, int window, int backward,
                         unsigned long long *hash)
{
  int heads = queries > 1 ? 1 : FEW, rows = queries * heads, done = 0;
  int last = (positions + WALK_SHARD - 1) / WALK_SHARD, from = positions - queries - window + 1;
  int first = window && from > 0 ? from / WALK_SHARD : 0, shards = last - first;
  std::vector<float> q = floats_make(rows * HEAD_D), k = floats_make(positions * HEAD_D);
  std::vector<float> v = floats_make(positions * HEAD_DV), m((size_t)(rows * shards)), l = m;
  std::vector<float> parts((size_t)(rows * shards * PART_COLUMNS)), lse((size_t)rows);
  std::vector<float> out((size_t)(rows * HEAD_DV));
  std::vector<softmax_task> tasks;
  softmax_sequence s = {};
  attention_args a = {};
  for (int i = first; i < last; i++) tasks.push_back({0, 0, 0, i, 0, shards});
  s.n_q = queries, s.n_kv = positions, s.at = positions - queries;
  s.first_shard = first, s.shards = shards;
  a.q = q.data(), a.k = k.data(), a.v = v.data(), a.sequences = &s, a.tasks = tasks.data();
  a.done = &done, a.part_m = m.data(), a.part_l = l.data(), a.part = parts.data();
  a.out = out.data(), a.lse = lse.data(), a.heads = a.group = heads, a.kv_heads = a.size = 1;
  a.causal = 1, a.window = window, a.inner = 1, a.exponent = 0.2f;
  memset(memory, 0xff, sizeof memory); /* NaN, as a GPU's shared memory may hold at the start */
  launch((unsigned)shards, WALK_THREADS, backward, [&] { attention_few(a); });
  floats_hash(hash, out);
  floats_hash(hash, lse);
}

int main(int argc, char **argv)
{
  static const int kinds[][3] = {{1, 1, 0},    {64, 1, 0},     {65, 1, 0},     {330, 1, 0},
                                 {200, 1, 70}, {1090, FEW, 0}, {1100, FEW, 90}};
  unsigned long long hash = 0xcbf29ce484222325ull;
  for (const int *kind : kinds)
    sequence_run(kind[0], kind[1], kind[2], argc > 1 && atoi(argv[1]), &hash);
  printf("hash %016llx\n", hash);
}
