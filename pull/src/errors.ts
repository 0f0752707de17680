import { RefusedRequest } from './api.js';
import { OutOfMemory, UnusableDestination } from './destination.js';
import { UnfitDocument } from './document.js';
import { UsageError } from './options.js';

/** Some resources were not brought up to date; each was named when it failed. */
export class ResourcesFailed extends Error {}

type CodedError = { readonly code?: string; readonly message: string };

const isDiskFull = ({ code, message }: CodedError): boolean =>
  code === 'ENOSPC' || code === '53100' || /No space left|not enough disk/i.test(message);

/** Recognizes a lost connection, a conflict, no free connection, a stop or a start (PostgreSQL, Appendix A); not a full disk. */
function isLostConnection(error: unknown): boolean {
  const { code, message } = error as CodedError;
  if (code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E'))
    return /^(08|40|53300|57P0[123])/.test(code);
  return (
    /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(String(code)) ||
    /Connection terminated|connection error/.test(message)
  );
}

/** Tells whether the error concerns one resource, so that the others can continue. */
export function isOfOneResource(error: unknown): boolean {
  const { message } = error as CodedError;
  if (error instanceof RefusedRequest) return error.status !== 401;
  if (error instanceof UnusableDestination) return !error.canPass;
  if (error instanceof OutOfMemory || error instanceof UsageError) return false;
  return !isLostConnection(error) && !isDiskFull(error as CodedError) && !/FATAL|invalidated/.test(message);
}

/** Tells whether the next run of `--every` can succeed without the operator. */
export const canPass = (error: unknown): boolean =>
  error instanceof UnusableDestination ? error.canPass : error instanceof UsageError || isLostConnection(error);

/** Describes the error in words that an operator can act on. */
export function describeError(error: unknown): string {
  const { code, message } = error as CodedError;
  const said = [RefusedRequest, UnusableDestination, UsageError, UnfitDocument, ResourcesFailed].some(
    (kind) => error instanceof kind,
  );
  if (said) return message;
  if (isDiskFull(error as CodedError)) return `The disk is full: ${message.split('\n')[0]}`;
  if (code === 'EEXIST' || code === 'ENOTDIR') return `A file is in the way of a folder: ${message}`;
  if (code === '23503')
    return `A table of yours refers to a record that is gone, so that it cannot be deleted here: ${message}. Give the reference ON DELETE CASCADE or SET NULL.`;
  if (['EACCES', 'EPERM', 'EROFS', '42501'].includes(code ?? ''))
    return `The destination cannot be written: ${message}`;
  if (isLostConnection(error)) return `The connection to the destination was lost: ${message}`;
  return `${message.split('\n')[0]}`;
}
