import type { Context } from 'koa';
import { isHost } from './exchange.js';

/** Absolute URL the client reached us at, without a trailing slash: the configured one, else by the Host header. */
export function baseUrl(ctx: Context, publicUrl: string): string {
  if (publicUrl !== '') return publicUrl;
  const forwarded = isHost(ctx.host) ? ctx.host : ctx.headers.host; // X-Forwarded-Host is checked as Host is
  const host = forwarded || `${ctx.socket.localAddress}:${ctx.socket.localPort}`;
  return `${ctx.protocol === 'https' ? 'https' : 'http'}://${host}`; // X-Forwarded-Proto may be anything
}
