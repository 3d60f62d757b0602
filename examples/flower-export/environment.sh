# Sourced by the other scripts: no telemetry, and nothing is installed at run time.
export FLWR_TELEMETRY_ENABLED=0
export FLWR_DISABLE_UPDATE_CHECK=1
export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1
export RAY_USAGE_STATS_ENABLED=0

fail() { echo "$(basename "$0"): $*" >&2; exit 2; }
with_value() { [ $# -ge 2 ] || fail "$1: expected a value after it"; }
is_loopback() { [[ "$1" =~ ^(127(\.[0-9]{1,3}){3}|localhost|::1|\[::1\])$ ]]; }
absolute() { case "$1" in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
