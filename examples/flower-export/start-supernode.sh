#!/usr/bin/env bash
# Start the SuperNode of one client. With keys/ it checks the server's certificate and signs with its own key.
# Usage: ./start-supernode.sh CLIENT [--superlink 127.0.0.1:9091] [--port 9100] [--state DIR] [--keys keys] [--insecure]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
. "$here/environment.sh"
client="${1:-}"
[[ "$client" =~ ^(0|[1-9][0-9]{0,8})$ ]] || fail "expected the client's number, from 0, as first argument"
[ "$client" -lt 3 ] || fail "$client: there are 3 clients, 0 to 2"
number=$client
shift
superlink=127.0.0.1:9091 port=$((9100 + number)) state="$here/state-$client" keys="$here/keys" named=no insecure=no
while [ $# -gt 0 ]; do
  case "$1" in
    --superlink) with_value "$@"; superlink="$2"; shift 2 ;;
    --port) with_value "$@"; port="$2"; shift 2 ;;
    --state) with_value "$@"; state="$(absolute "$2")"; shift 2 ;;
    --keys) with_value "$@"; keys="$(absolute "$2")" named=yes; shift 2 ;;
    --insecure) insecure=yes; shift ;;
    *) fail "expected --superlink, --port, --state, --keys or --insecure, got $1" ;;
  esac
done
case "$state" in *[\'[:cntrl:]]*) fail "$state: expected a folder without quotation marks in its name" ;; esac
key="node$client" node="partition-id=$client num-partitions=3"
common=(--superlink "$superlink" --host 127.0.0.1 --port "$port" --node-config "$node state-dir='$state'")
if [ "$insecure" = no ] && [ -f "$keys/ca.pem" ]; then
  [ -f "$keys/$key" ] || fail "$keys/$key: the private key of this node is missing"
  common+=(--root-certificates "$keys/ca.pem" --auth-supernode-private-key "$keys/$key")
elif [ "$insecure" = no ] && [ "$named" = yes ]; then
  fail "$keys: has no ca.pem; get it from the server, or leave --keys out"
elif [ "$insecure" = no ] && ! is_loopback "${superlink%:*}"; then
  fail "$superlink: is not loopback, and $keys has no ca.pem; get it from the server, or type --insecure"
else
  common+=(--insecure)
fi
umask 077 # labels are readable by their owner alone
export FLWR_HOME="${FLWR_HOME:-$state/flwr}"
mkdir -p "$state" "$FLWR_HOME"
exec flower-supernode "${common[@]}"
