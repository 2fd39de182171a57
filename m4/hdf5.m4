# SAGITTA_HDF5 sets HDF5_CFLAGS and HDF5_LIBS: any flavour; the serial one is preferred.
AC_DEFUN([SAGITTA_HDF5], [
AC_ARG_WITH([hdf5],
  [AS_HELP_STRING([--with-hdf5=MODULE], [pkg-config module: hdf5-serial, hdf5-openmpi or hdf5])],
  [], [with_hdf5=any])
AS_IF([test "x$with_hdf5" = xany], [
  PKG_CHECK_EXISTS([hdf5-serial], [with_hdf5=hdf5-serial],
    [PKG_CHECK_EXISTS([hdf5], [with_hdf5=hdf5], [with_hdf5=hdf5-openmpi])])])
PKG_CHECK_MODULES([HDF5], [$with_hdf5])
])
