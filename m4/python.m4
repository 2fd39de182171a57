# SAGITTA_PYTHON sets PYTHON, which runs the tests: the first Python that has h5py, NumPy and SciPy.
# If none has, it is the first one with h5py and NumPy, which are enough for most tests.
AC_DEFUN([SAGITTA_PYTHON], [
AC_ARG_VAR([PYTHON], [Python of the tests (default: the first with h5py, NumPy and SciPy)])
AC_MSG_CHECKING([for a Python with h5py and NumPy])
for sagitta_modules in 'h5py, numpy, scipy' 'h5py, numpy'; do
  for sagitta_python in python3 /usr/bin/python3 /usr/local/bin/python3; do
    AS_IF([test -z "$PYTHON" && $sagitta_python -c "import $sagitta_modules" 2> /dev/null],
      [PYTHON=`command -v $sagitta_python`])
  done
done
AC_MSG_RESULT([${PYTHON:-none, tests in Python will fail}])
: ${PYTHON=python3}
])
