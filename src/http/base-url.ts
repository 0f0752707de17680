import type { Context } from 'koa';

/** Absolute URL the client reached us at, without a trailing slash: the configured one, else by the Host header. */
export function baseUrl(ctx: Context, publicUrl: string): string {
  if (publicUrl !== '') return publicUrl;
  const host = ctx.host || `${ctx.socket.localAddress}:${ctx.socket.localPort}`;
  return `${ctx.protocol}://${host}`;
}
