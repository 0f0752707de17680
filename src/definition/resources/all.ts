import type { Resource } from '../resource.js';
import { installaties } from './installaties.js';
import { klanten } from './klanten.js';
import { logboeken } from './logboeken.js';
import { werkbonnen } from './werkbonnen.js';

/** The resources the API serves, in the order of its documentation. */
export const resources: readonly Resource[] = [klanten, installaties, werkbonnen, logboeken];
