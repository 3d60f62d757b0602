#!/usr/bin/env bash
# Make a throw-away certificate authority, a server certificate for loopback and one key per node, valid for 30 days.
# Usage: ./make-trial-keys.sh [DIR]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
keys="${1:-$here/keys}"
. "$here/environment.sh"
[ ! -e "$keys" ] || fail "$keys: exists already; remove it or name another folder"
for tool in openssl ssh-keygen; do command -v "$tool" > /dev/null || fail "$tool: not installed; install it first"; done
umask 077
mkdir -p "$keys"
cd "$keys"
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -keyout ca.key -out ca.pem -subj "/CN=fedrela trial authority" \
  -addext "keyUsage=critical,keyCertSign,cRLSign" 2> /dev/null
openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj "/CN=localhost" 2> /dev/null
cat > server.ext << END
subjectAltName=DNS:localhost,IP:127.0.0.1
basicConstraints=critical,CA:FALSE
extendedKeyUsage=serverAuth
authorityKeyIdentifier=keyid
END
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile server.ext -out server.pem \
  2> /dev/null
rm -f server.csr server.ext ca.srl
for node in $(seq -f node%.0f 0 2); do
  ssh-keygen -q -t ecdsa -b 384 -N "" -f "$node" -C ""
done
echo "keys for 3 nodes in $keys; for loopback trials only: whoever has ca.key can pose as the server"
