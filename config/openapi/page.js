// Script of the documentation page: search, copy buttons, one language for all samples. The page can be read without it.
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const [nav, form, field, found] = ['nav', 'nav form', '#search', '#found'].map((each) => document.querySelector(each));
const contents = nav.querySelector('details');
const sections = all('[data-found]').map((element) => ({ element, text: element.textContent.toLowerCase() }));

/** The words in the search field, in lower case. */
const words = () => field.value.toLowerCase().split(/\s+/).filter(Boolean);

/** Shows the sections that have every word, and their links; without a word all of them. */
function search() {
  const wanted = words();
  const hasAll = (text) => wanted.every((word) => text.includes(word));
  let count = 0;
  for (const { element, text } of sections) {
    element.hidden = !hasAll(text);
    if (!element.hidden) count++;
    const link = nav.querySelector(`a[href="#${element.id}"]`);
    if (link) link.parentElement.hidden = element.hidden;
  }
  for (const part of all('main > section:not([data-found]), nav ul, nav p + ul'))
    part.hidden = all('[data-found], li', part).every((each) => each.hidden);
  for (const heading of all('nav details > p')) heading.hidden = heading.nextElementSibling.hidden;
  for (const details of all('main details'))
    details.open = wanted.length > 0 && wanted.some((word) => details.textContent.toLowerCase().includes(word));
  found.textContent = wanted.length === 0 ? '' : `${count} of ${sections.length} sections`;
  mark(wanted);
}

/** Marks the words in the shown sections, where the browser has CSS.highlights, and scrolls to the first that can be seen. */
function mark(wanted) {
  CSS.highlights?.delete('found');
  if (wanted.length === 0 || !CSS.highlights) return;
  const ranges = [];
  for (const { element } of sections.filter(({ element }) => !element.hidden)) {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode.data.toLowerCase();
      for (const word of wanted)
        for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length))
          ranges.push(
            new StaticRange({
              startContainer: texts.currentNode,
              startOffset: at,
              endContainer: texts.currentNode,
              endOffset: at + word.length,
            }),
          );
    }
  }
  CSS.highlights.set('found', new Highlight(...ranges));
  const places = ranges.map(({ startContainer }) => startContainer.parentElement);
  places.find((place) => place.checkVisibility())?.scrollIntoView({ block: 'center' });
}

/** Copies by the clipboard of the browser, or, where it is only for https, by a selection. */
async function copy(pre) {
  const selection = getSelection();
  selection.selectAllChildren(pre);
  const copied = await navigator.clipboard?.writeText(pre.textContent).then(
    () => true,
    () => false,
  );
  const done = copied || document.execCommand('copy');
  if (done) selection.removeAllRanges();
  return done;
}

function addCopyButton(place, chosen) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    button.textContent = (await copy(chosen())) ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 2000);
  });
  place.append(button);
}

for (const sample of all('.sample')) {
  const chosen = () => sample.querySelector(`[data-language="${sample.querySelector(':checked').value}"]`);
  addCopyButton(sample.firstElementChild, chosen);
}
for (const pre of all('main pre:not([data-language])')) {
  const box = document.createElement('div');
  box.className = 'block';
  pre.replaceWith(box);
  box.append(pre);
  addCopyButton(box, () => pre);
}
document.addEventListener('change', ({ target }) => {
  if (target.type === 'radio') for (const radio of all(`[value="${target.value}"]`)) radio.checked = true;
});

/** The token of all forms: in memory until the page is left. */
let token = '';

/** A field of a form with its name before it. */
function fieldOf(name, value, kind = 'input') {
  const label = document.createElement('label');
  const input = Object.assign(document.createElement(kind), { name, value, autocomplete: 'off', spellcheck: false });
  label.append(name, input);
  return { label, input };
}

/** A form that sends the request of an operation with the values typed into it, and shows the response. */
function tryForm({ method, path, parameters, headers, needsToken, body }) {
  const form = document.createElement('form');
  form.className = 'try';
  const secret = fieldOf('Token', token);
  secret.input.type = 'password';
  secret.input.addEventListener('input', () => {
    token = secret.input.value;
  });
  const fresh = { ...headers, 'Idempotency-Key': String(crypto.randomUUID?.() ?? Math.random()), 'If-Match': '' };
  const fields = parameters.map((each) => ({ ...each, ...fieldOf(each.name, fresh[each.name] ?? '') }));
  const content = body && fieldOf('Body', JSON.stringify(body, null, 2), 'textarea');
  const send = Object.assign(document.createElement('button'), { textContent: `Send ${method}` });
  const output = Object.assign(document.createElement('output'), { tabIndex: 0 });
  form.append(
    ...(needsToken ? [secret.label] : []),
    ...fields.map(({ label }) => label),
    content?.label ?? '',
    send,
    output,
  );
  const filled = (place) => fields.filter((each) => each.in === place && each.input.value !== '');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    output.textContent = '…';
    const address = filled('path').reduce(
      (text, { name, input }) => text.replace(`{${name}}`, encodeURIComponent(input.value)),
      path,
    );
    const query = new URLSearchParams(filled('query').map(({ name, input }) => [name, input.value]));
    const sent = Object.fromEntries(filled('header').map(({ name, input }) => [name, input.value]));
    if (needsToken) sent.Authorization = `Bearer ${token}`;
    if (content) sent['Content-Type'] = headers['Content-Type'];
    output.textContent = await fetch(`api/v1${address}${query.size > 0 ? `?${query}` : ''}`, {
      method,
      headers: sent,
      ...(content && { body: content.input.value }),
    }).then(shown, String);
  });
  return form;
}

/** Status, the headers that tell of the record and the limits, and the body, of which a page shows so many characters. */
async function shown(response) {
  const named = ['ETag', 'Location', 'RateLimit', 'Retry-After', 'X-Request-Id'];
  const lines = named
    .filter((name) => response.headers.has(name))
    .map((name) => `${name}: ${response.headers.get(name)}`);
  const text = await response.text();
  const pretty = text.startsWith('{') ? JSON.stringify(JSON.parse(text), null, 2) : text;
  return [`HTTP ${response.status}`, ...lines, '', pretty.slice(0, 100_000)].join('\n');
}

for (const article of all('[data-call]')) {
  const button = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Try it' });
  button.addEventListener('click', () => button.replaceWith(tryForm(JSON.parse(article.dataset.call))));
  article.querySelector('.sample').after(button);
}

// Without PUBLIC_URL the address of the API is the one at which the browser found this page.
for (const base of all('[data-path]')) base.textContent = new URL(base.dataset.path, location).href;

field.addEventListener('input', search);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  const first = sections.find(({ element }) => !element.hidden);
  if (first) location.hash = first.element.id;
});
addEventListener('hashchange', () => {
  const target = document.getElementById(location.hash.slice(1));
  if (!target?.closest('[hidden]')) return;
  field.value = '';
  search();
  target.scrollIntoView();
});

// On a narrow screen the contents are closed, and close again once a link in them was followed.
const narrow = matchMedia('(max-width: 59.99rem)');
const openIfWide = () => {
  contents.open = !narrow.matches;
};
narrow.addEventListener('change', openIfWide);
contents.addEventListener('click', ({ target }) => {
  if (target.closest('a')) openIfWide();
});
openIfWide();
form.parentElement.hidden = false;
