import cluster, { type Worker } from 'node:cluster';

// Node's channel between a parent and its workers. The types of the messages are in workers/messages.ts and workers.ts.

type Message = { readonly type: string };
type Handlers<M extends Message, From extends unknown[]> = {
  readonly [T in M['type']]?: (message: Extract<M, { readonly type: T }>, ...from: From) => unknown;
};

function handle<M extends Message, From extends unknown[]>(handlers: Handlers<M, From>, message: M, from: From): void {
  handlers[message?.type as M['type']]?.(message as never, ...from);
}

/** Listens in the parent. */
export function listenToWorkers<M extends Message>(handlers: Handlers<M, [Worker]>): void {
  cluster.on('message', (worker: Worker, message: M) => handle<M, [Worker]>(handlers, message, [worker]));
}

/** Ignores a worker that has died, because its successor asks again. */
export function sendToWorker<M extends Message>(worker: Worker, message: M): void {
  worker.send(message, () => undefined);
}

/** Listens in a worker. Returns the function that stops listening. */
export function listenToParent<M extends Message>(handlers: Handlers<M, []>): () => void {
  const listen = (message: M): void => handle<M, []>(handlers, message, []);
  process.on('message', listen);
  return () => process.off('message', listen);
}

/** Ignores a parent that is gone. */
export function sendToParent<M extends Message>(message: M): void {
  process.send?.(message, undefined, undefined, () => undefined);
}
