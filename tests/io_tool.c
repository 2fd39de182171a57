/* SPDX-License-Identifier: BSD-3-Clause
 * A program that calls functions of src/io for the Python tests: it reads inputs and writes made-up
 * results. */
#include "base/team.h"
#include "io_files.h"

enum { BLOCK_ROWS = 1000 };

/* The largest resident size of this program, in kB.  getrusage() may give that of the parent. */
static long peak(void)
{
  char line[256];
  long kb = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, "VmHWM:", 6) == 0) kb = atol(line + 6);
  if (file) fclose(file);
  return kb;
}

static int rows_copy(const struct rows_input *f, float *values, FILE *out)
{
  for (gidx row = 0; row < f->source.n; row += BLOCK_ROWS) {
    idx n = f->source.n - row < BLOCK_ROWS ? (idx)(f->source.n - row) : BLOCK_ROWS;
    TRY(f->source.read(f->source.self, row, n, values));
    fwrite(values, sizeof *values, (size_t)n * (size_t)f->source.p, out);
  }
  printf("%lld %d %g %ld %s\n", (long long)f->source.n, f->source.p, f->source.row_bytes, peak(),
         f->source.name);
  return OK;
}

static int rows_dump(char **words)
{
  struct rows_input f;
  FILE *out = fopen(words[1], "wb");
  CHECK(out, ERR_CREATE, "cannot create '%s'", words[1]);
  int status = rows_input_open(&f, NULL, words[0]);
  if (status == OK) {
    float *values = calloc((size_t)BLOCK_ROWS * (size_t)f.source.p, sizeof *values);
    status = rows_copy(&f, values, out);
    free(values);
  }
  rows_input_close(&f);
  fclose(out);
  return status;
}

static int atoms_copy(const struct dictionary_input *f, float *values, FILE *out)
{
  TRY(f->source.read(f->source.self, 0, f->source.k, values));
  fwrite(values, sizeof *values, (size_t)f->source.k * (size_t)f->source.d * (size_t)f->source.p,
         out);
  if (f->mean) fwrite(f->mean, sizeof *f->mean, (size_t)f->source.p, out);
  printf("%d %d %d %d\n", f->source.k, f->source.d, f->source.p, f->mean != NULL);
  return OK;
}

static int dictionary_dump(char **words)
{
  struct dictionary_input f;
  FILE *out = fopen(words[1], "wb");
  CHECK(out, ERR_CREATE, "cannot create '%s'", words[1]);
  int status = dictionary_input_open(&f, words[0]);
  if (status == OK) {
    size_t width = (size_t)f.source.d * (size_t)f.source.p;
    float *values = calloc((size_t)f.source.k * width, sizeof *values);
    status = atoms_copy(&f, values, out);
    free(values);
  }
  dictionary_input_close(&f);
  fclose(out);
  return status;
}

/* words: OUT N K S D CODES ROUNDS BLOCK */
static int supports_dump(char **words)
{
  struct made_supports m;
  const real mean[3] = {0.5, -1, 2};
  struct supports_shape shape = {atoi(words[1]),
                                 atoi(words[2]),
                                 atoi(words[3]),
                                 atoi(words[4]),
                                 3,
                                 atoi(words[5]),
                                 0,
                                 NULL,
                                 0,
                                 NULL};
  supports_make(&m, shape, atoi(words[6]));
  int status = supports_write(&m, words[0], atoi(words[7]), mean);
  supports_unmake(&m);
  return status;
}

static int diff(char **words)
{
  int equal;
  TRY(file_diff(words[0], words[1], stdout, NULL, &equal));
  return equal ? OK : ERR_ANSWER;
}

static int run(const char *verb, char **words)
{
  if (strcmp(verb, "rows") == 0) return rows_dump(words);
  if (strcmp(verb, "dictionary") == 0) return dictionary_dump(words);
  if (strcmp(verb, "supports") == 0) return supports_dump(words);
  if (strcmp(verb, "make-rows") == 0)
    return rows_write(words[0], atoi(words[1]), atoi(words[2]), atoi(words[3]));
  if (strcmp(verb, "make-dictionary") == 0)
    return dictionary_write(words[0], atoi(words[1]), atoi(words[2]), atoi(words[3]));
  if (strcmp(verb, "inspect") == 0) return file_inspect(words[0], stdout);
  if (strcmp(verb, "verify") == 0) return file_verify(words[0], stdout);
  if (strcmp(verb, "diff") == 0) return diff(words);
  FAIL(ERR_USAGE, "no verb '%s'", verb);
}

int main(int count, char **words)
{
  const char *spare = getenv("SPARE");
  if (count < 3) return ERR_USAGE;
  if (spare) team_spare_set(atoi(spare));
  int status = run(words[1], words + 2);
  if (status > ERR_ANSWER) fprintf(stderr, "%s\n", status_message());
  if (status) result_discard();
  return status;
}
