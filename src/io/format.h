/* SPDX-License-Identifier: BSD-3-Clause
 * Recognise the format of a file that cannot be read in the format that its name implies, so that
 * the message can say how to rename or convert it.
 *
 * Floor: io. */
#ifndef IO_FORMAT_H
#define IO_FORMAT_H

/* Call this after a regular file could not be opened in the format that the end of its name
 * implies.  ERR_INPUT: its first bytes are those of another format, or of no known one.  ERR_IO:
 * they cannot be read.  OK: the format may be right, and the file damaged. */
int format_check(const char *path);

/* ".npy", ".safetensors" or ".h5": the format in which a file is read.  The end of its name
 * decides; if the name has no such end, its first bytes do. */
const char *format_ending(const char *path);

#endif
