/** The connection URLs in a setting that holds several, separated by spaces or commas. */
export function connectionUrls(setting: string): string[] {
  return setting.split(/[\s,]+/).filter((url) => url !== '');
}

/** Whether the text is a connection URL. pg accepts any text, and would look for a host named "base". */
export function isConnectionUrl(url: string): boolean {
  return /^postgres(ql)?:/.test(url) && URL.canParse(url);
}

/** "host:port/database" of a connection URL, for messages: no user, no password, no parameters. */
export function serverName(url: string): string {
  if (!isConnectionUrl(url)) return 'not a connection URL';
  const { hostname, port, pathname, searchParams } = new URL(url);
  return `${hostname || searchParams.get('host') || 'localhost'}:${port || '5432'}${pathname}`;
}
