import { type DestinationStream, type Logger, pino } from 'pino';
import type { Event, Observe } from '../events.js';

/** Level of each event; a request's level depends on its outcome. */
const levels: Readonly<Record<Event['type'], 'debug' | 'info' | 'warn' | 'error'>> = {
  request_finished: 'info',
  request_failed: 'error',
  page_broken: 'warn',
  page_resumed: 'warn',
  decode_failed: 'warn',
  limit_hit: 'info',
  request_shed: 'warn',
  client_too_slow: 'warn',
  replica_admitted: 'info',
  replica_ejected: 'warn',
  replica_failed: 'warn',
  primary_failed: 'warn',
  redis_failed: 'warn',
  primary_read: 'debug',
  write_finished: 'debug',
  crashed: 'error',
  started: 'info',
  stopping: 'info',
};

/** The log's side of the events: one JSON line each. Errors from PostgreSQL are told without detail, hint and statement, which quote values. */
export function logEvents(level: string, destination?: DestinationStream): Observe {
  const logger: Logger = destination ? pino({ level }, destination) : pino({ level });
  return (event) => {
    const { type, ...fields } = event;
    logger[levels[type]]('error' in fields ? { ...fields, ...errorFields(fields.error) } : fields, type);
  };
}

function errorFields(error: Error): object {
  const { code } = error as { code?: unknown };
  return { code, error: error.name, message: error.message, stack: error.stack };
}
