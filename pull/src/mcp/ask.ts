import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Reply, Tool } from './copy.js';

const msMax = 10_000;

/** A question without an answer. The message is for the assistant. */
export class NotAnswered extends Error {}

/** The question before: the memory of two would add up. */
let before: Promise<unknown> = Promise.resolve();

/** The answer of the copy. Rejects with NotAnswered. */
export function ask(tool: Tool, file: string, argument = ''): Promise<unknown> {
  const mine = before.then(() => askAlone([tool, file, argument]));
  before = mine.catch(() => undefined);
  return mine;
}

/** Asks in a process that can be killed: DuckDB does not interrupt all of its functions. */
function askAlone(question: readonly string[]): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL('./copy.js', import.meta.url)), {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const refuse = (reason: string): void => reject(new NotAnswered(reason));
    const timer = setTimeout(() => {
      refuse(`The statement took longer than ${msMax / 1000} seconds and was stopped.`);
      child.kill('SIGKILL');
    }, msMax);
    child.once('message', (reply: Reply) => {
      if ('answer' in reply) resolve(reply.answer);
      else refuse(reply.refusal);
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
