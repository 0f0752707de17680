/**
 * Flags of Node for `serve`; they cannot be set in a process that runs. V8's young generation grows to 32 MB in Node 20 and 22, and to
 * 128 MB in Node 24; the gateway has 32 MB with each. With 16 MB Node 24 collected it 75 times a second under details: with 32 MB they
 * take 4 to 19 % less of the processor, lists of 100 installations 10 % less, and the p99 of details falls by a sixth to a half.
 * V8 lets four threads collect garbage beside the main thread. Where the gateway has one processor they take it from the main
 * thread, and delay requests by up to 20 ms; with one such thread Node 24 keeps 40 MB more.
 * V8 lets an old generation whose bound is large grow further between collections. With the 4 GB that it takes on a machine of 24 GB
 * the heap of 65 MB grew to 270 before one, with 1 GB from 55 to 105: 268 to 357 MB of resident memory after 100,000 tokens, and 182.
 * In a container of less than 2 GB V8 takes less than 1 GB by itself, 259 MB in one of 384 MB: there the flag costs 13 MB after 120,000
 * tokens.
 */
export const nodeFlags = ['--max-semi-space-size=16', '--v8-pool-size=2', '--max-old-space-size=1024'];

/**
 * Environment of glibc for `serve`. By default each thread of Node and V8 allocates from an arena of its own, and memory that one
 * of them has freed is of no use to the others: 14 MB with Node 24 after a load. And it keeps up to twice the largest block that was
 * ever freed, such as the code cache of the start: with a fixed threshold 3 MB less at rest. Both are read before the program runs.
 */
export const nodeEnvironment = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };
