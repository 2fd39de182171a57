/* SPDX-License-Identifier: BSD-3-Clause
 * The message gives the number of a missing filter and its registered name; without one, its name
 * in the file, if it has any. */
#include "io/h5/filters.h"

#include <errno.h>
#include <stdio.h>

/* Filters of HDF5 itself, which some builds lack, and filters registered with The HDF Group. */
static const char *filter_name(H5Z_filter_t number)
{
  static const struct {
    H5Z_filter_t number;
    const char *name;
  } filters[] = {
      {H5Z_FILTER_DEFLATE, "gzip"},
      {H5Z_FILTER_SHUFFLE, "shuffle"},
      {H5Z_FILTER_FLETCHER32, "Fletcher-32"},
      {H5Z_FILTER_SZIP, "SZIP"},
      {H5Z_FILTER_NBIT, "N-bit"},
      {H5Z_FILTER_SCALEOFFSET, "scale-offset"},
      {305, "LZO"},
      {307, "bzip2"},
      {32000, "LZF"},
      {32001, "Blosc"},
      {32002, "MAFISC"},
      {32003, "Snappy"},
      {32004, "LZ4"},
      {32008, "Bitshuffle"},
      {32012, "JPEG-LS"},
      {32013, "ZFP"},
      {32014, "fpzip"},
      {32015, "Zstandard"},
      {32016, "B3D"},
      {32017, "SZ"},
      {32018, "FCIDECOMP"},
      {32019, "JPEG"},
      {32020, "VBZ"},
      {32022, "BitGroom"},
      {32023, "Granular BitRound"},
      {32024, "SZ3"},
      {32026, "Blosc2"},
      {32027, "FLAC"},
      {32028, "SPERR"},
  };
  for (int i = 0; i < LENGTH(filters); i++)
    if (filters[i].number == number) return filters[i].name;
  return NULL;
}

/* Find the first filter of a dataset that this library lacks.  *number <- its number;
 * text[capacity] <- its name in the file.  Returns 0 if no filter is missing. */
static int filter_missing(hid_t dataset, H5Z_filter_t *number, char *text, size_t capacity)
{
  int is_missing = 0;
  H5E_BEGIN_TRY
  {
    hid_t creation = H5Dget_create_plist(dataset);
    int count = creation < 0 ? 0 : H5Pget_nfilters(creation);
    for (unsigned i = 0; (int)i < count && !is_missing; i++) {
      unsigned flags, options;
      size_t no_values = 0;
      *text = '\0';
      *number = H5Pget_filter2(creation, i, &flags, &no_values, NULL, capacity, text, &options);
      is_missing = *number >= 0 && H5Zfilter_avail(*number) <= 0;
    }
    if (creation >= 0) H5Pclose(creation);
  }
  H5E_END_TRY
  return is_missing;
}

int h5_read_fail(hid_t dataset, const char *object, const char *path)
{
  char stored[64], version[32];
  H5Z_filter_t number = 0;
  int error = errno;
  int is_missing = h5_fail_code(ERR_INPUT) == ERR_INPUT &&
                   filter_missing(dataset, &number, stored, sizeof stored);
  errno = error;
  if (!is_missing)
    return h5_fail(ERR_INPUT, __FILE__, __LINE__, "cannot read '%s' of '%s'", object, path);
  const char *name = filter_name(number);
  if (!name) name = *stored ? stored : "of that number";
  h5_library(version, sizeof version);
  FAIL(ERR_INPUT,
       "'%s' of '%s' is packed by the filter %s (%d), which HDF5 %s of this program lacks: run "
       "h5repack -f GZIP=4 OLD NEW where the filter is installed, or set HDF5_PLUGIN_PATH to the "
       "folder of its plugin",
       object, path, name, (int)number, version);
}
