// Checks the page of examples/livepage in a headless browser: its content, the actions of an operator, with and
// without scripts, in light and dark, and with axe.
//
//   node check.mjs <program> [folder for pictures]
//
// CHROMIUM is the browser; the default is /usr/bin/chromium. The exit code is 1 if a check fails.
import { spawn } from "node:child_process";
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const [program, pictures] = process.argv.slice(2);
const operator = { username: "operator", password: "teapot" };
const patience = 60_000; // for events that must happen in the shop first
const failures = [];

const check = (ok, what, more = "") => {
  console.log(`${ok ? "ok  " : "FAIL"} ${what}${ok || more === "" ? "" : `: ${more}`}`);
  if (!ok) failures.push(what);
};

// start runs the shop and returns its address from its output.
const start = (listen = "127.0.0.1:0") => new Promise((resolve, reject) => {
  const shop = spawn(program, ["-listen", listen, "-for", "10m", "-traces", "https://traces.example/{trace_id}"], { stdio: ["ignore", "pipe", "ignore"] });
  let printed = "";
  shop.stdout.on("data", (data) => {
    printed += data;
    const address = printed.match(/(http:\/\/[\d.]+:\d+)\/admin\/locks/);
    if (address) resolve({ shop, address: address[1] });
  });
  shop.on("exit", (code) => reject(new Error(`the shop ended with ${code}: ${printed}`)));
});

// open loads a page in a separate context and collects the errors and warnings of the browser.
const open = async (browser, url, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1500, height: 1000 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => { if (!/^(data:|http:\/\/(127\.0\.0\.1|ops\.test):)/.test(request.url())) complaints.push(`requested ${request.url()}`); });
  const answer = await page.goto(url);
  return { context, page, complaints, answer };
};

const axe = async (page, name) => {
  await page.evaluate(axeSource);
  const result = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  check(result.violations.length === 0, `axe finds nothing: ${name}`,
    result.violations.map((v) => `${v.id} (${v.help}): ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(" | ")}`).join("; "));
};

const picture = async (page, name) => {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: `${pictures}/${name}.png` });
  await page.screenshot({ path: `${pictures}/${name}-whole.png`, fullPage: true });
};

const showsEverything = async (page, name) => {
  const text = await page.locator("main").innerText();
  check(/Deadlock \d+, since/.test(text), `${name}: the deadlock is shown`);
  check(await page.locator("#deadlocks ol li").count() === 2, `${name}: it has two callers`);
  check(await page.locator("#waiters tr.bad").count() === 2, `${name}: both are marked among the waiters`);
  check(/^shop on \S+, process \d+: locks in .*database 0/.test(await page.title()), `${name}: the title names the service and the process`, await page.title());
  check(/which answers/.test(text), `${name}: Redis answers`);
  check(await page.locator("#incidents tr.bad").filter({ hasText: /20\d\d-\d\d-\d\d/ }).count() > 0, `${name}: lost locks are red and dated`);
  check(await page.locator("#waiters tbody tr").filter({ hasText: "report" }).count() === 1, `${name}: the waiters of one key are one row`);
  const own = text.match(/Client ([0-9a-f-]{36})/)[1];
  check(text.split(own).length === 2, `${name}: the client is named once`, `${text.split(own).length - 1} times`);
  check(/^https:\/\/traces\.example\/[0-9a-f]{32}$/.test(await page.locator("#deadlocks a").first().getAttribute("href")), `${name}: traces are links`);
  check(await page.locator("#holds tbody tr").count() >= 10, `${name}: holds are listed`);
  check(/POST \/orders\/:id\/pay/.test(text) && /wait for the report/.test(text), `${name}: holds and waiters have their rules`);
  check(await page.locator("h1").count() === 1 && await page.locator("main img").count() === 0 && !/^gone$/m.test(text),
    `${name}: hostile names have no effect`);
};

// lasting waits until the page shows a deadlock and a loss, which takes the shop a moment.
const lasting = async (page) => {
  await page.locator("#deadlocks ol").waitFor({ timeout: patience });
  await page.locator("#incidents tbody tr").first().waitFor({ timeout: patience });
  await page.locator("#incidents tr.bad").first().waitFor({ timeout: patience });
};

// renewed waits until the page has refreshed its data.
const renewed = async (page) => {
  const time = await page.locator("#numbers dl time").last().innerText();
  await page.waitForFunction((old) => [...document.querySelectorAll("#numbers dl time")].at(-1).innerText !== old, time, { timeout: patience });
};

const inBothSchemes = async (browser, address) => {
  for (const colorScheme of ["light", "dark"]) {
    const { context, page, complaints } = await open(browser, `${address}/admin/locks`, { colorScheme, httpCredentials: operator });
    await lasting(page); // the page refreshes itself, so it is not loaded again here
    await page.locator("#pause").click();
    await showsEverything(page, colorScheme);
    await axe(page, `page, ${colorScheme}`);
    await picture(page, `page-${colorScheme}`);
    await page.locator("#holds details summary").first().click();
    await axe(page, `page with an open button, ${colorScheme}`);
    await page.goto(`${address}/admin/locks?fleet=1`);
    check(await page.locator("#locks tbody tr").count() >= 10, `fleet, ${colorScheme}: locks are listed`);
    check((await page.locator("#locks").innerText()).includes("3. "), `fleet, ${colorScheme}: a fair lock has its queue`);
    await axe(page, `fleet, ${colorScheme}`);
    await picture(page, `fleet-${colorScheme}`);
    check(complaints.length === 0, `no errors in the browser, ${colorScheme}`, complaints.join("; "));
    await context.close();
  }
};

const withoutScripts = async (browser, address) => {
  const { context, page, complaints } = await open(browser, `${address}/debug/locks`, { javaScriptEnabled: false });
  await showsEverything(page, "without scripts");
  check(await page.locator("#pause").isHidden(), "without scripts: no button without effect");
  check(await page.locator("form[method=post]").count() === 0, "without authorization: no button is shown");
  check(complaints.length === 0, "without scripts: no errors in the browser", complaints.join("; "));
  await context.close();
};

// byKeyboard tabs through the page and expects to reach a button.
const byKeyboard = async (browser, address) => {
  const { context, page } = await open(browser, `${address}/admin/locks`, { httpCredentials: operator });
  await page.keyboard.press("Tab");
  check(await page.evaluate(() => document.activeElement.className) === "skip", "by keyboard: the first stop is the link to the locks");
  let reached = "";
  for (let i = 0; i < 25 && reached !== "SUMMARY"; i++) {
    await page.keyboard.press("Tab");
    reached = await page.evaluate(() => document.activeElement.closest("#holds") ? document.activeElement.tagName : "");
  }
  check(reached === "SUMMARY", "by keyboard: the button of a hold is reached");
  await page.keyboard.press("Enter");
  const row = () => page.evaluate(() => document.activeElement.closest("tr").id);
  const held = () => page.evaluate(() => document.activeElement.closest("tr").querySelector("[data-th='Held for']").innerText);
  const [before, age] = [await row(), await held()];
  await renewed(page);
  check(await page.evaluate(() => document.activeElement.tagName) === "SUMMARY" && await page.locator("#holds details[open]").count() === 1 && await row() === before,
    "by keyboard: a refresh keeps the focus and unfolded details");
  check(await held() !== age, "by keyboard: the table with the focus is refreshed", await held());
  await page.locator("#pause").click();
  check(await page.locator("#pause").getAttribute("aria-pressed") === "true", "by keyboard: the page can be paused");
  await context.close();
};

const release = async (browser, address) => {
  const stranger = await open(browser, `${address}/debug/locks`);
  const status = await stranger.page.evaluate(() => fetch("?release=1", {
    method: "POST", body: new URLSearchParams({ ticket: "anything" }),
  }).then((answer) => answer.status));
  check(status === 403, "release without authorization is refused", `status ${status}`);
  await stranger.context.close();

  const { context, page } = await open(browser, `${address}/admin/locks`, { httpCredentials: operator });
  const row = page.locator("#holds tbody tr").filter({ hasText: "line\\nbreak" });
  const holder = await row.locator("[data-th=Holder] code.id").innerText();
  await row.locator("summary").click();
  const question = await row.locator("form").innerText();
  check(question.includes("line\\nbreak") && question.includes(holder) && /held for \d/.test(question), "the question names the key, the holder and the age", question);
  await row.getByRole("button").click();
  await page.getByRole("status").waitFor({ timeout: patience });
  check((await page.getByRole("status").innerText()).includes("was released"), "release with authorization works");
  await page.waitForFunction((field) => ![...document.querySelectorAll("#holds [data-th=Holder]")].some((cell) => cell.innerText === field), holder, { timeout: patience });
  check(true, "the holder has lost the lock");
  check(/force released/.test(await page.locator("#incidents").innerText()), "the release is among the incidents");

  await page.goto(`${address}/admin/locks?fleet=1`);
  const theirs = page.locator("#locks tbody tr").filter({ hasText: "livepage:ledger" });
  const before = await theirs.locator("[data-th=Holders] code.id").first().innerText();
  await theirs.locator("summary").click();
  await theirs.getByRole("button").click();
  await page.getByRole("status").waitFor({ timeout: patience });
  check(!(await page.locator("#locks").innerText()).includes(before), "a lock of another process is released too");
  await context.close();
};

const searchAndSort = async (browser, address) => {
  const { context, page } = await open(browser, `${address}/admin/locks`, { httpCredentials: operator });
  await page.locator("#q").fill("STUCK");
  await page.keyboard.press("Enter");
  await page.locator("#holds caption").filter({ hasText: "STUCK" }).waitFor();
  check(await page.locator("#holds tbody tr").count() === 1, "a search keeps the rows with the word");
  await renewed(page);
  check(await page.locator("#holds tbody tr").count() === 1, "a search stays after a refresh");
  await page.getByRole("link", { name: "All rows" }).click();
  await page.locator("#holds thead").getByRole("link", { name: "Waiting for it" }).click();
  check(await page.locator("#holds th[aria-sort=descending]").innerText() === "Waiting for it", "the column is marked");
  const counts = (await page.locator("#holds [data-th='Waiting for it']").allInnerTexts()).map(Number);
  check(counts.every((n, i) => i === 0 || n <= counts[i - 1]), "rows are sorted", counts.join());
  await context.close();
};

const onAPhone = async (browser, address) => {
  const { context, page } = await open(browser, `${address}/admin/locks`, { viewport: { width: 390, height: 844 }, isMobile: true, deviceScaleFactor: 2, httpCredentials: operator });
  await lasting(page);
  await page.locator("#pause").click();
  for (const view of ["page", "fleet"]) {
    if (view === "fleet") await page.goto(`${address}/admin/locks?fleet=1`);
    await page.locator("details.release summary").first().click();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    check(width <= 390, `on a phone: the ${view} is as wide as the screen`, `${width} px`);
    check(await page.locator("details.release button").first().isVisible(), `on a phone: the ${view} has its buttons`);
    await axe(page, `${view} on a phone`);
    await picture(page, `phone-${view}`);
  }
  await context.close();
};

// forReadmes takes the pictures of the README files: page.png, and top.png, which ends after the waiting callers. It leaves
// out the rows with hostile names, and all but five of the hottest keys and of the refusals.
const forReadmes = async (browser, address) => {
  if (!pictures) return;
  const { context, page } = await open(browser, `${address}/admin/locks`, { httpCredentials: operator });
  await lasting(page);
  await page.locator("#pause").click();
  await page.evaluate(() => {
    for (const name of document.querySelectorAll("#holds tbody th")) if (!/^livepage:[\w:-]{1,30}$/.test(name.innerText.trim())) name.closest("tr").remove();
    for (const row of document.querySelectorAll("#hot tbody tr:nth-child(n+6), #refusals tbody tr:nth-child(n+6)")) row.remove();
  });
  const waiters = await page.locator("#waiters").boundingBox();
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: `${pictures}/page.png`, fullPage: true });
  await page.screenshot({ path: `${pictures}/top.png`, fullPage: true, clip: { x: 0, y: 0, width: 1500, height: Math.ceil(waiters.y + waiters.height) } });
  await context.close();
};

// The browser uses plain HTTP and a name other than localhost, so only Origin says where the page was shown. The
// proxy rewrites Host like nginx.
const behindAProxy = async (browser, address) => {
  const proxy = createServer((asked, answer) => {
    const { host, ...headers } = asked.headers;
    asked.pipe(request(address + asked.url, { method: asked.method, headers }, (from) => {
      answer.writeHead(from.statusCode, from.headers);
      from.pipe(answer);
    }));
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { context, page } = await open(browser, `http://ops.test:${proxy.address().port}/admin/locks`, { httpCredentials: operator });
  const row = page.locator("#holds tbody tr").filter({ hasText: "long" });
  await row.locator("summary").click();
  await row.getByRole("button").click();
  await page.locator("h1").waitFor();
  check(await page.getByRole("status").count() === 1, "behind a proxy that rewrites Host: a button works", await page.locator("main").innerText());
  await context.close();
  proxy.closeAllConnections();
  proxy.close();
};

// If the process stops or ends, the page does not show old data as current.
const notLive = async (browser, shop, address) => {
  const { context, page } = await open(browser, `${address}/admin/locks`, { httpCredentials: operator });
  await lasting(page);
  const stale = page.locator("#stale");
  const says = async (what, how) => {
    await stale.filter({ hasText: what }).waitFor({ timeout: patience });
    check(await page.evaluate(() => document.body.classList.contains("stale")) && (await page.title()).startsWith("Not live"), `not live: ${how}`);
  };
  const recovers = async (how) => {
    await stale.waitFor({ state: "hidden", timeout: patience });
    check(!(await page.title()).startsWith("Not live"), `live again: ${how}`);
  };
  check(/Updated \d+ s ago/.test(await page.locator("#age").innerText()), "the page shows its age");
  await page.route("**/admin/locks", (route) => route.fulfill({ status: 503, body: "" }));
  await says(/503/, "an error is shown");
  await page.unroute("**/admin/locks");
  await recovers("after an error");
  shop.kill("SIGSTOP");
  await says(/no answer within/, "a stopped process");
  await axe(page, "page that is not live");
  await picture(page, "not-live");
  shop.kill("SIGCONT");
  await recovers("the process continues");
  const ended = new Promise((resolve) => shop.on("exit", resolve));
  shop.kill("SIGKILL");
  await ended;
  await says(/may be gone/, "a process that has ended");
  const next = await start(new URL(address).host);
  try {
    await says(/this process is gone, and another one answers: shop on/, "another process answers");
  } finally {
    next.shop.kill("SIGINT");
  }
  await context.close();
};

const { shop, address } = await start();
try {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--host-resolver-rules=MAP ops.test 127.0.0.1"] });
  try {
    await inBothSchemes(browser, address);
    await withoutScripts(browser, address);
    await byKeyboard(browser, address);
    await searchAndSort(browser, address);
    await onAPhone(browser, address);
    await forReadmes(browser, address);
    await behindAProxy(browser, address);
    await release(browser, address);
    await notLive(browser, shop, address);
  } finally {
    await browser.close();
  }
} catch (error) {
  check(false, "the check itself", String(error));
} finally {
  shop.kill("SIGINT");
}
console.log(failures.length === 0 ? "all checks passed" : `${failures.length} checks failed`);
process.exitCode = failures.length === 0 ? 0 : 1;
