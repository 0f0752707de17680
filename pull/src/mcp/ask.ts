import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Message, Tool } from './copy.js';

/** Bounds for opening the copy, and then for the statement: a busy machine takes long to start a process. */
const startMsMax = 60_000;
const msMax = 10_000;

/** A question without an answer. The message is for the assistant. */
export class NotAnswered extends Error {}

/** The answer as JSON text, and its number of rows. */
export interface QueryAnswer {
  readonly answer: string;
  readonly rows: number;
}

/** Lets a question wait for the one before: the memory of two would add up. */
let before: Promise<unknown> = Promise.resolve();

/** Asks the copy. Rejects with NotAnswered. */
export function askCopy(tool: Tool, file: string, argument = ''): Promise<QueryAnswer> {
  const mine = before.then(() => askAlone([tool, file, argument]));
  before = mine.catch(() => undefined);
  return mine;
}

/** Asks in a process that can be killed: DuckDB does not interrupt all of its functions. */
function askAlone(question: readonly string[]): Promise<QueryAnswer> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL('./copy.js', import.meta.url)), {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const refuse = (reason: string): void => reject(new NotAnswered(reason));
    const stopAfter = (ms: number, reason: string): NodeJS.Timeout =>
      setTimeout(() => {
        refuse(reason);
        child.kill('SIGKILL');
      }, ms);
    let timer = stopAfter(startMsMax, 'The copy could not be opened within a minute: the machine is busy. Ask again.');
    child.on('message', (message: Message) => {
      if (message === 'begun') {
        clearTimeout(timer);
        timer = stopAfter(msMax, `The statement took longer than ${msMax / 1000} seconds and was stopped.`);
        return;
      }
      if ('answer' in message) resolve(message);
      else refuse(message.refusal);
      child.kill('SIGKILL');
    });
    child.once('error', (error) => refuse(error.message));
    child.once('close', () => {
      clearTimeout(timer);
      refuse('The statement was too large for DuckDB.');
    });
    child.send(question);
  });
}
