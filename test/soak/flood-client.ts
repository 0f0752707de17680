import { Agent, get } from 'node:http';

// Child process of test/soak/flood.ts: `victim URL TOKEN…` sends a request every 10 ms, `flood URL TOKEN…` 200 at once, for 12 s.

const [role, url, ...tokens] = process.argv.slice(2) as [string, string, ...string[]];
const agent = new Agent({ keepAlive: true });

function ask(token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const request = get(url, { agent, headers: { authorization: `Bearer ${token}` } }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode === 200 ? performance.now() - startedMs : Number.NaN));
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}

const durations: number[] = [];
if (role === 'victim') {
  const running: Promise<number>[] = [];
  for (let n = 0; n < 600; n++) {
    running.push(ask(tokens[n % tokens.length] as string));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  durations.push(...(await Promise.all(running)));
} else {
  const endMs = performance.now() + 12_000;
  const loop = async (token: string): Promise<void> => {
    while (performance.now() < endMs) await ask(token);
  };
  await Promise.all(Array.from({ length: 200 }, (_, n) => loop(tokens[n % tokens.length] as string)));
}
process.send?.(durations, () => process.exit(0));
