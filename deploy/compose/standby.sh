#!/bin/sh
# Makes the standby from the primary at its first start (-R writes down the connection and the replication slot), then starts it as the image does.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  PGPASSWORD=$(cat /run/secrets/password_replicator) \
    pg_basebackup -d 'host=primary user=replicator application_name=standby' -D "$PGDATA" -R -X stream -S standby -c fast
fi
exec docker-entrypoint.sh postgres "$@"
