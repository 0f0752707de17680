import { constants } from 'node:os';
import { getSystemErrorMap } from 'node:util';
import test from 'ava';
import pg from 'pg';
import {
  correctionOf,
  databaseErrorKind,
  Problem,
  type ProblemCode,
  problems,
  reasonOf,
  sqlStateOf,
} from '../../src/errors.js';

function fromPostgres(code: string): Error {
  return Object.assign(new pg.DatabaseError('as PostgreSQL says it', 1, 'error'), { code, severity: 'ERROR' });
}

test('an error of the operating system or of Node is never taken for an SQLSTATE, whatever its code looks like', (t) => {
  const names = new Set([...Object.keys(constants.errno), ...[...getSystemErrorMap().values()].map(([name]) => name)]);
  t.true(names.has('EPIPE') && names.has('E2BIG') && names.size > 70);
  for (const code of [...names, 'ERR_STREAM_DESTROYED', 'ERR_SSL_WRONG_VERSION_NUMBER']) {
    const error = Object.assign(new Error(code), { code, errno: -1, syscall: 'write' });
    t.is(sqlStateOf(error), undefined, code);
    t.is(databaseErrorKind(error), 'retry', code);
  }
});

test('an SQLSTATE is read by its code, then by its class; all others are permanent', (t) => {
  const kinds = {
    '57014': 'timeout',
    '57P01': 'retry',
    '40001': 'retry',
    XX000: 'retry',
    '28P01': 'retry',
    '3D000': 'retry',
    '42P05': 'retry',
    '42601': 'permanent',
    EPIPE: 'permanent',
  };
  for (const [code, kind] of Object.entries(kinds)) t.is(databaseErrorKind(fromPostgres(code)), kind as never, code);
});

test('a database that does not fit has a correction, and DDL under a prepared statement is one only in a write', (t) => {
  for (const code of ['42501', '428C9', '42P01', '42804', '23514'])
    t.regex(correctionOf(fromPostgres(code)) ?? '', /^[A-Z].*: .*[.]$/, code);
  for (const code of ['40001', '57014', '23503', '22P02', 'XX000'])
    t.is(correctionOf(fromPostgres(code)), undefined, code);
  t.is(databaseErrorKind(fromPostgres('0A000')), 'retry');
  t.is(databaseErrorKind(fromPostgres('0A000'), 'write'), 'permanent');
  t.is(databaseErrorKind(fromPostgres('40001'), 'write'), 'retry');
});

test('a lost connection has no code and is worth a retry; an error of the gateway itself is permanent', (t) => {
  t.is(databaseErrorKind(new Error('Connection terminated unexpectedly')), 'retry');
  for (const Bug of [TypeError, RangeError, ReferenceError, SyntaxError])
    t.is(databaseErrorKind(new Bug('x is not a function')), 'permanent', Bug.name);
});

test('the reason of a failure has the message of the gateway or of the connection, but of PostgreSQL only the SQLSTATE', (t) => {
  t.is(reasonOf(fromPostgres('22P02')), 'PostgreSQL error 22P02');
  t.is(reasonOf(fromPostgres('28P01')), 'PostgreSQL error 28P01: the password is wrong');
  t.is(reasonOf(new Error('the probe had no answer')), 'the probe had no answer');
});

test('a problem that asks for patience has its Retry-After from the table, unless the code that throws it knows better', (t) => {
  for (const code of Object.keys(problems) as ProblemCode[]) {
    const { status } = problems[code];
    const wanted = status === 429 || status === 503 || status === 409;
    t.is(/^[1-9]\d*$/.test(new Problem(code, '').headers['Retry-After'] ?? ''), wanted, code);
  }
  t.is(new Problem('overloaded', '', { headers: { 'Retry-After': '9' } }).headers['Retry-After'], '9');
});
