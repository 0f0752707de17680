import { type DestinationStream, type Logger, pino } from 'pino';
import { sqlStateOf } from '../errors.js';
import { events, type Observe } from '../events.js';

/** Writes each event as one JSON line; `msg` is its type. */
export function logEvents(level: string, destination?: DestinationStream): Observe {
  const logger: Logger = destination ? pino({ level }, destination) : pino({ level });
  return (event) => {
    const { type, ...fields } = event;
    logger[events[type].level]('error' in fields ? { ...fields, ...errorFields(fields.error) } : fields, type);
  };
}

/** Parts of a database error that quote no stored value: names of the schema, never message, detail, hint, context and statement. */
const safeParts = ['code', 'routine', 'schema', 'table', 'constraint'] as const;

/**
 * An error as it may be logged. The message of a database error can quote a stored value (`invalid input syntax for type
 * uuid: "…"`), that of a SyntaxError its input, and that of an error around one of them either: those messages are left out.
 */
function errorFields(error: Error): Record<string, unknown> {
  const chain = causesOf(error);
  const quotesValues = chain.some((link) => sqlStateOf(link) !== undefined || link instanceof SyntaxError);
  const fields = ({ name, message, stack }: Error): Record<string, unknown> => ({
    error: name,
    ...(!quotesValues && { message }),
    stack: quotesValues ? framesOf(stack, message) : stack,
  });
  const parts = (link: object): object =>
    Object.fromEntries(safeParts.filter((part) => part in link).map((part) => [part, link[part as never]]));
  const [first, ...causes] = chain.map((link) => ({ ...parts(link), ...fields(link) }));
  return { ...first, ...(causes.length > 0 && { causes }) };
}

/** The error and the errors that it names as `cause`, which can name each other in a circle. */
function causesOf(error: Error): Error[] {
  const chain: Error[] = [];
  for (let link: unknown = error; link instanceof Error && !chain.includes(link); link = link.cause) chain.push(link);
  return chain;
}

/** The stack without its head, which repeats the message; none when the end of the message is not found. */
function framesOf(stack: string | undefined, message: string): string | undefined {
  const at = stack?.indexOf(message) ?? -1;
  if (at < 0) return undefined;
  return stack
    ?.slice(at + message.length)
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .join('\n');
}
