import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";

const NAMES = ["firefox", "firefox-esr"];
export const NO_FIREFOX =
  "no Firefox: `apt-get install firefox-esr`, or set KONVERGE_TEST_FIREFOX to the path of one";
const START_MS = 90_000;
const CALL_MS = 60_000;

/** Returns the path of a Firefox: the configured one, else the first on PATH. */
export function findFirefox(): string | undefined {
  const configured = process.env["KONVERGE_TEST_FIREFOX"];
  if (configured !== undefined && configured !== "") return configured;
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(existsSync);
}

/** A page of a Firefox, controlled through WebDriver BiDi, which Playwright does not speak to released versions. */
export interface FirefoxPage {
  /** Errors of scripts and violations of the policy. */
  readonly troubles: readonly string[];
  goto(address: string): Promise<void>;
  /** Returns the string value of an expression. */
  read(expression: string): Promise<string>;
  resize(width: number, height: number): Promise<void>;
  close(): Promise<void>;
}

interface Message {
  readonly id?: number;
  readonly type: "success" | "error" | "event";
  readonly error?: string;
  readonly message?: string;
  readonly method?: string;
  readonly params?: { readonly level?: string; readonly text?: string };
  readonly result?: Readonly<Record<string, unknown>>;
}

/** Starts a Firefox with a clean profile. `headers` are sent with each request. */
export async function openFirefox(
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<FirefoxPage> {
  const profile = await mkdtemp(join(tmpdir(), "konverge-firefox-"));
  const args = ["--headless", "--remote-debugging-port=0", "--profile", profile];
  const browser = spawn(path, args, { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(browser, "exit");
  const endpoint = await endpointOf(browser.stderr, exited);
  const socket = new WebSocket(`${endpoint}/session`);
  await once(socket, "open", { signal: AbortSignal.timeout(START_MS) });

  const troubles: string[] = [];
  const calls = new Map<number, PromiseWithResolvers<Readonly<Record<string, unknown>>>>();
  socket.addEventListener("message", ({ data }) => {
    const { id, type, result = {}, error, message, params } = JSON.parse(String(data)) as Message;
    if (type === "event" && params?.level === "error") troubles.push(params.text ?? "error");
    const call = id === undefined ? undefined : calls.get(id);
    if (type === "error") call?.reject(new Error(`${error}: ${message}`));
    else call?.resolve(result);
  });
  const call = async (method: string, params: object) => {
    const id = calls.size + 1;
    const answered = Promise.withResolvers<Readonly<Record<string, unknown>>>();
    calls.set(id, answered);
    socket.send(JSON.stringify({ id, method, params }));
    const late = setTimeout(() => answered.reject(new Error(`${method} got no response`)), CALL_MS);
    return await answered.promise.finally(() => clearTimeout(late));
  };
  await call("session.new", { capabilities: {} });
  await call("session.subscribe", { events: ["log.entryAdded"] });
  const { context } = await call("browsingContext.create", { type: "tab" });
  const list = Object.entries(headers).map(([name, value]) => ({
    name,
    value: { type: "string", value },
  }));
  if (list.length > 0) await call("network.setExtraHeaders", { headers: list });
  return {
    troubles,
    async goto(url) {
      await call("browsingContext.navigate", { context, url, wait: "complete" });
    },
    async read(expression) {
      const params = { expression, target: { context }, awaitPromise: true };
      const { result } = (await call("script.evaluate", params)) as {
        readonly result?: { readonly value?: unknown };
      };
      return String(result?.value);
    },
    async resize(width, height) {
      await call("browsingContext.setViewport", { context, viewport: { width, height } });
    },
    async close() {
      socket.close();
      browser.kill();
      await exited;
      await rm(profile, { recursive: true, force: true });
    },
  };
}

/** Returns the address of WebDriver BiDi that a Firefox prints. */
async function endpointOf(
  output: NodeJS.ReadableStream,
  exited: Promise<unknown>,
): Promise<string> {
  const printed = new Promise<string>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("Firefox did not start")), START_MS);
    const settle = (end: () => void) => {
      clearTimeout(late);
      end();
    };
    createInterface({ input: output }).on("line", (line) => {
      const [, address] = /BiDi listening on (ws:\S+)/.exec(line) ?? [];
      if (address !== undefined) settle(() => resolve(address));
    });
    void exited.then(() => settle(() => reject(new Error("Firefox ended early"))));
  });
  return await printed;
}
