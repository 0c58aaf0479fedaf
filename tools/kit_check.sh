#!/bin/sh
# Starts check.py with a Python of the version that the kit has wheels for: the one that PYTHON names, or one on the path.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 2
version=$(cat "$here/python") || exit 2
for python in ${PYTHON:-"python$version" python3}; do
  if "$python" -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null; then
    exec "$python" "$here/check.py" "$@"
  fi
done
echo "check: needs Python $version with its modules venv and ensurepip; PYTHON=... names one" >&2
exit 2
