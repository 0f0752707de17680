// Asks for the page every 5 seconds while it is seen, and takes over the parts that have changed.
const everyMs = 5000;
let answeredAt = new Date();

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch(location.pathname);
    if (!response.ok) throw new Error(`${response.status}`);
    show(new DOMParser().parseFromString(await response.text(), 'text/html'));
    answeredAt = new Date();
  } catch {
    const sentence = `The gateway has not answered since ${answeredAt.toLocaleTimeString()}.`;
    document.body.dataset.level = 'away';
    document.querySelector('.summary').innerHTML = '<h1></h1>';
    document.querySelector('h1').textContent = document.title = sentence;
  }
}

function show(page) {
  for (const part of document.querySelectorAll('[data-part]')) {
    const fresh = page.querySelector(`[data-part="${part.dataset.part}"]`);
    if (fresh.innerHTML !== part.innerHTML) part.replaceChildren(...fresh.childNodes);
  }
  document.title = page.title;
  document.body.dataset.level = page.body.dataset.level;
}

setInterval(refresh, everyMs);
document.addEventListener('visibilitychange', refresh);
