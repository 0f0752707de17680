import { createHash } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { findReasonNotToShow, findReasonToLeaveOut } from '../../src/operate/adopt/columns/reasons.js';
import { areRandom } from '../../src/operate/adopt/columns/sampled-values.js';
import { column } from '../support/adopt/tables.js';
import { words } from '../support/words.js';

// Secrets by names and forms, and what only sounds like one.

test('a secret is known by its name, by that of its table, and by its form, and nothing else is taken for one', (t) => {
  const reason = (path: string, type = 'text', ...values: string[]) => {
    const [name = '', own = ''] = path.split('.');
    return findReasonNotToShow({ ...column(own, type, ...values), table: name }, []);
  };
  for (const path of words(`
    logins.one_time_code logins.loginCode users.mfa_code users.scratchCodes users.nonce users.otp users.smsPin users.magic_link users.verifyUrl
    users.confirmationLink users.invite_code users.auth_code users.reset_hash members.pass_code users.two_factor_code forms.csrf_nonce
    users.pass users.pass_crypted users.passTemp hosts.ftp_pass settings.smtp_pw`))
    t.is(reason(path), 'secrets, by the name', path);
  for (const path of words(`
    passcodes.code Passcode.value otps.value user_otps.code one_time_codes.code api_keys.key ApiKey.value invites.link team_invitations.code
    verifications.value verificationRecords.code email_confirmations.code confirmations.code magic_links.url nonces.value credentials.data
    password_resets.key account_recoveries.code login_challenges.code webhooks.url webhook_endpoints.url sessions.id user_sessions.sid
    sessions.payload django_session.data oauth_codes.value activations.key authorization_codes.code device_flows.user_code pairings.code otp.code
    email_verifications.code magic_logins.link reset_requests.code callbacks.uri event_subscriptions.url notifications.endpoint`))
    t.is(reason(path), 'secrets, by the names of table and column', path);
  for (const [path, type] of [
    ['passcodes.code', 'integer'],
    ['invitations.key', 'uuid'],
    ['verifications.data', 'jsonb'],
  ] as const)
    t.is(reason(path, type), 'secrets, by the names of table and column', path);
  for (const path of words(`
    countries.code work_orders.code coupons.code currencies.code orders.country_code orders.postal_code orders.status_code authors.author_code
    invitations.state invitations.role invitations.language_code webhooks.name webhook_events.data training_sessions.id training_sessions.data
    session_types.code verifications.type custom_field_values.value settings.value job_tokens_used.data secretariats.code order_confirmations.code
    challenges.code recoveries.code exams.pass_mark visitors.season_pass roads.bypass links.url api_keys.name pins.title tokens.created_by spin_codes.code hash_tags.value
    devices.code subscriptions.code notifications.title activation_statuses.code`))
    t.is(reason(path), undefined, path);
  t.is(reason('sessions.id', 'bigint'), undefined);
  t.is(findReasonToLeaveOut({ ...column('secret_id'), refers: true }), undefined, 'a reference');
  t.is(findReasonToLeaveOut(column('secret_id')), 'secrets, by the name');
  t.is(findReasonToLeaveOut({ ...column('session_id'), refers: true }), 'secrets, by the name');
  t.is(findReasonToLeaveOut(column('email_domain')), undefined);
  t.is(reason('sessions.id', 'uuid'), undefined);
  t.is(reason('passcodes.code', 'boolean'), undefined);
  const sent = [
    'Your verification code is 493 021.',
    'Uw inlogcode: 493021',
    'One-time password 4930',
    'otpauth://totp/x?secret=y',
  ];
  for (const text of sent) t.is(reason('messages.body', 'text', text), 'keys, tokens or cookies, by the values', text);
  for (const text of [
    'Work order code 493021',
    'Verify the code of 2026',
    'access control on floor 12',
    'The code is 493021',
  ])
    t.is(reason('messages.body', 'text', text), undefined, text);
});

test('texts of digests look random, and numbers in their order, words and repeated texts do not', (t) => {
  const digests = (seed: string, length: number, encoding: 'hex' | 'base64url') =>
    Array.from({ length: 12 }, (_, n) => createHash('sha256').update(`${seed} ${n}`).digest(encoding).slice(0, length));
  fc.assert(
    fc.property(
      fc.string(),
      fc.integer({ min: 16, max: 43 }),
      fc.constantFrom('hex', 'base64url'),
      (seed, length, encoding) => areRandom(digests(seed, length, encoding)),
    ),
  );
  const counted = (of: (n: number) => string) => Array.from({ length: 12 }, (_, n) => of(n));
  fc.assert(fc.property(fc.nat(9e6), (first) => !areRandom(counted((n) => `${first + n + 1e6}`))));
  for (const of of [
    (n: number) => `INV2026000${n}`,
    (n: number) => `job-${n}`,
    (n: number) => `Boiler room ${n}`,
    () => 'a1b2c3d4',
  ])
    t.false(areRandom(counted(of)), of(1));
});
