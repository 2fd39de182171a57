/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: whichever write, read, sync, rename or allocation fails, the result is the old file or the
 * new one.
 *
 * The program runs itself again with fault.so preloaded, and each fault has its own child.  Every
 * allocation of our own code fails once.  Allocations of HDF5 are many, so that only every
 * STRIDE-th one fails; FAULT_STRIDE in the environment is another stride.  HDF5 1.10 crashes or
 * exits for some of its allocations, so only the result is judged for these. */
#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "io_files.h"
#include "tap.h"

enum { STRIDE = 61, MAX_TRIALS = 20000, MEMORY_LEAST = 4000, SECONDS = 60 };

static void (*fault_arm)(const char *kind, long n, int lasting);

static int result_write(const char *path, int is_new)
{
  struct made_supports m;
  supports_make(&m, (struct supports_shape){30 + is_new, 12, 4, 2, 3, 1, 0, NULL, 0, NULL}, 1);
  int status = supports_write(&m, path, 8, NULL);
  supports_unmake(&m);
  return status;
}

/* Run a fault in a child.  Returns its exit code, or minus its signal. */
static int child_run(const char *kind, long n, int lasting)
{
  struct made_supports m;
  int status;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(SECONDS);
    supports_make(&m, (struct supports_shape){31, 12, 4, 2, 3, 1, 0, NULL, 0, NULL}, 1);
    fault_arm(kind, n, lasting);
    status = supports_write(&m, "result.h5", 8, NULL);
    fault_arm("", 0, 0);
    if (status) result_discard();
    exit(status ? status : 0); /* not _exit(): the exit handlers of HDF5 must not crash */
  }
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int is_same(const char *path)
{
  int equal = 0;
  status_clear();
  return file_verify("result.h5", NULL) == OK &&
         file_diff("result.h5", path, NULL, NULL, &equal) == OK && equal;
}

/* The number of files in the folder that should not be there.  Temporary files are counted and
 * removed. */
static int leftovers(void)
{
  int count = 0;
  DIR *folder = opendir(".");
  for (struct dirent *e = readdir(folder); e; e = readdir(folder))
    if (temporary_is_of(e->d_name, "result.h5"))
      count++, unlink(e->d_name);
    else
      count += e->d_name[0] != '.' && strcmp(e->d_name, "old.h5") != 0 &&
               strcmp(e->d_name, "new.h5") != 0 && strcmp(e->d_name, "result.h5") != 0;
  closedir(folder);
  return count;
}

struct tally {
  long faults, crashes, bad_file, bad_code, left;
};

/* A kind of fault, and the exit code that is right for it; -1: any. */
struct fault_kind {
  const char *name;
  int lasting;
  int code;
  long calls; /* the number of these calls in a run; 0: not known */
};

static void fault_judge(struct tally *t, const struct fault_kind *kind, long n, int code)
{
  int bad_file = !(code == 0 ? is_same("new.h5") : is_same("old.h5") || is_same("new.h5"));
  int bad_code = code > 0 && kind->code > 0 && code != kind->code && code != ERR_CREATE;
  int left = leftovers();
  if (code < 0 && kind->code < 0) left = 0;
  t->crashes += code < 0;
  t->bad_file += bad_file;
  t->bad_code += bad_code;
  t->left += left;
  if ((code < 0 && kind->code > 0) || bad_file || bad_code || left)
    printf("# %s %ld: ended with %d, %s, %d left over\n", kind->name, n, code,
           bad_file ? "bad result" : "result as it should be", left);
}

static void kind_try(struct fault_kind kind, long stride)
{
  struct tally t = {0};
  claim_begin("%s%s fails: the result is the old file or the new, no file is left over, the exit "
              "code is right",
              kind.name, kind.lasting ? " and all after it" : "");
  for (long n = 1; n < MAX_TRIALS; n += stride) {
    if (system("cp old.h5 result.h5")) exit(99);
    int code = child_run(kind.name, n, kind.lasting);
    fault_judge(&t, &kind, n, code);
    if (code == 0 && n > MEMORY_LEAST && kind.code < 0) break;
    if (code == 0 && kind.code > 0) break;
    t.faults++;
  }
  const char *how = kind.lasting ? " and all after it" : "";
  ok(t.faults > 0 && (t.crashes == 0 || kind.code < 0), "%s%s: %ld faults, %ld crashes", kind.name,
     how, t.faults, t.crashes);
  if (kind.calls) ok(t.faults == kind.calls, "%s: %ld calls", kind.name, t.faults);
  ok(t.bad_file == 0, "%s%s: the result is the old file or the new one, %ld are not", kind.name,
     how, t.bad_file);
  ok(t.left == 0, "%s%s: %ld files left over", kind.name, how, t.left);
  if (kind.code > 0)
    ok(t.bad_code == 0, "%s%s: exit %d or 73, %ld others", kind.name, how, kind.code, t.bad_code);
  claim_end();
}

static void preload(char **words)
{
  char path[4200];
  const char *builddir = getenv("builddir");
  snprintf(path, sizeof path, "%s/tests/fault.so", builddir ? builddir : ".");
  const char *before = getenv("LD_PRELOAD"); /* may be rest.so; fault.so has its functions */
  if (before && strcmp(before, path) == 0) {
    skip("'%s' could not be preloaded", path);
  } else {
    setenv("LD_PRELOAD", path, 1);
    if (access(path, R_OK) == 0) execv("/proc/self/exe", words);
    ok(0, "'%s' can be read and preloaded", path);
  }
  exit(done_testing());
}

int main(int count, char **words)
{
  (void)count;
  const char *sanitized = getenv("SANITIZED");
  if (sanitized && *sanitized) {
    skip("a sanitizer has its own allocator, so this test cannot let one fail");
    return done_testing();
  }
  void *arm = dlsym(RTLD_DEFAULT, "fault_arm");
  if (!arm) preload(words);
  memcpy(&fault_arm, &arm, sizeof arm);
  unsetenv("LD_PRELOAD");
  folder_enter();
  ok(result_write("old.h5", 0) == OK && result_write("new.h5", 1) == OK, "two results");
  const char *stride = getenv("FAULT_STRIDE");
  kind_try((struct fault_kind){"write", 0, ERR_IO, 0}, 1);
  kind_try((struct fault_kind){"write", 1, ERR_IO, 0}, 1);
  kind_try((struct fault_kind){"read", 1, ERR_IO, 0}, 1);  /* HDF5 may tolerate a single failure */
  kind_try((struct fault_kind){"fsync", 0, ERR_IO, 2}, 1); /* of the file, then of its folder */
  kind_try((struct fault_kind){"rename", 0, ERR_IO, 1}, 1);
  kind_try((struct fault_kind){"own-memory", 0, ERR_MEMORY, 0}, 1);
  kind_try((struct fault_kind){"memory", 0, -1, 0}, stride ? atol(stride) : STRIDE);
  folder_leave();
  return done_testing();
}
