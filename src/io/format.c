/* SPDX-License-Identifier: BSD-3-Clause
 * Formats are recognised by their first bytes, and if several formats share these, by the end of
 * the name. */
#include "io/format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/retry.h"
#include "base/status.h"
#include "base/text.h"
#include "base/watchdog.h"
#include "io/journal.h"

/* A file format.  name: what messages call it.  imports: the Python module that can read it.
 * read: the expression that reads the file OLD.  Its value is a table of arrays if is_table is 1,
 * and otherwise one array. */
struct format {
  const char *name, *ending, *imports, *read;
  int is_table;
};

static const struct format hdf5 = {"an HDF5 file", ".h5", NULL, NULL, 0};
static const struct format npy = {"a NumPy file", ".npy", NULL, NULL, 0};
static const struct format safetensors = {"a safetensors file", ".safetensors", NULL, NULL, 0};
static const struct format torch = {"a PyTorch file", NULL, "torch",
                                    "torch.load(\"OLD\", map_location=\"cpu\").float()", 0};
static const struct format npz = {"a NumPy archive", NULL, "numpy", "numpy.load(\"OLD\")", 1};
static const struct format parquet = {"a Parquet file", NULL, "pandas",
                                      "pandas.read_parquet(\"OLD\").to_numpy(\"f4\")", 0};
static const struct format raw = {"a file of bare numbers", NULL, "numpy",
                                  "numpy.fromfile(\"OLD\", \"f4\").reshape(-1, COLUMNS)", 0};

/* The first bytes of a file. */
struct head {
  unsigned char bytes[16];
  int is_hdf5;
};

/* The format of a file with these first bytes; NULL: no known one. */
static const struct format *format_find(const char *path, const struct head *h)
{
  const unsigned char *head = h->bytes;
  int is_zip = memcmp(head, "PK\3\4", 4) == 0, is_pickle = head[0] == 0x80 && head[1] < 6;
  if (h->is_hdf5) return &hdf5;
  if (memcmp(head, "\x93NUMPY", 6) == 0) return &npy;
  if (memcmp(head, "PAR1", 4) == 0) return &parquet;
  if (!head[6] && !head[7] && head[8] == '{' && (head[9] == '"' || head[9] == '}'))
    return &safetensors; /* 8 bytes of length, then JSON */
  if (is_zip) return text_ends_in(path, ".npz") ? &npz : &torch;
  if (is_pickle || text_ends_in(path, ".pt")) return &torch;
  return text_ends_in(path, ".bin") ? &raw : NULL;
}

/* Find HDF5's signature.  The format allows it at byte 0, 512, 1024, 2048, and so on. */
static int signature_find(int file)
{
  static const char signature[] = "\x89HDF\r\n\x1a\n";
  char found[sizeof signature - 1];
  for (off_t at = 0; retry_pread(file, found, sizeof found, at) == sizeof found;
       at = at ? 2 * at : 512)
    if (memcmp(found, signature, sizeof found) == 0) return 1;
  return 0;
}

/* Read the first bytes of a file.  Returns their number; -1: failure. */
static ssize_t head_read(const char *path, struct head *h)
{
  *h = (struct head){{0}, 0};
  int step = watchdog_begin(ERR_IO, "reading", path);
  int file = retry_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ssize_t got = file < 0 ? -1 : retry_pread(file, h->bytes, sizeof h->bytes, 0);
  int error = errno;
  if (got > 0) h->is_hdf5 = signature_find(file);
  if (file >= 0) close(file);
  watchdog_end(step);
  errno = error;
  return got;
}

/* The format that the name implies.  A name that has a dot, but not the end of another format,
 * implies HDF5.  For a name without a dot the first bytes decide. */
static const struct format *format_named(const char *path)
{
  const char *name = strrchr(path, '/');
  struct head head;
  if (text_ends_in(path, npy.ending)) return &npy;
  if (text_ends_in(path, safetensors.ending)) return &safetensors;
  if (strchr(name ? name : path, '.') || head_read(path, &head) < 0) return &hdf5;
  const struct format *f = format_find(path, &head);
  return f == &npy || f == &safetensors ? f : &hdf5;
}

const char *format_ending(const char *path)
{
  return format_named(path)->ending;
}

int format_check(const char *path)
{
  struct head head;
  CHECK(
      !journal_is(path) && !journal_is_growing(path), ERR_INPUT,
      "'%s' is of a result that grows: --resume continues its job, and `sagitta inspect` says how "
      "far it is",
      path);
  CHECK(head_read(path, &head) >= 0, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
  const struct format *f = format_find(path, &head), *named = format_named(path);
  if (f == named || (!f && named == &safetensors)) return OK;
  CHECK(f, ERR_INPUT, "'%s' is not %s: rows and atoms are read from HDF5, .npy and .safetensors",
        path, named->name);
  CHECK(!f->ending, ERR_INPUT, "'%s' is %s: it is read as rows or atoms if its name ends in %s",
        path, f->name, f->ending);
  FAIL(ERR_INPUT,
       "'%s' is %s, not HDF5 or .npy; convert it (OLD: its name): python3 -c 'import h5py, %s; "
       "t = %s; f = h5py.File(\"NEW.h5\", \"w\"); %s'",
       path, f->name, f->imports, f->read,
       f->is_table ? "[f.create_dataset(k, data=v) for k, v in t.items()]" : "f[\"rows\"] = t");
}
