/** A value, or a promise of it. What mostly needs no wait returns one, because each promise and each turn of the microtask queue costs a detail. */
export type Awaitable<T> = T | Promise<T>;

/** Calls `next` with the value: at once, unless it is a promise. */
export function after<T, Next>(value: Awaitable<T>, next: (value: T) => Promise<Next>): Promise<Next>;
export function after<T, Next>(value: Awaitable<T>, next: (value: T) => Awaitable<Next>): Awaitable<Next>;
export function after<T, Next>(value: Awaitable<T>, next: (value: T) => Awaitable<Next>): Awaitable<Next> {
  return value instanceof Promise ? value.then(next) : next(value);
}
