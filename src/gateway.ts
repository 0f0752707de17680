import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DestinationStream } from 'pino';
import { fittingSettings } from './check/fitting-settings.js';
import { Closers } from './closers.js';
import { assertWireShape } from './db/wire/wire.js';
import { loadResources } from './definition/load.js';
import { StartRefused } from './errors.js';
import type { Observe } from './events.js';
import type { Gateway } from './open-gateway.js';
import { logEvents } from './ops/log.js';
import { startTraces } from './ops/traces.js';
import { verifyKeys } from './projection/aes-gcm/verify-keys.js';
import { decryptModeOf } from './projection/codecs.js';
import { parseKeyring } from './projection/keyring.js';
import type { Settings } from './settings.js';

/**
 * Compiles the definitions, checks the databases, opens the listeners. `readAgain` reads the settings again when PostgreSQL
 * refuses a login. Throws StartRefused after closing all that it opened.
 */
export async function startGateway(
  settings: Settings,
  logTo?: DestinationStream,
  readAgain: () => Settings = () => settings,
): Promise<Gateway> {
  const closers = new Closers();
  try {
    return await start(settings, readAgain, logTo, closers);
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

async function start(
  given: Settings,
  readAgain: () => Settings,
  logTo: DestinationStream | undefined,
  closers: Closers,
): Promise<Gateway> {
  const sinks: Observe[] = [];
  const observe: Observe = (event) => {
    for (const sink of sinks) sink(event);
  };
  const log = logEvents(given.logLevel, observe, logTo);
  sinks.push(log.add);
  closers.add(() => log.close());
  const tracing = given.otelExporterOtlpEndpoint !== '';
  if (tracing) closers.add(await startTraces(given.otelExporterOtlpEndpoint));
  assertWireShape();
  const keyring = refusing(() => parseKeyring(given.dataKeys || '{}'));
  const resources = loadResources(given.resourcesDir);
  const checking = fittingSettings(given, resources, observe);
  checking.catch(() => undefined); // the keys can be refused first
  // While PostgreSQL answers, the keys are tried and the larger part of the program is loaded: in pieces, between which its answers
  // are read. The keys first, because the program then uses the memory of their buffers again.
  await nextTurn();
  if (decryptModeOf(given.decrypt) === 'batched') refusing(() => verifyKeys(keyring));
  await nextTurn();
  await import('./definition/compiled.js');
  await nextTurn();
  await import('./app.js');
  await nextTurn();
  const { openGateway } = await import('./open-gateway.js');
  const addSink = (sink: Observe): unknown => sinks.push(sink);
  return openGateway({ given, checking, resources, keyring, readAgain, observe, addSink, closers });
}

function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new StartRefused(`DATA_KEYS: ${(error as Error).message}`);
  }
}
