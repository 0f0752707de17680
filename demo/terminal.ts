import { fill } from '../src/openapi/template.js';
import { projectText } from '../src/paths.js';
import type { DemoWorkspace } from './database.js';

const barWidth = 30;

/** The parts of a running demo that its text shows. */
interface Shown {
  readonly url: string;
  readonly opsUrl: string;
  /** The address of the documentation page. */
  readonly docs: string;
  readonly primaryUrl: string;
  readonly replicaUrls: readonly string[];
  readonly workspaces: readonly DemoWorkspace[];
  /** An installation and a customer of the first workspace. */
  readonly installationId: string;
  readonly customerId: string;
  /** The name of installations in the app's audit log. */
  readonly entity: string;
}

/** Addresses, tokens, and curl lines that work as they stand: demo/demo.txt, filled. */
export function demoText({ replicaUrls, workspaces, ...shown }: Shown): string {
  const template = projectText('demo/demo.txt').trimEnd();
  const replicas = replicaUrls.map((url) => `Replica    ${url}`).join('\n');
  const tokens = workspaces.map(tokensText).join('');
  return String(fill(template, { ...shown, replicas, tokens, token: workspaces[0]?.tokens.all }));
}

function tokensText({ name, tokens }: DemoWorkspace): string {
  const lines = Object.entries(tokens).map(([purpose, token]) => `  ${purpose.padEnd(11)}${token}`);
  return `\nTokens of ${name}\n${lines.join('\n')}\n`;
}

/** Shows the progress of the seed: a bar on a terminal, else a line for each step and each tenth. */
export function progressTo(stream: NodeJS.WriteStream): (done: number, what: string) => void {
  let shown = '';
  return (done, what) => {
    const percent = Math.floor(done * 100);
    const state = stream.isTTY ? `${percent} ${what}` : `${Math.floor(percent / 10)} ${what}`;
    if (state === shown) return;
    shown = state;
    if (!stream.isTTY) {
      stream.write(`Seeding ${String(percent).padStart(3)} % ${what}\n`);
      return;
    }
    const filled = Math.round(done * barWidth);
    const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
    stream.write(`\r\x1b[KSeeding ${bar} ${String(percent).padStart(3)} % ${what}${done >= 1 ? '\n' : ''}`);
  };
}
