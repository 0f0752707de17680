import { basename } from 'node:path';

// Tests of faults wait for most of their time and those of features keep the processors busy. In the order of their names both kinds run
// at any time of the run; the short unit tests come last, beside the end of a longer one.
const place = (file) => `${file.includes('/unit/') ? 1 : 0}${basename(file)}`;

export default {
  files: ['dist/test/{fault,feature,unit}/**/*.test.js', 'dist/test/*.test.js'],
  sortTestFiles: (one, other) => (place(one) < place(other) ? -1 : 1),
  timeout: '10m',
  concurrency: 5,
  nodeArguments: ['--enable-source-maps'],
  workerThreads: false,
};
