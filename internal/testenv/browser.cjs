// Drives a real browser for tests: commands as lines of JSON on stdin, one answer each on
// stdout. Arguments: the folder of npm packages, and the browser's program.
"use strict";
const path = require("node:path");
const fs = require("node:fs");
const readline = require("node:readline");
const [modules, executablePath] = process.argv.slice(2);
const need = (name) => require(require.resolve(name, { paths: [path.dirname(modules)] }));
const { chromium } = need("playwright-core");
const axe = fs.readFileSync(path.join(modules, "axe-core", "axe.min.js"), "utf8");
const jsQR = need("jsqr");
const pages = new Map();
let browser;
let last = 0;

const audit = async (p) => {
  await p.evaluate(axe);
  const found = await p.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).join(" | "));
};

const commands = {
  // open shows a URL in a context of its own, or in that of another page: with its cookies.
  // noScript turns script off, which also keeps axe out; noOwnScript leaves out the page's own.
  async open({ url, width, height, dark, noScript, noOwnScript, language, like }) {
    const look = {
      viewport: { width: width || 390, height: height || 844 }, colorScheme: dark ? "dark" : "light", javaScriptEnabled: !noScript,
      locale: language || "en-GB", timezoneId: "UTC", permissions: noScript ? [] : ["clipboard-read", "clipboard-write"], reducedMotion: "reduce",
    };
    if (like) look.storageState = await pages.get(like).context.storageState();
    const context = await browser.newContext(look);
    const page = await context.newPage();
    if (noOwnScript) await page.route("**/*.js", (route) => route.fulfill({ contentType: "text/javascript", body: "" }));
    const told = [];
    page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") told.push(m.text() + ' ' + m.location().url); });
    page.on("pageerror", (e) => told.push(String(e)));
    page.on("dialog", (d) => { told.push("dialog: " + d.message()); d.dismiss(); });
    const bytes = { all: 0 };
    page.on("request", (r) => { if (new URL(r.url()).origin !== new URL(url).origin) told.push("asked elsewhere: " + r.url()); });
    page.on("response", async (r) => { if (!r.url().includes("/events")) bytes.all += (await r.body().catch(() => "")).length; });
    await page.goto(url, { waitUntil: "load" });
    pages.set(++last, { page, context, told, bytes, look });
    return last;
  },
  // see waits for a text that is shown.
  async see({ page, text }) {
    await pages.get(page).page.getByText(text, { exact: false }).locator("visible=true").first().waitFor({ timeout: 60000 });
    return null;
  },
  // axe lists what its rules find. Without script it cannot run, so there it looks at what
  // the same browser gets at the same URL where every script is empty.
  async axe({ page }) {
    const { page: p, context, look } = pages.get(page);
    if (look.javaScriptEnabled) return audit(p);
    const other = await browser.newContext({ ...look, javaScriptEnabled: true, storageState: await context.storageState() });
    try {
      await other.route("**/*.js", (r) => r.fulfill({ contentType: "text/javascript", body: "" }));
      const copy = await other.newPage();
      await copy.goto(p.url(), { waitUntil: "load" });
      return await audit(copy);
    } finally {
      await other.close();
    }
  },
  // qr reads the code of an image as a camera would: from its pixels.
  async qr({ page, selector }) {
    const { data, side } = await pages.get(page).page.evaluate(async (selector) => {
      // A copy, as the page may take its own away, and decode waits for a frame of the screen.
      const img = new Image();
      await new Promise((done, failed) => {
        img.onload = done;
        img.onerror = () => failed(new Error("the image cannot be read: " + img.src));
        img.src = document.querySelector(selector).src;
      });
      const side = 480, canvas = document.createElement("canvas");
      canvas.width = canvas.height = side;
      const to = canvas.getContext("2d");
      to.drawImage(img, 0, 0, side, side);
      return { data: Array.from(to.getImageData(0, 0, side, side).data), side };
    }, selector);
    const code = jsQR(Uint8ClampedArray.from(data), side, side);
    return code && code.data;
  },
  // shot takes a picture. On a busy machine the browser sometimes cannot: it is asked again.
  async shot({ page, file }) {
    for (let tries = 1; ; tries++) {
      try {
        await pages.get(page).page.screenshot({ path: file, fullPage: true });
        return null;
      } catch (e) {
        if (tries === 3) throw e;
      }
    }
  },
  // media is what the page is shown on: "screen" or "print".
  async media({ page, media }) {
    await pages.get(page).page.emulateMedia({ media });
    return null;
  },
  // click presses what a selector names, and waits for the page that it leads to, if any.
  async click({ page, selector }) {
    const p = pages.get(page).page;
    await p.click(selector);
    await p.waitForLoadState("load");
    return null;
  },
  async fill({ page, selector, text }) {
    await pages.get(page).page.fill(selector, text);
    return null;
  },
  // send types into a field, and sends its form.
  async send({ page, selector, text }) {
    const p = pages.get(page).page;
    await p.fill(selector, text);
    await p.press(selector, "Enter");
    return null;
  },
  async choose({ page, selector, value }) {
    await pages.get(page).page.selectOption(selector, value);
    return null;
  },
  async reload({ page }) {
    await pages.get(page).page.reload({ waitUntil: "load" });
    return null;
  },
  async go({ page, url }) {
    await pages.get(page).page.goto(url, { waitUntil: "load" });
    return null;
  },
  url: async ({ page }) => pages.get(page).page.url(),
  // run evaluates an expression in the page.
  run: ({ page, expression }) => pages.get(page).page.evaluate(expression),
  // close ends a page: what its console told, what it asked of others, and its bytes.
  async close({ page }) {
    const p = pages.get(page);
    pages.delete(page);
    const problems = p.told.slice(), bytes = p.bytes.all;
    await p.context.close();
    return { problems, bytes };
  },
};

(async () => {
  const args = process.getuid && process.getuid() === 0 ? ["--no-sandbox"] : [];
  browser = await chromium.launch({ executablePath, args: [...args, "--disable-gpu"] });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    let answer;
    try {
      answer = { value: (await commands[command.do](command)) ?? null };
    } catch (e) {
      answer = { error: String((e && e.stack) || e) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
  await browser.close();
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
