#!/usr/bin/env bash
# Start the SuperLink. With keys/ (see make-trial-keys.sh) it speaks TLS and admits registered nodes only.
# Usage: ./start-superlink.sh [--host 127.0.0.1] [--port 9091] [--keys keys] [--insecure]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
. "$here/environment.sh"
host=127.0.0.1 port=9091 keys="$here/keys" named=no insecure=no
while [ $# -gt 0 ]; do
  case "$1" in
    --host) with_value "$@"; host="$2"; shift 2 ;;
    --port) with_value "$@"; port="$2"; shift 2 ;;
    --keys) with_value "$@"; keys="$(absolute "$2")" named=yes; shift 2 ;;
    --insecure) insecure=yes; shift ;;
    *) fail "expected --host, --port, --keys or --insecure, got $1" ;;
  esac
done
cd "$here" # what the run's configuration calls "out" is relative to this folder, wherever the script was called
common=(--host "$host" --port "$port" --isolation subprocess --disable-runtime-dependency-installation)
if [ "$insecure" = no ] && [ -f "$keys/server.key" ]; then
  exec flower-superlink "${common[@]}" --enable-supernode-auth \
    --ssl-ca-certfile "$keys/ca.pem" --ssl-certfile "$keys/server.pem" --ssl-keyfile "$keys/server.key"
fi
if [ "$insecure" = no ] && [ "$named" = yes ]; then
  fail "$keys: has no server.key; make one, or leave --keys out"
fi
if [ "$insecure" = no ] && ! is_loopback "$host"; then
  fail "$host: is not loopback, and $keys has no certificate; make one, or type --insecure"
fi
exec flower-superlink "${common[@]}" --insecure
