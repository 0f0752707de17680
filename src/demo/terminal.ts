import type { DemoWorkspace } from './database.js';

const barWidth = 30;

/** Addresses, tokens and example ids of a running demo. */
export interface DemoText {
  readonly url: string;
  readonly opsUrl: string;
  readonly primaryUrl: string;
  readonly replicaUrls: readonly string[];
  readonly workspaces: readonly DemoWorkspace[];
  /** An installation and a customer of the first workspace, for the examples. */
  readonly installationId: string;
  readonly customerId: string;
}

/** Addresses, tokens, and curl lines that work as they stand. */
export function demoText(demo: DemoText): string {
  const [first] = demo.workspaces;
  return `
API        ${demo.url}/api/v1
Docs       ${demo.opsUrl}/docs   (beside /livez, /readyz and /metrics)
Primary    ${demo.primaryUrl}
${demo.replicaUrls.map((url) => `Replica    ${url}`).join('\n')}
${demo.workspaces.map(tokensText).join('')}
Try:

  BASE=${demo.url}/api/v1
  TOKEN=${first?.tokens.all}

  curl -H "Authorization: Bearer $TOKEN" "$BASE/klanten?perPage=2"
  curl -H "Authorization: Bearer $TOKEN" "$BASE/installaties?perPage=2&total=true"
  curl -H "Authorization: Bearer $TOKEN" "$BASE/werkbonnen?installationId=${demo.installationId}"
  curl -H "Authorization: Bearer $TOKEN" "$BASE/logboeken?entity=installatie&perPage=2"

  # One installation with its ETag, then a change that only succeeds if no other client was faster, and that can be repeated safely
  ETAG=$(curl -s -D - -o /dev/null -H "Authorization: Bearer $TOKEN" "$BASE/installaties/${demo.installationId}" | tr -d '\\r' | sed -n 's/^etag: //Ip')
  curl -X PATCH -H "Authorization: Bearer $TOKEN" -H "If-Match: $ETAG" -H "Idempotency-Key: change-$(date +%s)" \\
    -H 'Content-Type: application/json' -d '{"locatie":"Kelder"}' "$BASE/installaties/${demo.installationId}"

  # A new installation
  curl -X POST -H "Authorization: Bearer $TOKEN" -H "Idempotency-Key: new-$(date +%s)" -H 'Content-Type: application/json' \\
    -d '{"customerId":"${demo.customerId}","naam":"Koelcel begane grond","merk":"Daikin"}' "$BASE/installaties"

Ctrl-C stops everything.`;
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
