import { statfsSync } from 'node:fs';

/** Linux keeps this folder in memory. A container has 64 MB there unless it is given more. */
const folder = '/dev/shm';
/** A run of all files takes 3 GB at most. */
const bytesMin = 6 * 1024 ** 3;

/** In memory a database is made and dropped in a third of the processor time. Undefined: there is no room. */
export function memoryFolder(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return Math.min(bavail * bsize, process.availableMemory()) >= bytesMin ? folder : undefined;
  } catch {
    return undefined; // not Linux
  }
}
