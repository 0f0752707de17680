import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';

// The settings page of the example app, where owners make tokens by gateway_issuer (docs/adopt/tokens-in-your-app.md).

export interface Owner {
  readonly workspace: string;
  readonly workspaceName: string;
  readonly owner: string;
  readonly email: string;
}

interface TokenRow {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
}

interface SettingsPage {
  readonly url: string;
  readonly close: () => Promise<void>;
}

interface Answer {
  readonly status?: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const ownersSql = `select o.workspace_id::text as workspace, w.name as "workspaceName", o.id::text as owner, o.email
  from gateway.token_owners o join gateway.workspaces w on w.id = o.workspace_id order by w.name, o.email`;

/** `url` logs in as the app, whose role has gateway_issuer. A visitor chooses an owner: the demo has no passwords. */
export async function startSettingsPage(
  url: string,
  owners: readonly Owner[],
  scopes: readonly string[],
): Promise<SettingsPage> {
  const pool = new pg.Pool({ connectionString: url, max: 2, connectionTimeoutMillis: 10_000 });
  pool.on('error', () => undefined); // the next query reports it
  const sessions = new Map<string, Owner>();
  const server = createServer((request, response) => {
    answer({ pool, owners, scopes, sessions }, request)
      .catch((error: Error) => ({ status: 400, body: page(`<p role="alert">${escaped(error.message)}</p>${back}`) }))
      .then((answered: Answer) => send(response, answered));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await pool.end();
    },
  };
}

interface Parts {
  readonly pool: pg.Pool;
  readonly owners: readonly Owner[];
  readonly scopes: readonly string[];
  readonly sessions: Map<string, Owner>;
}

const found = { status: 303, headers: { Location: '/' } };

/** Another site that a browser shows may send forms, and a name of its own may lead here: Host and Origin are compared. */
async function answer(parts: Parts, request: IncomingMessage): Promise<Answer> {
  const { pool, owners, scopes, sessions } = parts;
  const { host, origin, cookie = '' } = request.headers;
  if (host !== `127.0.0.1:${request.socket.localPort}`) return { status: 421 };
  const signedIn = sessions.get(/(?:^|; )demo=([\w-]+)/.exec(cookie)?.[1] ?? '');
  if (request.method === 'GET') {
    if (request.url !== '/') return { status: 404 };
    return { body: signedIn ? await tokensPage(parts, signedIn) : signInPage(owners) };
  }
  if (request.method !== 'POST' || origin !== `http://${host}`) return { status: 403 };
  const form = new URLSearchParams(await textOf(request));
  if (request.url === '/sign-in') {
    const chosen = owners[Number(form.get('owner') ?? -1)];
    if (chosen === undefined) return { status: 400 };
    const session = randomUUID();
    sessions.set(session, chosen);
    return {
      ...found,
      headers: { ...found.headers, 'Set-Cookie': `demo=${session}; HttpOnly; SameSite=Strict; Path=/` },
    };
  }
  if (signedIn === undefined) return found;
  const { workspace, owner } = signedIn;
  if (request.url === '/revoke') {
    await pool.query('select gateway.revoke_token($1, $2)', [workspace, form.get('id')]);
    return found;
  }
  const isRotation = request.url === '/rotate';
  if (!isRotation && request.url !== '/issue') return { status: 404 };
  const chosen = form.getAll('scope').filter((scope) => scopes.includes(scope));
  const expiresAt = new Date(Date.now() + 90 * 86_400_000);
  const { rows } = isRotation
    ? await pool.query('select token from gateway.rotate_token($1, $2)', [workspace, form.get('id')])
    : await pool.query('select token from gateway.issue_token($1, $2, $3, $4, $5)', [
        workspace,
        owner,
        form.get('name'),
        chosen,
        expiresAt,
      ]);
  return { body: await tokensPage(parts, signedIn, rows[0].token) };
}

const bodyBytesMax = 10_000;

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) {
    text += chunk;
    if (text.length > bodyBytesMax) throw new Error('The form is too large.');
  }
  return text;
}

function send(response: ServerResponse, { status = 200, body = '', headers = {} }: Answer): void {
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    'Content-Security-Policy':
      "default-src 'none'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    'Referrer-Policy': 'same-origin',
    ...headers,
  });
  response.end(body);
}

const back = '<p><a href="/">Back</a></p>';

function page(content: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Access tokens</title><link rel="icon" href="data:,"></head>
<body><main><h1>Access tokens</h1>${content}</main></body></html>`;
}

function signInPage(owners: readonly Owner[]): string {
  const options = owners.map(
    ({ email, workspaceName }, i) => `<option value="${i}">${escaped(email)}, ${escaped(workspaceName)}</option>`,
  );
  return page(`<form method="post" action="/sign-in"><label>Owner <select name="owner">${options.join('')}</select></label>
<button id="sign-in">Sign in</button></form>`);
}

async function tokensPage(
  { pool, scopes }: Parts,
  { workspace, workspaceName }: Owner,
  token?: string,
): Promise<string> {
  const { rows } = await pool.query<TokenRow>('select * from gateway.tokens_of($1)', [workspace]);
  const once =
    token && `<p role="status">Copy the token now. It is not shown again: <code id="token">${token}</code></p>${back}`;
  const boxes = scopes.map(
    (scope) => `<label><input type="checkbox" name="scope" value="${escaped(scope)}"> ${escaped(scope)}</label>`,
  );
  return page(`<p>${escaped(workspaceName)}</p>${once ?? ''}<form method="post" action="/issue"><p><label>Name <input name="name" required maxlength="100"></label></p>
<p>${boxes.join(' ')}</p><p>It is valid for 90 days. <button id="issue">Make a token</button></p></form>
<table><tr><th>Name</th><th>Scopes</th><th>State</th><th>Change</th></tr>${rows.map(rowOf).join('')}</table>`);
}

function rowOf({ id, name, scopes, expires_at, revoked_at }: TokenRow): string {
  const isOver = expires_at !== null && expires_at.getTime() <= Date.now();
  const state = revoked_at ? 'revoked' : isOver ? 'expired' : 'valid';
  const button = (action: string, label: string) =>
    `<form method="post" action="/${action}"><input type="hidden" name="id" value="${id}"><button>${label}</button></form>`;
  const change = state === 'valid' ? button('rotate', 'Rotate') + button('revoke', 'Revoke') : '';
  return `<tr id="t${id}"><td>${escaped(name)}</td><td>${escaped(scopes.join(' '))}</td><td>${state}</td><td>${change}</td></tr>`;
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
