# SPDX-License-Identifier: BSD-3-Clause
"""The hooks that pip calls to build a wheel of the source distribution (PEP 517): they run
configure and make, then scripts/wheel.

`pip install ARCHIVE --config-settings configure=--with-cuda=DIR` passes extra options to configure.
If SAGITTA_BUILD names a folder in which make was run, that build is packed, and configure is not
run."""
import os
import shlex
import subprocess
import sys
import tempfile

SOURCE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def _run(words, folder):
    if subprocess.run(words, cwd=folder, check=False).returncode:
        sys.exit(f"sagitta: {' '.join(words)} failed; doc/install.md of the archive says what it "
                 "needs, and scripts/setup job installs that on Debian")


def _built(folder, settings):
    """Run configure and make in this folder."""
    _run([os.path.join(SOURCE, "configure"), *shlex.split(settings.get("configure", ""))], folder)
    _run(["make", "-j", str(len(os.sched_getaffinity(0))), "V=0"], folder)
    return folder


def _said(*words):
    """Run scripts/wheel with these words and return the name of the file whose path it prints."""
    done = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts", "wheel"), *words],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit("sagitta: scripts/wheel failed")
    return os.path.basename(done.stdout.strip())


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return _said("metadata", metadata_directory)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as own:
        build = os.environ.get("SAGITTA_BUILD") or _built(own, config_settings or {})
        return _said(build, wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    sys.exit("sagitta: scripts/sdist makes the source distribution, of an archive of `make dist`")
