#!/bin/sh
# Run once by the image of PostgreSQL when it has made the empty database: the roles with their passwords, the schema of the
# reference app in place of yours, and the way in for the standby.
set -eu
secret() { cat "/run/secrets/password_$1"; }

psql -v ON_ERROR_STOP=1 -U postgres -d workspace \
  -v replicator="$(secret replicator)" -v reader="$(secret gateway_reader)" -v writer="$(secret gateway_writer)" <<'SQL'
create role replicator replication login password :'replicator';
-- Keeps WAL for the standby while it is away, from its first connection on.
select pg_create_physical_replication_slot('standby');
create role gateway_reader login password :'reader';
create role gateway_writer login password :'writer';
\i /app-schema.sql
SQL
echo 'host replication replicator all scram-sha-256' >>"$PGDATA/pg_hba.conf"
