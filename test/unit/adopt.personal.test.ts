import test from 'ava';
import type { Column, ForeignKey, SampleRow } from '../../src/adopt/catalog.js';
import { reasonToLeaveOut } from '../../src/adopt/columns.js';
import { fieldsOf } from '../../src/adopt/fields.js';
import { partsOf } from '../../src/adopt/parts.js';
import type { Subject, Survey } from '../../src/adopt/survey.js';
import { findTenant } from '../../src/adopt/tenant.js';
import { column, table } from '../support/tables.js';

// Personal data and secrets behind names that do not speak of them.

const [id, company] = [column('id', 'bigint'), column('company_id', 'bigint')];
const companies = table('companies', [id]);
const staff = table('staff', [id, company], { company_id: 'companies' });

/** How the jobs of `drafted` refer to the companies, where a test gives nothing else. */
const ofCompany = { table: 'companies', columns: ['company_id'], references: ['id'], cascades: false };

/** The columns that a draft shows of a table, and of a part of its records, with one value each, and the reasons for the others. */
function drafted(
  columns: readonly Column[],
  values: Readonly<Record<string, string>>,
  foreignKeys: readonly ForeignKey[] = [],
) {
  const own = { ...table('jobs', [id, company, ...columns]), foreignKeys: [ofCompany, ...foreignKeys] };
  const part = table('job_parts', [column('job_id', 'bigint'), ...columns], { job_id: 'jobs' });
  const rows: SampleRow[] = [new Map(Object.entries(values))];
  const tenant = findTenant('app', [companies, staff, own, part]);
  const subject: Subject = { table: own, id, tenant: company, steps: [], rows, documents: [], parts: [part] };
  const survey = { tenant, subjects: [subject], partRows: new Map([[part, rows]]) } as unknown as Survey;
  const fields = fieldsOf(subject, survey, []);
  const [list] = partsOf(subject, survey, fields);
  return { fields: Object.keys(fields.fields).slice(1), leftOut: fields.leftOut.map(([reason]) => reason), list };
}

test('names in one word, and those of papers, cards and codes, speak of personal data and of secrets', (t) => {
  const personal = [
    'useremail',
    'contactemailaddress',
    'homephone',
    'mobilephonenumber',
    'customertelephone',
    'whatsapp_number',
  ];
  const papers = [
    'passport_no',
    'socialSecurityNumber',
    'national_id',
    'drivers_license',
    'bank_account',
    'creditCard',
    'card_number',
  ];
  for (const name of [...personal, ...papers, 'dateofbirth'])
    t.is(reasonToLeaveOut(column(name)), 'personal data, by the name', name);
  const codes = ['two_factor_recovery_codes', 'SecurityStamp', 'cvc', 'access_code', 'connectionString', 'pwd', 'jwt'];
  for (const name of [
    'userpassword',
    'passwordresettoken',
    'accesstoken',
    'refreshTokenHash',
    'clientsecret',
    ...codes,
  ])
    t.is(reasonToLeaveOut(column(name)), 'secrets, by the name', name);
  for (const name of [
    'secretary',
    'microphone',
    'tokenizer',
    'card',
    'cardinality',
    'bank',
    'code',
    'postal_code',
    'passed',
    'nationality_id',
  ])
    t.is(reasonToLeaveOut(column(name)), undefined, name);
});

test('a column of e-mail addresses is left out, whatever its name and type', (t) => {
  const cases = {
    text: 'jan@x.example',
    citext: 'Jan <jan@x.example>',
    'text[]': '{a@x.example,b@x.example}',
    jsonb: '{"to": "jan@x.example"}',
  };
  for (const [type, value] of Object.entries(cases)) {
    const { fields, leftOut, list } = drafted([column('login', type)], { login: value });
    t.deepEqual([fields, leftOut], [[], ['e-mail addresses, by the values']], type);
    t.notRegex(list?.sql ?? '', /login/, type);
  }
  for (const value of ['react@18.2.0', '@jan', 'https://maps.example/@52.3,4.9', 'a @ b.example'])
    t.deepEqual(drafted([column('login')], { login: value }).fields, ['login'], value);
});

test('a document with members that speak of personal data or secrets is left out', (t) => {
  const reason = 'documents with personal data, by the names of their members';
  const personal: readonly (readonly [type: string, value: string])[] = [
    ['jsonb', '{"name": "a", "contact": {"phoneNumber": "06"}}'],
    ['jsonb', '[{"apiKey": "x"}]'],
    ['jsonb', String.raw`{"form": "{\"phone\": \"06\"}"}`],
    ['text', '{"email": null, "cut": "…'],
    ['text', '---\nname: a\n- :email: b\n'],
    ['ext.hstore', '"name"=>"a", "iban"=>"NL"'],
    ['xml', '<a><telefoon>06</telefoon></a>'],
    ['text', 'a:1:{s:5:"phone";s:2:"06";}'],
  ];
  for (const [type, value] of personal) {
    const { fields, leftOut, list } = drafted([column('data', type)], { data: value });
    t.deepEqual([fields, leftOut], [[], [reason]], value);
    t.notRegex(list?.sql ?? '', /data/, value);
  }
  const plain: readonly (readonly [type: string, value: string])[] = [
    ['jsonb', '{"email": true, "sizes": [1]}'],
    ['text', 'phone: 06 is what the note says'],
    ['text', '<p>phone</p>'],
    ['text', 'a:1:{s:5:"email";b:1;}'],
  ];
  for (const [type, value] of plain)
    t.deepEqual(drafted([column('data', type)], { data: value }).fields, ['data'], value);
});

test('a reference by an e-mail address is left out, and one by the id of a record is shown', (t) => {
  const key = (own: string, to: string): ForeignKey => ({
    table: 'jobs',
    columns: [own],
    references: [to],
    cascades: false,
  });
  const named = (name: string, to: string, value = '1') =>
    drafted([{ ...column(name), refers: true }], { [name]: value }, [key(name, to)]).fields;
  t.deepEqual(named('customer_email', 'email'), []);
  t.deepEqual(named('customer', 'email', 'jan@x.example'), []);
  t.deepEqual(named('customer_no', 'number'), ['customerNo']);
  t.deepEqual(named('email_job_id', 'id'), ['emailJobId']);
});

test('bytes in a list are left out, as they are by themselves', (t) => {
  const { fields, leftOut, list } = drafted([{ ...column('keys', 'bytea[]'), isArray: true }], { keys: '{"\\\\x00"}' });
  t.deepEqual([fields, leftOut], [[], ['unknown bytes, by the type']]);
  t.notRegex(list?.sql ?? '', /keys/);
});
