/**
 * Flags of Node for processes that live for two seconds, as most of the tests do. Node 20 optimizes a function after 132 KB of
 * bytecode, which is a fifth of their processor time; Node 22 and later have no such flag.
 */
export const lateOptimizing: readonly string[] = process.version.startsWith('v20.')
  ? ['--interrupt-budget=1000000']
  : [];
