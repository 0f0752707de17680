import fc from 'fast-check';
import type { OpenApiDocument } from '../../../src/serve/openapi/document.js';
import { Harvest } from './harvest.js';
import { judge, textOf } from './properties.js';
import { addressed, bytesOf, curlOf, type FuzzRequest, grantOf } from './request.js';
import { requests } from './requests.js';
import { NoResponse, Wire } from './wire.js';
import type { World } from './world.js';

export interface FuzzOptions {
  readonly origin: string;
  readonly document: OpenApiDocument;
  readonly world: World;
  readonly seed: number;
  readonly requests: number;
  readonly parallel: number;
  onProgress?(done: number): void;
}

export interface FuzzReport {
  readonly failure: string | null;
  readonly requests: number;
  readonly statuses: ReadonlyMap<number, number>;
  readonly codes: ReadonlySet<string>;
  readonly seconds: number;
}

const shrinkMsMax = 20_000;

export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { origin, document, world, seed, parallel } = options;
  const startedMs = performance.now();
  const judged = judge(world, document);
  const harvest = new Harvest();
  const statuses = new Map<number, number>();
  const codes = new Set<string>();
  let done = 0;
  let failing: { readonly worker: number; readonly sinceMs: number } | null = null;

  const holds = async (wire: Wire, request: FuzzRequest): Promise<void> => {
    const response = await wire.exchange(bytesOf(request), request.method);
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    const text = textOf(response);
    const code = response.status < 400 ? undefined : /"code":"(\w+)"/.exec(text)?.[1];
    if (code !== undefined) codes.add(code);
    const faults = judged(request, response, text);
    if (faults.length > 0) throw new Error(`${faults.join('\n')}\n\n${response.head}\n\n${text.slice(0, 2000)}`);
    const grant = grantOf(world, request);
    if (grant !== null && response.status < 300) harvest.learn(grant.workspace, request, response, text);
  };

  /** One connection's share. fast-check shrinks what fails; the others stop then. */
  const share = async (worker: number): Promise<string | null> => {
    const wire = new Wire(origin);
    let last: FuzzRequest | null = null;
    const property = fc.asyncProperty(requests(world, harvest), async (generated) => {
      // A request that passes is not shrunk further.
      if (failing !== null && (failing.worker !== worker || performance.now() - failing.sinceMs > shrinkMsMax)) return;
      const request = addressed(world, generated);
      try {
        await holds(wire, request);
      } catch (error) {
        // Shrinking may change what is wrong, and keeps the process so busy that time-outs follow.
        if (failing === null)
          console.error(`${new Date().toISOString()} ${(error as Error).message}\n${curlOf(origin, request)}`);
        failing ??= { worker, sinceMs: performance.now() };
        if (failing.worker !== worker) return;
        last = request;
        wire.close();
        throw error instanceof NoResponse ? new Error(`no response: ${error.message}`) : error;
      }
      if (++done % 1000 === 0) options.onProgress?.(done);
    });
    const numRuns = Math.ceil(options.requests / parallel);
    const result = await fc.check(property, { seed: seed + worker, numRuns });
    wire.close();
    if (!result.failed || last === null) return null;
    const error = result.errorInstance as Error | null;
    return `seed ${seed} (path ${result.counterexamplePath})\n${curlOf(origin, last)}\n${error?.message}`;
  };

  const failures = await Promise.all(Array.from({ length: parallel }, (_, worker) => share(worker)));
  const seconds = (performance.now() - startedMs) / 1000;
  return { failure: failures.find((each) => each !== null) ?? null, requests: done, statuses, codes, seconds };
}
