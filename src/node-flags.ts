/**
 * Flags of Node for `serve`. V8's young generation grows to 32 MB in Node 20 and 22, and to 128 MB in Node 24; the gateway
 * makes little garbage and needs 16 MB. It cannot be set in a process that runs.
 */
export const nodeFlags = ['--max-semi-space-size=8'];
