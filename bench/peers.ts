import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { installPeer } from './peer-packages.js';
import type { Stage } from './stage.js';

/** A program that answers the same requests as the gateway: its paths, and its start. */
export interface Peer {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Path of one installation. */
  readonly detail: (id: string) => string;
  /** Path of the first 100 of a list; undefined where it has none that compares. */
  readonly list: { readonly installaties: string; readonly werkbonnen?: string };
  /** `folder` is for files of its own; it is removed with the peer. */
  readonly launch: (port: number, folder: string) => Launch;
}

export interface Launch {
  /** A program of Node's, or a path to any other. */
  readonly program: URL | string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Connections of peers with a pool. The gateway opens 6 to a replica, 2 of them for reads such as these. */
const poolSize = 8;

/** The reference that has to take part: the gateway's own statements and nothing around them. */
export function barePeer(stage: Stage): Peer {
  return {
    name: 'bare node:http + pg',
    headers: {},
    detail: (id) => `/installaties/${id}`,
    list: { installaties: '/installaties', werkbonnen: '/werkbonnen' },
    launch: () => ({
      program: new URL('./peers/bare.js', import.meta.url),
      env: { DATABASE_URL: stage.readerUrl, WORKSPACE: stage.workspace },
    }),
  };
}

/** The alternatives to the gateway. */
export function otherPeers(stage: Stage): Peer[] {
  const { POSTGREST_BIN: postgrestBinary } = process.env;
  return [fastify(stage), platformatic(stage), ...(postgrestBinary ? [postgrest(stage, postgrestBinary)] : [])];
}

function fastify({ readerUrl, token }: Stage): Peer {
  return {
    name: 'Fastify + pg',
    headers: { authorization: `Bearer ${token}` },
    detail: (id) => `/installaties/${id}`,
    list: { installaties: '/installaties?limit=100' },
    launch: () => ({
      program: pathToFileURL(join(installPeer('fastify'), 'server.js')),
      env: { DATABASE_URL: readerUrl, POOL_SIZE: String(poolSize) },
    }),
  };
}

/** Over the table itself, as it makes its routes of tables; without authentication. 100 is the most it gives by default. */
export function platformatic({ replicaUrl, workspace }: Stage): Peer {
  const order = 'orderby.createdAt=asc&orderby.id=asc';
  return {
    name: 'Platformatic DB',
    headers: {},
    detail: (id) => `/appInstallaties/${id}`,
    list: { installaties: `/appInstallaties/?limit=100&where.workspaceId.eq=${workspace}&${order}` },
    launch: (port, folder) => {
      const home = installPeer('platformatic');
      const file = join(folder, 'platformatic.json');
      const config = {
        $schema: 'https://schemas.platformatic.dev/@platformatic/db/2.61.0.json',
        server: { hostname: '127.0.0.1', port, logger: { level: 'error' } },
        db: { connectionString: replicaUrl, schema: ['app'], openapi: true, graphql: false, poolSize },
        watch: false,
      };
      writeFileSync(file, JSON.stringify(config));
      return {
        program: pathToFileURL(join(home, 'node_modules/@platformatic/db/db.mjs')),
        args: ['start', '-c', file],
      };
    },
  };
}

/** Over the table as well. */
function postgrest({ replicaUrl, workspace }: Stage, program: string): Peer {
  return {
    name: 'PostgREST',
    headers: {},
    detail: (id) => `/installaties?id=eq.${id}`,
    list: { installaties: `/installaties?workspace_id=eq.${workspace}&order=created_at,id&limit=100` },
    launch: (port) => ({
      program,
      env: {
        PGRST_DB_URI: replicaUrl,
        PGRST_DB_SCHEMAS: 'app',
        PGRST_DB_ANON_ROLE: 'postgres',
        PGRST_DB_POOL: String(poolSize),
        PGRST_SERVER_PORT: String(port),
        PGRST_LOG_LEVEL: 'error',
      },
    }),
  };
}
