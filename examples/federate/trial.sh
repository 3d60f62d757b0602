#!/usr/bin/env bash
# A whole private federation on this machine: split the data, write the app, start everything on loopback, run, stop.
# Usage: ./trial.sh CONFIG DIR [PORT]
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 CONFIG DIR [PORT]" >&2; exit 2; }
config="$1" dir="$2" port="${3:-9191}"
mkdir -p "$dir" && dir="$(cd "$dir" && pwd)"
export FLWR_HOME="$dir/flwr"
fedrela data split "$config" "$dir/parts"
fedrela export-flower "$dir/app" "$dir/parts/config.toml" --private
mkdir -p "$FLWR_HOME"
printf '[superlink.trial]\naddress = "127.0.0.1:%s"\ninsecure = true\n' "$port" > "$FLWR_HOME/config.toml"
started=()
trap 'kill "${started[@]}" 2> /dev/null || true; wait' EXIT
"$dir/app/start-superlink.sh" --port "$port" > "$dir/superlink.log" 2>&1 & started+=($!)
number=0
for home in "$dir"/parts/nodes/*/; do
  name="$(basename "$home")"
  (cd "$home" && FLWR_HOME="$home/state/flwr" exec "$dir/app/start-supernode.sh" "$name" --superlink "127.0.0.1:$port" \
    --port $((port + 1 + number)) --state "$home/state") > "$dir/$name.log" 2>&1 & started+=($!)
  number=$((number + 1))
done
until (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; do
  kill -0 "${started[0]}" 2> /dev/null || { tail -n 3 "$dir/superlink.log" >&2; exit 1; }
  sleep 1
done
(cd "$dir/app" && flwr run . trial --stream --run-config "out='$dir/run' data='$dir/parts/server/server.toml'")
fedrela report "$dir/run"
