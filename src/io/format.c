/* SPDX-License-Identifier: BSD-3-Clause
 * Formats are known by their first bytes, and where these are common by the end of the name. */
#include "io/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "base/watchdog.h"

/* What Python imports, and how it reads the file OLD as t: a table of arrays, or one array. */
struct format {
  const char *name, *imports, *read;
  int is_table;
};

static const struct format safetensors = {"a safetensors file", NULL, NULL, 1};
static const struct format torch = {"a PyTorch file", "torch",
                                    "torch.load(\"OLD\", map_location=\"cpu\").float()", 0};
static const struct format npz = {"a NumPy archive", "numpy", "numpy.load(\"OLD\")", 1};
static const struct format parquet = {"a Parquet file", "pandas",
                                      "pandas.read_parquet(\"OLD\").to_numpy(\"f4\")", 0};
static const struct format raw = {"a file of bare numbers", "numpy",
                                  "numpy.fromfile(\"OLD\", \"f4\").reshape(-1, COLUMNS)", 0};

static int ends_in(const char *text, const char *end)
{
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* The format of a file that begins with head[16]; NULL: none of these. */
static const struct format *format_find(const char *path, const unsigned char *head)
{
  int is_zip = memcmp(head, "PK\3\4", 4) == 0, is_pickle = head[0] == 0x80 && head[1] < 6;
  if (memcmp(head, "PAR1", 4) == 0) return &parquet;
  if (!head[6] && !head[7] && head[8] == '{' && (head[9] == '"' || head[9] == '}'))
    return &safetensors; /* 8 bytes of length, then JSON */
  if (is_zip) return ends_in(path, ".npz") ? &npz : &torch;
  if (is_pickle || ends_in(path, ".pt")) return &torch;
  return ends_in(path, ".bin") ? &raw : NULL;
}

/* head[bytes] <- how a regular file begins.  Returns how much was read, -1 for a failure; 0 where
 * the file cannot be opened, for others to say why. */
static ssize_t head_read(const char *path, unsigned char *head, size_t bytes)
{
  struct stat facts;
  int step = watchdog_begin(ERR_IO, "reading", path);
  int is_regular = stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
  int file = is_regular ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  ssize_t got = file < 0 ? 0 : read(file, head, bytes);
  int error = errno;
  if (file >= 0) close(file);
  watchdog_end(step);
  errno = error;
  return got;
}

int format_check(const char *path)
{
  static const char hdf5[] = "\x89HDF\r\n\x1a\n";
  unsigned char head[16] = {0};
  ssize_t got = head_read(path, head, sizeof head);
  int error = errno;
  CHECK(got >= 0, ERR_IO, "cannot read '%s': %s", path, strerror(error));
  if (got < 1 || memcmp(head, hdf5, sizeof hdf5 - 1) == 0) return OK;
  const struct format *f = format_find(path, head);
  CHECK(f != &safetensors, ERR_INPUT,
        "'%s' is %s: it is read as rows or atoms if its name ends in .safetensors", path, f->name);
  CHECK(!f, ERR_INPUT,
        "'%s' is %s, not HDF5 or .npy; convert it (OLD: its name): python3 -c 'import h5py, %s; "
        "t = %s; f = h5py.File(\"NEW.h5\", \"w\"); %s'",
        path, f->name, f->imports, f->read,
        f->is_table ? "[f.create_dataset(k, data=v) for k, v in t.items()]" : "f[\"rows\"] = t");
  return OK;
}

int format_tell(const char *path)
{
  char why[1024];
  snprintf(why, sizeof why, "%s", status_message());
  status_clear();
  TRY(format_check(path));
  return status_set(ERR_INPUT, why);
}
