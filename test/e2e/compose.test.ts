import { execFile, spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { checkRedisUrl, findRedisServer, guard } from "@konverge/infra-redis";
import { defined } from "@konverge/core";
import { load, YAML11_SCHEMA } from "js-yaml";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { until } from "../support/until.ts";

interface Service {
  readonly image?: string;
  readonly build?: { readonly dockerfile: string };
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly deploy?: { readonly replicas: number };
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly user?: string;
}
/** Compose merges the keys `<<`, which YAML 1.2 left out. */
const compose = load(readFileSync("docker-compose.yml", "utf8"), { schema: YAML11_SCHEMA }) as {
  readonly services: Readonly<Record<string, Service>>;
};
const dockerfile = readFileSync("infra/docker/Dockerfile", "utf8");
const TOKEN = "compose-test-token-0123456789abcdef";
/** The variables that the compose file requires of its user. */
const VARIABLES: Readonly<Record<string, string>> = {
  KONVERGE_TOKEN: TOKEN,
  REDIS_PASSWORD: "0f".repeat(32),
};

test("the compose file persists Redis, checks health and pins its images", () => {
  const { redis, apiserver, api, worker } = compose.services;
  expect(redis?.command.join(" ")).toMatch(/--appendonly yes .*--maxmemory-policy noeviction/);
  expect(redis?.image).toMatch(/^redis:\d+\.\d+\.\d+/);
  expect(redis?.environment?.["REDISCLI_AUTH"]).toMatch(/^\$\{REDIS_PASSWORD:\?/);
  for (const service of [redis, apiserver, api]) expect(service?.healthcheck?.test[0]).toBe("CMD");
  expect(worker?.deploy?.replicas).toBe(2);
  expect(api?.environment?.["KONVERGE_TOKEN"]).toMatch(/^\$\{KONVERGE_TOKEN:\?/);
});

test.for(Object.entries(compose.services))(
  "%s has no capabilities and a read-only file system",
  ([name, service]) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
    });
    // The image of Redis starts as root, and leaves root with capabilities that are dropped here.
    if (name === "redis") expect(service.user).toBe("redis");
    else expect(service.tmpfs).toEqual(["/tmp"]);
  },
);

test("the image's files belong to root, and its user can read but not change them", async () => {
  const copied = /^COPY --from=build (.*)\/app \/app$/m.exec(dockerfile);
  expect(copied?.[1]).toBe("");
  // The modes of a clone depend on the umask of its user.
  const [command = "missing"] = /chmod -R \S+ \/app$/m.exec(dockerfile) ?? [];
  const app = await mkdtemp(join(tmpdir(), "konverge-image-"));
  onTestFinished(() => rm(app, { recursive: true }));
  await mkdir(join(app, "dist"), { mode: 0o700 });
  const modes = { "main.js": 0o600, run: 0o700, "dist/open.js": 0o666 };
  for (const [file, mode] of Object.entries(modes)) {
    await writeFile(join(app, file), "");
    await chmod(join(app, file), mode);
  }
  await promisify(execFile)("sh", ["-ec", command.replace("/app", app)]);
  const modeOf = async (file: string) => (await stat(join(app, file))).mode & 0o777;
  expect(await Promise.all(["", "dist", ...Object.keys(modes)].map(modeOf))).toEqual([
    0o755, 0o755, 0o644, 0o755, 0o644,
  ]);
});

test("the image has stages, runs as an unprivileged user and starts the command line", () => {
  expect(dockerfile.match(/^FROM /gm)?.length).toBeGreaterThanOrEqual(2);
  expect(dockerfile).toMatch(/^USER node$/m);
  expect(dockerfile).toMatch(/^ENTRYPOINT \["node", .*"apps\/cli\/dist\/main\.js"\]$/m);
  expect(`${dockerfile}${JSON.stringify(compose)}`).not.toContain(":latest");
});

/** The addresses on this machine for the names and ports of the compose network. */
const local = new Map<string, string>();
const children: ChildProcess[] = [];
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "konverge-compose-"));
  const [redisPort, apiserverPort, apiPort] = await Promise.all([
    freePort(),
    freePort(),
    freePort(),
  ]);
  local.set("@redis:6379", `@127.0.0.1:${redisPort}`);
  local.set("port 6379", `port ${redisPort}\nbind 127.0.0.1`);
  local.set("dir /data", `dir ${folder}`);
  local.set("/shared", folder);
  local.set("0.0.0.0", "127.0.0.1");
  local.set("6443", String(apiserverPort));
  local.set("7070", String(apiPort));
  local.set("9090", "0");
});
afterAll(async () => {
  await Promise.all(children.map((child) => ended(child)));
  await rm(folder, { recursive: true, force: true });
});

test("the services' commands and environments, run as processes, reconcile an object", async () => {
  const redisUrl = await startComposedRedis();
  const withoutPassword = redisUrl.replace(/:[^:]+@/, "");
  await expect(checkRedisUrl(withoutPassword)).rejects.toThrow("NOAUTH");
  await said(start("apiserver"), "API server listening");
  expect(await exitCode(start("crds"))).toBe(0);
  await said(start("api"), "api listening");
  for (let n = 0; n < (compose.services["worker"]?.deploy?.replicas ?? 1); n++) {
    await said(start("worker"), "worker ready");
  }
  const kube = `http://127.0.0.1:${local.get("6443")}`;
  const api = `http://127.0.0.1:${local.get("7070")}`;
  const pools = `${kube}/apis/demo.konverge.dev/v1/namespaces/default/nodepools`;
  const created = await fetch(pools, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      apiVersion: "demo.konverge.dev/v1",
      kind: "NodePool",
      metadata: { name: "blue" },
      spec: { replicas: 2 },
    }),
  });
  expect(created.status).toBe(201);
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const refused = await fetch(`${api}/v1/reconciles`, { method: "POST", body: "{}" });
  expect(refused.status).toBe(401);
  const accepted = await fetch(`${api}/v1/reconciles`, {
    method: "POST",
    headers,
    body: JSON.stringify({ controller: "node-pool", namespace: "default", name: "blue" }),
  });
  expect(accepted.status).toBe(202);
  const finished = await fetch(`${api}${accepted.headers.get("location")}?wait=30s`, { headers });
  expect(await finished.json()).toMatchObject({ phase: "finished", outcome: "done" });
  const pool = await (await fetch(`${pools}/blue`)).json();
  expect(pool).toMatchObject({ status: { machines: 2 } });
  // The dashboard is served on the documented port and accepts the configured token.
  expect(readFileSync("docker-compose.yml", "utf8")).toContain(
    "dashboard is at http://127.0.0.1:7070/",
  );
  const page = await fetch(`${api}/`);
  expect(page.status).toBe(200);
  expect(page.headers.get("content-type")).toMatch(/^text\/html/);
  const login = await fetch(`${api}/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: TOKEN }),
  });
  expect(login.status).toBeLessThan(300);
});

function start(name: string): ChildProcess {
  const service = compose.services[name];
  if (service === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
  // Every service runs on this machine.
  const args = service.command.map((word) =>
    word === "apiserver" && name !== "apiserver" ? word : here(word),
  );
  const advertised = args.indexOf("--advertise-host");
  if (advertised !== -1) args[advertised + 1] = "127.0.0.1";
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(
    process.execPath,
    ["--conditions=@konverge/source", "apps/cli/src/main.ts", ...args],
    {
      env: { PATH, HOME, ...environmentOf(service) },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  children.push(child);
  return child;
}

/** Runs the command of the service `redis` and returns its URL when it responds. */
async function startComposedRedis(): Promise<string> {
  const { redis, api } = compose.services;
  const server = findRedisServer();
  if (redis === undefined || server === undefined) throw new Error("no Redis to start");
  const [program = "", ...args] = redis.command.map((word) =>
    // Compose replaces `$$` by `$`.
    here(word).replaceAll("$$", "$").replace("exec redis-server", `exec ${server.path}`),
  );
  const { PATH = "" } = process.env;
  const child = spawn(program, args, {
    cwd: folder,
    env: {
      PATH,
      ...defined({ LD_LIBRARY_PATH: server.libraryPath }),
      ...environmentOf(redis),
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  children.push(child);
  const guardian = guard({ pids: child.pid === undefined ? [] : [child.pid] });
  child.once("close", () => guardian.release());
  const url = here(interpolated(api?.environment?.["KONVERGE_REDIS_URL"] ?? ""));
  const checked = await until("Redis accepts the password", () =>
    checkRedisUrl(url).catch(() => undefined),
  );
  expect(checked.evicts).toBe(false);
  return url;
}

function environmentOf({ environment = {} }: Service): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).map(([key, value]) => [key, here(interpolated(value))]),
  );
}

/** Inserts the user's variables: `${NAME}` and `${NAME:?message}`. */
function interpolated(text: string): string {
  return text.replaceAll(/\$\{(\w+)(?::\?[^}]*)?\}/g, (_, name: string) => {
    const value = VARIABLES[name];
    if (value === undefined) throw new Error(`docker-compose.yml does not document ${name}`);
    return value;
  });
}

function here(text: string): string {
  return [...local].reduce((result, [there, mine]) => result.replaceAll(there, mine), text);
}

/** Resolves at the log line with this message; rejects with the output if the process exits first. */
async function said(child: ChildProcess, message: string): Promise<void> {
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        lines.push(line);
        if (line.includes(`"msg":"${message}"`)) resolve();
      });
    }
    child.once("close", () => reject(new Error(`ended before "${message}":\n${lines.join("\n")}`)));
  });
}

function exitCode(child: ChildProcess): Promise<number | null> {
  child.stdout?.resume();
  child.stderr?.resume();
  return new Promise((resolve) => {
    child.once("close", resolve);
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = exitCode(child);
  child.kill("SIGTERM");
  await closed;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  return port;
}
