# Sourced by the scripts beside it: makes .venv from the lock on first use, then does nothing.
# Leaves $VENV, the folder of the environment, behind. Needs Python >= 3.11 and pip, no more.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="$ROOT/.venv"

_find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3.13 python3.12 python3.11 python3; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
        >/dev/null 2>&1; then
      command -v "$candidate"
      return 0
    fi
  done
  echo "dpsim needs Python 3.11 or newer with venv: apt install python3-venv, or set PYTHON" >&2
  return 1
}

_stamp() {
  { cat "$ROOT/scripts/requirements.lock" "$ROOT/pyproject.toml"
    "$1" -c 'import sys; print(sys.version, sys.prefix)'; } | cksum
}

_install() {
  local python="$1" want="$2"
  echo "setting up .venv with $("$python" -V) (about 350 MB to download, once)" >&2
  rm -f "$VENV/.stamp"
  "$python" -m venv --clear "$VENV" || return 1
  export PIP_DISABLE_PIP_VERSION_CHECK=1
  "$VENV/bin/python" -m pip install -q --require-hashes \
    -r "$ROOT/scripts/requirements.lock" || return 1
  "$VENV/bin/python" -m pip install -q --no-deps --no-build-isolation --no-index \
    -e "$ROOT" || return 1
  printf '%s\n' "$want" >"$VENV/.stamp"
}

_set_up() {
  local python want waited=0
  python="$(_find_python)" || return 4
  want="$(_stamp "$python")"
  while [ "$(cat "$VENV/.stamp" 2>/dev/null)" != "$want" ]; do
    if mkdir "$VENV.lock" 2>/dev/null; then
      trap 'rmdir "$VENV.lock" 2>/dev/null' EXIT
      _install "$python" "$want" || { echo "the set-up failed; run the command again" >&2
        return 4; }
      rmdir "$VENV.lock"
      trap - EXIT
    elif [ "$waited" -ge 900 ]; then
      echo "another set-up holds $VENV.lock for 15 minutes; if none runs, remove it" >&2
      return 4
    else
      sleep 1
      waited=$((waited + 1))
    fi
  done
}

_set_up || exit $?
