/**
 * Flags of Node for `serve`; they cannot be set in a process that runs. V8's young generation grows to 32 MB in Node 20 and 22, and to
 * 128 MB in Node 24; the gateway makes little garbage and needs 16 MB; with 8 MB lists of 100 came at two thirds of the rate.
 * V8 lets four threads collect garbage beside the main thread. Where the gateway has one processor they take it from the main
 * thread, and delay requests by up to 20 ms; with one such thread Node 24 keeps 40 MB more.
 */
export const nodeFlags = ['--max-semi-space-size=8', '--v8-pool-size=2'];

/**
 * Environment of glibc for `serve`. By default each thread of Node and V8 allocates from an arena of its own, and memory that one
 * of them has freed is of no use to the others: 14 MB with Node 24 after a load. It is read before the program runs.
 */
export const nodeEnvironment = { MALLOC_ARENA_MAX: '1' };
