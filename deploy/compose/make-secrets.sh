#!/bin/sh
# Makes the files in ./secrets that compose.yaml hands to the containers: random passwords, the key of the tenant wall, a data key, and URLs with them.
# Files that are there stay. `docker compose up` comes after it.
set -eu
cd "$(dirname "$0")"
umask 022
mkdir -p -m 700 secrets # the containers read single files of it as other users
cd secrets

make() { [ -s "$1" ] || printf '%s\n' "$2" >"$1"; }
for name in postgres replicator gateway_reader gateway_writer; do make "password_$name" "$(openssl rand -hex 24)"; done
make wall_key "$(openssl rand -base64 32)"
make data_keys "{\"k1\":\"$(openssl rand -base64 32)\"}"
# Each server is in both: after a failover the gateways need nothing.
reader="postgres://gateway_reader:$(cat password_gateway_reader)@"
writer="postgres://gateway_writer:$(cat password_gateway_writer)@"
make replica_urls "${reader}standby/workspace ${reader}primary/workspace"
make primary_urls "${writer}primary/workspace ${writer}standby/workspace"
make admin_url "postgres://postgres:$(cat password_postgres)@primary/workspace"
