/** The connection URLs in a setting that holds several, separated by spaces or commas. */
export function connectionUrls(setting: string): string[] {
  return setting.split(/[\s,]+/).filter((url) => url !== '');
}

/** "host:port/database" of a connection URL, for messages: no user, no password, no parameters. */
export function serverName(url: string): string {
  try {
    const { hostname, port, pathname, searchParams } = new URL(url);
    return `${hostname || searchParams.get('host') || 'localhost'}:${port || '5432'}${decodeURIComponent(pathname)}`;
  } catch {
    return '(not a connection URL)';
  }
}
