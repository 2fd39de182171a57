/* SPDX-License-Identifier: BSD-3-Clause
 * How HDF5 reaches the disk: each system call is a step of the watchdog.
 *
 * Floor: io; included by src/io/h5/ only. */
#ifndef IO_H5_DRIVER_H
#define IO_H5_DRIVER_H

#include "io/h5/h5_impl.h"

/* Let a property list for opening files use this driver; negative when HDF5 does not take it. */
herr_t h5_driver_set(hid_t list);

/* Of a file that is new: what HDF5 keeps itself lies before `base`, as far as it fits, else behind
 * `end`, and all between is left to chunks that are given an address. */
void h5_driver_reserve(const void *handle, haddr_t base, haddr_t end);

/* While it is on, files that HDF5 creates keep the bytes that they have, and their length too: a
 * process that ends before it says that such a file is whole leaves what others have written. */
void h5_driver_over(int is_on);
void h5_driver_whole(const void *handle);

/* Until h5_driver_found(), raw data that HDF5 reads in this thread are not, and those at `chunk`
 * are not written: only where they are, or will be, is noted.  So HDF5 tells where a chunk is as
 * fast as it finds it; its own question for that, H5Dget_chunk_info_by_coord(), goes through all
 * chunks.  What else it writes meanwhile, such as texts, is written.  chunk NULL: for reading.  at:
 * where it is to be written; HADDR_UNDEF: anywhere. */
void h5_driver_find(const void *chunk, haddr_t at);
/* Were they one piece of so many bytes?  *at <- where. */
int h5_driver_found(size_t bytes, haddr_t *at);

/* out[bytes] <- those of a file from `at` on, past HDF5; handle is what H5Fget_vfd_handle() gives
 * of a file with this driver.  Any threads may do so at once.  Returns 0 when not all were read. */
int h5_driver_read(const void *handle, haddr_t at, size_t bytes, void *out);
/* The same for writing.  Returns the system's error, or 0. */
int h5_driver_write(const void *handle, haddr_t at, size_t bytes, const void *in);

/* What was written there begins to go to the disk (base/retry.h).  Returns the system's error, or
 * 0. */
int h5_driver_push(const void *handle, haddr_t at, haddr_t bytes);

/* The same of a file that HDF5 does not know, such as one that another rank has made: NULL: errno
 * says why it cannot be opened.  The others return the system's error, or 0. */
const void *h5_driver_open(const char *path);
int h5_driver_sync(const void *handle);
int h5_driver_close(const void *handle);

#endif
