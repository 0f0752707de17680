import { cpus, release, totalmem, type } from 'node:os';

/** Machine and versions that the figures depend on, as label and value. */
export type MachineFacts = readonly (readonly [string, string])[];

export function machineFacts(postgresVersion: string): MachineFacts {
  const processors = cpus();
  return [
    ['Date', new Date().toISOString().slice(0, 10)],
    ['Processor', `${processors.length} × ${processors[0]?.model.trim() ?? 'unknown'}`],
    ['Memory', `${Math.round(totalmem() / 1e9)} GB`],
    ['System', `${type()} ${release().split('-')[0]}`],
    ['Node.js', process.version],
    ['PostgreSQL', postgresVersion],
  ];
}
