/**
 * Suits processes of two seconds: Node 20 optimizes after 132 KB of bytecode; with 10 MB ten files take a seventh less of the processor.
 */
export const lateOptimizing: readonly string[] = process.version.startsWith('v20.')
  ? ['--interrupt-budget=10000000']
  : [];
