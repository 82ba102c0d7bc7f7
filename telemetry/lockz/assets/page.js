// Refreshes the live parts of the page every two seconds and shows how old they are. If no answer comes, it says why
// and marks the page as stale.
"use strict";
(() => {
  const period = 2000, patience = 5000; // milliseconds
  const find = (id) => document.getElementById(id);
  const button = find("pause"), age = find("age"), stale = find("stale"), title = document.title;
  let updated = Date.now(), clock = new Date(), paused = false, loading = false;

  // patch makes an element equal to a fresh one. It changes only the parts that differ, so that the focus, a
  // selection, scroll positions and unfolded details stay. It finds elements by their ids if they have one.
  const patch = (old, fresh) => {
    for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const ids = new Set([...fresh.children].map((child) => child.id));
    for (const child of [...old.children]) if (child.id && !ids.has(child.id)) child.remove();
    let at = old.firstChild;
    for (const node of fresh.childNodes) {
      let same = node.id ? find(node.id) : at && !at.id && at.nodeName === node.nodeName ? at : null;
      if (same && same.parentNode !== old) same = null;
      if (!same) {
        old.insertBefore(document.importNode(node, true), at);
        continue;
      }
      if (same === at) at = at.nextSibling;
      else old.insertBefore(same, at);
      if (same.nodeType === Node.ELEMENT_NODE) patch(same, node);
      else if (same.data !== node.data) same.data = node.data;
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };

  // renew patches a part of the page. If the focused element is gone, the part gets the focus.
  const renew = (part, fresh) => {
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    patch(part, fresh);
    if (focused && focused !== document.activeElement) (focused.isConnected ? focused : part).focus({ preventScroll: true });
  };

  const show = (trouble) => {
    const was = !stale.hidden;
    stale.hidden = trouble === "";
    if (trouble !== "" && stale.textContent !== trouble) stale.textContent = trouble;
    document.body.classList.toggle("stale", trouble !== "");
    if (trouble !== "" && !was) document.title = `Not live: ${title}`;
  };

  const load = async () => {
    const url = new URL(location.href);
    url.searchParams.delete("notice");
    url.hash = "";
    const answer = await fetch(url, { headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(patience) });
    if (!answer.ok) throw new Error(`the answer is ${answer.status} ${answer.statusText}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!fresh.body.dataset.process) throw new Error("the answer is another page; you may have to log in again");
    if (fresh.body.dataset.process !== document.body.dataset.process) throw new Error(`this process is gone, and another one answers: ${fresh.title}. Load the page again to see it`);
    return fresh;
  };

  const refresh = async () => {
    if (paused || loading || document.hidden) return;
    loading = true;
    try {
      const fresh = await load();
      if (paused) return;
      document.querySelectorAll("[data-live]").forEach((part) => renew(part, fresh.getElementById(part.id)));
      [updated, clock] = [Date.now(), new Date()];
      show("");
      document.title = fresh.title;
    } catch (error) {
      const why = error.name === "TimeoutError" ? `no answer within ${patience / 1000} s` :
        error instanceof TypeError ? `the process does not answer and may be gone (${error.message})` : error.message;
      show(`Not live since ${clock.toLocaleTimeString()}: ${why}. The page shows the last known state.`);
    } finally {
      loading = false;
      showAge();
    }
  };

  const showAge = () => {
    const seconds = Math.round((Date.now() - updated) / 1000);
    age.textContent = `${paused ? "Paused, updated" : "Updated"} ${seconds} s ago`;
  };

  document.querySelectorAll(".live").forEach((item) => { item.hidden = false; });
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    showAge();
    refresh();
  });
  document.addEventListener("visibilitychange", refresh);
  setInterval(refresh, period);
  setInterval(showAge, 1000);
  showAge();
})();
