/* SPDX-License-Identifier: BSD-3-Clause
 * Recognise the format of a file that cannot be read in the format that its name implies, so that
 * the message can say how to rename or convert it.
 *
 * Floor: io. */
#ifndef IO_FORMAT_H
#define IO_FORMAT_H

/* Call this after a regular file could not be opened in the format that the end of its name
 * implies.  ERR_INPUT: its first bytes belong to another format, or to no known format.  ERR_IO:
 * they cannot be read.  OK: the format may be right, and the file damaged. */
int format_check(const char *path);

/* ".npy", ".safetensors" or ".h5": the format in which a file is read.  The end of its name
 * decides; other names with a dot imply ".h5".  For a name without a dot, the first bytes of the
 * file decide. */
const char *format_ending(const char *path);

#endif
