import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { guard } from "../host/guardian.js";
import { findRedisServer, serverEnvironment } from "./find.js";
import { ask } from "./resp.js";
import { RedisUnavailable } from "./unavailable.js";

const READY_LIMIT_MS = 15_000;
const READY_POLL_MS = 20;
/** Time limit for Redis to flush its AOF after SIGTERM. */
const STOP_LIMIT_MS = 10_000;
const OUTPUT_LIMIT = 16_384;

/** @type {typeof import("./index.d.ts").startRedis} */
export async function startRedis(options = {}) {
  const server = options.server ?? findRedisServer();
  if (server === undefined) {
    throw new RedisUnavailable(
      "no redis-server or valkey-server >= 6.2 on PATH: install one (`npm run demo` does so), or set REDIS_URL",
    );
  }
  // Another process may take a free port before it is bound.
  const attempts = options.port === undefined ? 3 : 1;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(server, options);
    } catch (error) {
      const portTaken = /address already in use/i.test(String(error));
      if (!portTaken || attempt >= attempts) throw error;
    }
  }
}

/**
 * @param {import("./index.d.ts").RedisServer} server
 * @param {import("./index.d.ts").StartRedisOptions} options
 * @returns {Promise<import("./index.d.ts").RunningRedis>}
 */
async function startOnce(server, { dir, port: wanted, appendonly = true, extraArgs = [] }) {
  const port = wanted ?? (await freePort());
  const folder = dir ?? mkdtempSync(join(tmpdir(), "konverge-redis-"));
  mkdirSync(folder, { recursive: true });
  const url = `redis://127.0.0.1:${port}`;
  // Detached: Ctrl-C reaches the whole foreground group, and draining workers still need their Redis.
  const child = spawn(server.path, [...redisArgs(port, folder, appendonly), ...extraArgs], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    env: serverEnvironment(server),
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output = (output + chunk).slice(-OUTPUT_LIMIT);
    });
  }
  /** @type {Promise<string>} */
  const ended = new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(`exit code ${code}, signal ${signal}`));
  });
  const { pid } = child;
  if (pid === undefined)
    throw new RedisUnavailable(`${server.path} cannot be started: ${await ended}`);
  const guardian = guard({ pids: [pid], folder: dir === undefined ? folder : "" });
  void ended.then(() => guardian.release());

  const end = async (/** @type {"SIGTERM" | "SIGKILL"} */ signal) => {
    const late = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
    child.kill(signal);
    // A test may have stopped the process; a stopped process does not receive SIGTERM.
    child.kill("SIGCONT");
    await ended;
    clearTimeout(late);
    if (dir === undefined) rmSync(folder, { recursive: true, force: true });
  };
  const stop = () => end("SIGTERM");
  try {
    await ready({ url, pid, ended, output: () => output });
  } catch (error) {
    await end("SIGKILL");
    throw error;
  }
  return {
    url,
    port,
    pid,
    dir: folder,
    version: server.version,
    kind: server.kind,
    process: child,
    output: () => output,
    stop,
    kill: () => end("SIGKILL"),
    [Symbol.asyncDispose]: stop,
  };
}

/** @param {number} port @param {string} folder @param {boolean} appendonly @returns {string[]} */
function redisArgs(port, folder, appendonly) {
  const settings = {
    port: String(port),
    bind: "127.0.0.1",
    dir: folder,
    daemonize: "no",
    appendonly: appendonly ? "yes" : "no",
    appendfsync: "everysec",
    save: "",
    // An evicted key would be a lost request.
    "maxmemory-policy": "noeviction",
    logfile: "",
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

/** @param {{ url: string, pid: number, ended: Promise<string>, output: () => string }} started */
async function ready({ url, pid, ended, output }) {
  /** @type {string | undefined} */
  let end;
  const noteEnd = async () => {
    end = await ended;
  };
  void noteEnd();
  const deadline = Date.now() + READY_LIMIT_MS;
  let last = "";
  while (Date.now() < deadline) {
    if (end !== undefined)
      throw new RedisUnavailable(`Redis ended at startup (${end}):\n${output()}`);
    try {
      const [, info = ""] = await ask(url, [["PING"], ["INFO", "server"]]);
      // If the port is in use, another Redis responds while ours is about to end.
      if (info.includes(`process_id:${pid}\r\n`)) return;
      last = `another server responds on ${url}`;
    } catch (error) {
      // Not listening yet, or LOADING its data.
      last = String(error);
    }
    await sleep(READY_POLL_MS);
  }
  throw new RedisUnavailable(
    `Redis was not ready within ${READY_LIMIT_MS / 1000} s (${last}):\n${output()}`,
  );
}

/** @returns {Promise<number>} */
async function freePort() {
  const server = createServer();
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve(undefined));
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no TCP address");
  return address.port;
}
