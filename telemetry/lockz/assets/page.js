// Puts the live parts of a newly loaded page in place of those shown, every two seconds. A part
// that is in use keeps still: one with the focus, a selection or something unfolded.
"use strict";
(() => {
  const button = document.getElementById("pause");
  let paused = false;
  document.getElementById("live").hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    if (!paused) refresh();
  });

  const inUse = (part) => {
    const selection = getSelection();
    return part.contains(document.activeElement) || part.querySelector("details[open]") !== null ||
      (selection && !selection.isCollapsed && part.contains(selection.anchorNode));
  };

  const put = (part, fresh) => {
    if (!fresh || inUse(part)) return;
    const lefts = [...part.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
    part.replaceChildren(...[...fresh.childNodes].map((node) => document.importNode(node, true)));
    part.querySelectorAll(".scroll").forEach((box, i) => { box.scrollLeft = lefts[i] || 0; });
  };

  let loading = false;
  const refresh = async () => {
    if (paused || loading || document.hidden) return;
    loading = true;
    try {
      const url = new URL(location.href);
      url.searchParams.delete("notice");
      url.hash = "";
      const answer = await fetch(url, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (!paused) document.querySelectorAll("[data-live]").forEach((part) => put(part, fresh.getElementById(part.id)));
      }
    } catch {
      // The process may be gone. What is shown stays, with its time.
    } finally {
      loading = false;
    }
  };
  setInterval(refresh, 2000);
})();
