/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a file that is truncated or has a flipped bit is refused or harmless.  It never causes a
 * crash, a hang or another value.
 *
 * Children run batches of trials under alarm().  If a child dies, the trial in which it died is
 * printed. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/json.h"
#include "base/num.h"
#include "io/classes.h"
#include "io/inspect_json.h"
#include "io/systems.h"
#include "io/terminal.h"
#include "io_files.h"
#include "tap.h"

enum { FLIPS = 700, FLIPS_FEWER = 200, FLIPS_SANITIZED = 100 };
enum { BATCH = 50, SECONDS = 20, MAX_VALUES = 4096 };
enum { CLASSED = 40, SYSTEMS_MADE = 6 };

/* Counts in memory that is shared with the children. */
struct progress_report {
  int trial, refused, harmless, wrong, first_wrong;
};
static struct progress_report *report;
static FILE *nowhere;

struct subject {
  const char *path; /* the sound file */
  enum { ROWS, DICTIONARY, CLASSES, SYSTEMS, OTHER } reader;
  unsigned char *bytes;
  long size;
  _Alignas(real) float values[MAX_VALUES]; /* of the sound file, as the reader gives them */
  gidx count;
};

static int classes_values(const char *path, float *values, gidx *count)
{
  struct classes c = {0};
  struct h5_file f;
  int status = h5_open(&f, path);
  if (status == OK) status = classes_read(&c, &f, CLASSED);
  h5_close(&f);
  *count = CLASSED;
  for (idx a = 0; status == OK && a < CLASSED; a++) values[a] = (float)c.color[a];
  classes_free(&c);
  return status;
}

/* values[] <- the bits of all numbers of the systems. */
static int systems_values(const char *path, float *values, gidx *count)
{
  struct systems_input f;
  real *all = (real *)values;
  int status = systems_input_open(&f, path);
  const struct systems_shape *s = &f.shape;
  gidx end = status ? 0 : s->count, reals = status ? 0 : systems_reals(s, 0, end);
  *count = 2 * reals;
  if (status == OK && *count > MAX_VALUES) status = ERR_INTERNAL;
  if (status == OK) {
    struct systems_block b = {.count = end, .h = all};
    b.b = b.h + s->h[end];
    b.g = b.b + s->b[end];
    b.c = b.g + s->g[end];
    b.g_b = b.c + s->c[end];
    status = f.source.read(f.source.self, &b);
  }
  systems_input_close(&f);
  return status;
}

static int values_read(const struct subject *s, const char *path, float *values, gidx *count)
{
  int status = OK;
  if (s->reader == ROWS) {
    struct rows_input f;
    status = rows_input_open(&f, NULL, path);
    *count = f.source.n * f.source.p;
    if (status == OK && *count > MAX_VALUES) status = ERR_INTERNAL;
    if (status == OK) status = f.source.read(f.source.self, 0, (idx)f.source.n, values);
    rows_input_close(&f);
  } else if (s->reader == DICTIONARY) {
    struct dictionary_input f;
    status = dictionary_input_open(&f, path);
    gidx atoms = (gidx)f.source.k * f.source.d * f.source.p;
    *count = atoms + f.source.p;
    if (status == OK && (*count > MAX_VALUES || !f.mean)) status = ERR_INTERNAL;
    if (status == OK) status = f.source.read(f.source.self, 0, f.source.k, values);
    for (idx c = 0; status == OK && c < f.source.p; c++) values[atoms + c] = (float)f.mean[c];
    dictionary_input_close(&f);
  } else if (s->reader == CLASSES) {
    status = classes_values(path, values, count);
  } else if (s->reader == SYSTEMS) {
    status = systems_values(path, values, count);
  }
  return status;
}

static void subject_load(struct subject *s)
{
  FILE *file = fopen(s->path, "rb");
  fseek(file, 0, SEEK_END);
  s->size = ftell(file);
  rewind(file);
  s->bytes = malloc((size_t)s->size);
  if (fread(s->bytes, 1, (size_t)s->size, file) != (size_t)s->size) exit(99);
  fclose(file);
  ok(values_read(s, s->path, s->values, &s->count) == OK, "'%s' is read", s->path);
}

/* Evaluate a damaged file.  1: verify refuses it, with a message; 0: it is harmless to every
 * reader; -1: another outcome, or it was read with other values. */
static int trial_evaluate(const struct subject *s, const char *path)
{
  static _Alignas(real) float values[MAX_VALUES];
  int equal = 0, refused = 0;
  gidx count = 0;
  status_clear();
  if (values_read(s, path, values, &count) != OK)
    refused = 1;
  else if (s->reader != OTHER &&
           (count != s->count || memcmp(values, s->values, (size_t)count * sizeof *values) != 0))
    return -1;
  status_clear();
  struct json page = {.out = nowhere};
  int shown = file_inspect(path, nowhere);
  status_clear();
  int listed = file_json(path, &page);
  status_clear();
  if (file_verify(path, NULL) != OK) return status_message()[0] ? 1 : -1;
  status_clear();
  int told = file_diff(s->path, path, NULL, NULL, &equal);
  return refused || shown || listed || told || !equal ? -1 : 0;
}

static void file_put(const char *path, const unsigned char *bytes, long size)
{
  FILE *file = fopen(path, "wb");
  if (fwrite(bytes, 1, (size_t)size, file) != (size_t)size || fclose(file)) exit(99);
}

/* The damage of trial t: FLIP: a bit anywhere is flipped; HEAD: a bit of bytes 2 t and 2 t + 1;
 * CUT: the file is cut at t KiB. */
enum damage { FLIP, HEAD, CUT };
static const char *const damages[] = {"flips", "flips in the first bytes", "cuts"};

static void trial_run(const struct subject *s, int t, enum damage damage)
{
  uint64_t any = random_below(11, 4, (uint64_t)t, (uint64_t)s->size * 8);
  uint64_t bit = damage == HEAD ? 16 * (uint64_t)t + any % 16 : any;
  unsigned char mask = damage == CUT ? 0 : (unsigned char)(1 << bit % 8);
  report->trial = t;
  s->bytes[bit / 8] ^= mask;
  file_put("trial.h5", s->bytes, damage == CUT ? (long)t * 1024 : s->size);
  s->bytes[bit / 8] ^= mask;
  int verdict = trial_evaluate(s, "trial.h5");
  report->refused += verdict == 1;
  report->harmless += verdict == 0;
  if (verdict == -1 && report->wrong++ == 0) report->first_wrong = t;
}

static int batch_run(const struct subject *s, int first, int end, enum damage damage)
{
  int status;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    nowhere = fopen("/dev/null", "w");
    alarm(SECONDS);
    for (int t = first; t < end; t++) trial_run(s, t, damage);
    _exit(0);
  }
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) ? -1 : 0;
}

static void trials_run(const struct subject *s, int trials, enum damage damage)
{
  int deaths = 0;
  *report = (struct progress_report){0};
  for (int t = 0; t < trials; t += BATCH) {
    int death = batch_run(s, t, t + BATCH < trials ? t + BATCH : trials, damage);
    if (death) printf("# %s: trial %d died of signal %d\n", s->path, report->trial, death);
    deaths += death != 0;
  }
  const char *what = damages[damage];
  ok(deaths == 0, "%s: no crash and no hang in %d %s", s->path, trials, what);
  ok(report->wrong == 0, "%s: %d %s silently wrong (first %d)", s->path, report->wrong, what,
     report->first_wrong);
  printf("# %s: %d %s refused, %d harmless\n", s->path, report->refused, what, report->harmless);
}

/* Try a file with all kinds of damage.  The first head_bytes bytes describe the contents of the
 * file; in every two of these bytes one bit is flipped. */
static void subject_try(const char *path, int reader, int head_bytes)
{
  struct subject *s = calloc(1, sizeof *s);
  s->path = path;
  s->reader = reader;
  claim_begin("'%s', cut or with a flipped bit, is refused or read with the same values", path);
  subject_load(s);
  trials_run(s, (int)(s->size / 1024) + (s->size % 1024 != 0), CUT);
  const char *text = getenv("SANITIZED");
  int sanitized = text && *text;
  trials_run(s, sanitized ? FLIPS_SANITIZED : is_full() ? FLIPS : FLIPS_FEWER, FLIP);
  if (!sanitized && head_bytes) trials_run(s, head_bytes / 2, HEAD);
  claim_end();
  free(s->bytes);
  free(s);
}

/* Write the result of a terminal pass of 6 atoms with up to 2 borders each, with all arrays. */
static int terminal_make(const char *path)
{
  enum { K = 6, MOST = 2, BLOCK = MOST * MOST, PAIRS = 3 };
  static idx border[K + 1] = {0, 2, 4, 4, 5, 7, 9};
  static real blocks[K * BLOCK], cross_blocks[PAIRS * BLOCK], eigenvalues[9];
  static struct cross pairs[PAIRS] = {{0, 0, 1}, {0, 1, 4}, {0, 4, 5}};
  static struct duplicate duplicate = {1, 3, 0.995};
  static struct weak_direction direction = {.eigenvalue = 1e-9, .atom = {4, -1}, .share = {1}};
  struct terminal_result r = {.k = K, .d = 1, .p = 3, .max_k = MOST, .n_border = 9, .n = 50};
  r.border = border;
  r.bad_pivot = r.slq.failed_probe = -1;
  r.rows = (struct det_pair){0.75, 3};
  r.borders = (struct det_pair){0.625, -2};
  r.log_det_rows = det_pair_value(r.rows);
  r.log_det_border = det_pair_value(r.borders);
  r.half_log_det = 0.5 * det_pair_value(det_pair_times(r.rows, r.borders));
  r.is_factored = 1;
  r.phi = 0.25;
  r.covariance = blocks;
  for (int i = 0; i < K * BLOCK; i++) {
    int size = border[i / BLOCK + 1] - border[i / BLOCK], row = i % BLOCK / MOST, column = i % MOST;
    blocks[i] = row >= size || column >= size ? nan_canonical() : row == column ? 2 : 0.5;
  }
  r.cross = pairs;
  r.n_cross = PAIRS;
  r.cross_blocks = cross_blocks;
  for (int i = 0; i < PAIRS * BLOCK; i++) cross_blocks[i] = 3 - i / BLOCK;
  for (int i = 0; i < PAIRS; i++) pairs[i].strength = 2 * (3 - i);
  for (int i = 0; i < 9; i++) eigenvalues[i] = i + 1e-9;
  r.spectrum = (struct spectrum){1,         1,   1, 0,    "a library", 9,         eigenvalues,
                                 {9, 0, 0}, 8e9, 1, 1e-8, 1,           &direction};
  r.slq = (struct slq){1, 1, -1, 32, 64, 1.5, 0.1, 0.01};
  r.n_duplicates = 1;
  r.duplicates = 1;
  r.duplicate = &duplicate;
  memset(r.artifact.sha256, 'a', SHA256_HEX - 1);
  return terminal_write(path, &r, 0, run_facts, LENGTH(run_facts));
}

/* Write classes of 1, 3, 5, .. atoms; one of these atoms is in no class. */
static int classes_make(const char *path)
{
  idx color[CLASSED] = {0};
  struct classes c;
  for (idx a = 0; a < CLASSED; a++) color[a] = a == 7 ? -1 : (idx)sqrt(a);
  int status = classes_from_colors(&c, color, CLASSED, 7);
  if (status == OK)
    status = classes_write(path, &c, 5, &(struct identity){0}, run_facts, LENGTH(run_facts));
  classes_free(&c);
  return status;
}

static int systems_make(const char *path)
{
  struct systems_shape s;
  struct arena arena = {0};
  static struct systems_output f;
  idx atom[SYSTEMS_MADE], color[SYSTEMS_MADE] = {0};
  int status = systems_alloc(&s, SYSTEMS_MADE, &arena);
  for (idx a = 0; status == OK && a < SYSTEMS_MADE; a++) {
    atom[a] = 10 - a;
    s.d[a] = 1 + a % 3;
    s.k[a] = a;
    s.row[a + 1] = s.row[a] + 3 * a;
  }
  if (status == OK) status = systems_measure(&s, path);
  if (status == OK) status = systems_output_create(&f, path, &s, atom, color, 1);
  static real values[MAX_VALUES];
  static gidx rows[MAX_VALUES];
  for (gidx i = 0; i < MAX_VALUES; i++) values[i] = noise(9, (uint64_t)i);
  for (gidx i = 0; i < MAX_VALUES; i++) rows[i] = i;
  struct systems_block b = {0, SYSTEMS_MADE, values, values, values, values, values, rows};
  if (status == OK) status = f.sink.write(f.sink.self, &b);
  if (status == OK)
    status = systems_output_finish(&f, &(struct identity){0}, NULL, run_facts, LENGTH(run_facts));
  arena_free(&arena);
  return status;
}

int main(void)
{
  struct made_supports m;
  real mean[3] = {0.5, -1, 2};
  folder_enter();
  report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  claim_begin("sound files are written");
  supports_make(&m, (struct supports_shape){60, 12, 4, 1, 3, 1, 0, NULL, 0, NULL}, 2);
  ok(supports_write(&m, "supports.h5", 7, mean) == OK, "supports: %s", status_message());
  supports_unmake(&m);
  ok(rows_write("rows.h5", 50, 6, 20) == OK, "rows: %s", status_message());
  ok(dictionary_write("dictionary.h5", 30, 2, 6) == OK, "dictionary: %s", status_message());
  ok(terminal_make("terminal.h5") == OK, "terminal: %s", status_message());
  ok(classes_make("classes.h5") == OK, "classes: %s", status_message());
  ok(systems_make("systems.h5") == OK, "systems: %s", status_message());
  claim_end();
  subject_try("terminal.h5", OTHER, 2048);
  subject_try("supports.h5", OTHER, 0);
  subject_try("rows.h5", ROWS, 0);
  subject_try("dictionary.h5", DICTIONARY, 0);
  subject_try("classes.h5", CLASSES, 0);
  subject_try("systems.h5", SYSTEMS, 0);
  folder_leave();
  return done_testing();
}
