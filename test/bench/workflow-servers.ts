import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { startRedis } from "@konverge/infra-redis";
import { buildGoPeer } from "./build-peer.ts";

/** The server of a workflow engine, started for one measurement. */
export interface EngineServer extends AsyncDisposable {
  /** What the engine's program needs to connect. */
  readonly url: string;
  /** Its process; its children belong to the server. */
  readonly pid: number;
}

const READY_MS = 60_000;

export async function startRedisServer(fsync: "everysec" | "always"): Promise<EngineServer> {
  const redis = await startRedis({ extraArgs: ["--appendfsync", fsync] });
  return { url: redis.url, pid: redis.pid, [Symbol.asyncDispose]: () => redis.stop() };
}

/** Starts the Restate server of the npm package with its default settings. */
export async function startRestate(peers: string): Promise<EngineServer> {
  const platform = `${process.platform}-${process.arch}`;
  const program = `${peers}/node_modules/@restatedev/restate-server-${platform}/bin/restate-server`;
  const folder = mkdtempSync(join(tmpdir(), "konverge-restate-"));
  const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()];
  const child = spawn(program, ["--bind-ip", "127.0.0.1", "--bind-port", String(node)], {
    env: {
      ...process.env,
      RESTATE_BASE_DIR: folder,
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_LOG_FILTER: "error",
      DO_NOT_TRACK: "1",
    },
    stdio: "ignore",
  });
  const urls = { ingress: `http://127.0.0.1:${ingress}`, admin: `http://127.0.0.1:${admin}` };
  const isUp = async (url: string) => (await fetch(url)).ok;
  await untilTrue(`Restate answers on ${urls.ingress}`, child, async () => {
    return (await isUp(`${urls.admin}/health`)) && (await isUp(`${urls.ingress}/restate/health`));
  });
  return serverOf(child, JSON.stringify(urls), folder);
}

/** Starts a Postgres with its default settings, thus with an fsync for each commit. */
export async function startPostgres(): Promise<EngineServer> {
  const bin = findPostgres();
  const folder = mkdtempSync(join(tmpdir(), "konverge-postgres-"));
  chmodSync(folder, 0o777);
  const data = join(folder, "data");
  const asUser = process.getuid?.() === 0 ? ["runuser", "-u", "postgres", "--"] : [];
  const run = (program: string, ...args: readonly string[]): [string, string[]] => {
    const [command = "", ...rest] = [...asUser, join(bin, program), ...args];
    return [command, rest];
  };
  execFileSync(...run("initdb", "-D", data, "-U", "postgres", "-A", "trust"), { stdio: "ignore" });
  const port = await freePort();
  const options = ["-k", folder, "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"];
  const child = spawn(...run("postgres", "-D", data, "-p", String(port), ...options), {
    stdio: "ignore",
  });
  await untilTrue("Postgres is ready", child, async () => {
    execFileSync(join(bin, "pg_isready"), ["-h", "127.0.0.1", "-p", String(port)]);
    return true;
  });
  return serverOf(child, `postgresql://postgres@127.0.0.1:${port}/bench`, folder);
}

/** Starts Temporal's test server, with SQLite in memory. */
export async function startTemporal(log: (line: string) => void): Promise<EngineServer> {
  const binary = await buildGoPeer("temporal-server", log);
  if (binary === undefined) throw new Error("needs Go to build Temporal's test server");
  const child = spawn(binary, { stdio: ["pipe", "pipe", "ignore"] });
  const lines: string[] = [];
  const ready = Promise.withResolvers<void>();
  // Read to the end: the server logs there, and would die of a closed pipe.
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line === "ready") ready.resolve();
    else lines.push(line);
  });
  child.once("exit", (code) => ready.reject(new Error(`the server ended with ${code}`)));
  await ready.promise;
  const [address, namespace] = lines.slice(-2);
  return serverOf(child, JSON.stringify({ address, namespace }));
}

/** Returns the memory of a process and its descendants in MiB, shared pages divided among them. Undefined without /proc. */
export function memoryMiB(pid: number): number | undefined {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    const children = tasks.flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean),
    );
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    const own = Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1]) / 1_024;
    return children.reduce((sum, child) => sum + (memoryMiB(Number(child)) ?? 0), own);
  } catch {
    return undefined;
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}

function serverOf(child: ChildProcess, url: string, folder?: string): EngineServer {
  return {
    url,
    pid: child.pid ?? 0,
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.kill("SIGINT");
      const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await ended;
      clearTimeout(timer);
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

function findPostgres(): string {
  const versions = existsSync("/usr/lib/postgresql") ? readdirSync("/usr/lib/postgresql") : [];
  const newest = versions.toSorted((a, b) => Number(b) - Number(a))[0];
  if (newest === undefined) throw new Error("needs Postgres: apt-get install postgresql");
  return `/usr/lib/postgresql/${newest}/bin`;
}

async function untilTrue(
  what: string,
  child: ChildProcess,
  probe: () => Promise<boolean>,
): Promise<void> {
  const endMs = performance.now() + READY_MS;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${what}: it ended with ${child.exitCode}`);
    if (await probe().catch(() => false)) return;
    if (performance.now() > endMs) throw new Error(`never within ${READY_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
