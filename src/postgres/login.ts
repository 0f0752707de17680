import { sqlStateOf } from '../errors.js';
import { type Connect, Connection, type ConnectionOptions } from './connection.js';
import { serverName } from './connection-url.js';

/** Pause between two readings of a URL, so that many refused logins read its file once. */
const readPauseMs = 100;

/**
 * The connection URL of a server. When PostgreSQL refuses the login, the URL is read again from its setting, so that a rotated
 * password or user needs no restart.
 */
export class Login {
  #url: string;
  readonly #readUrls: () => readonly string[];
  readonly #onRenewed: () => void;
  #readMs = Number.NEGATIVE_INFINITY;

  /** `readUrls` reads the setting that holds the URL, now; it can throw. */
  constructor(url: string, readUrls: () => readonly string[], onRenewed: () => void) {
    this.#url = url;
    this.#readUrls = readUrls;
    this.#onRenewed = onRenewed;
  }

  get url(): string {
    return this.#url;
  }

  /** Connects with the URL, and once more when PostgreSQL refuses the login and the setting has another URL by now. */
  async use<T>(connect: (url: string) => Promise<T>): Promise<T> {
    const url = this.#url;
    try {
      return await connect(url);
    } catch (error) {
      if (!isLoginRefused(error) || !this.#isRenewed(url)) throw error;
      return connect(this.#url);
    }
  }

  /** Whether the URL differs from the refused one, if need be after reading the setting: its URL of the same server counts. */
  #isRenewed(refused: string): boolean {
    if (this.#url !== refused) return true;
    if (performance.now() - this.#readMs < readPauseMs) return false;
    this.#readMs = performance.now();
    try {
      this.#url = this.#readUrls().find((url) => serverName(url) === serverName(refused)) ?? refused;
    } catch {
      return false; // a file that is being replaced; the next refusal reads it again
    }
    if (this.#url === refused) return false;
    this.#onRenewed();
    return true;
  }
}

/** SQLSTATE class 28: an unknown user, a wrong password, or no entry in pg_hba.conf. */
function isLoginRefused(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('28') ?? false;
}

/** Returns a function that opens connections with the login. */
export function connectWith(login: Login, options: Omit<ConnectionOptions, 'url'>): Connect {
  return () => login.use((url) => Connection.open({ ...options, url }));
}
