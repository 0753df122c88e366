import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { guard as dieWithUs, startRedis, type RunningRedis } from "@konverge/apiserver";
import { defined } from "@konverge/core";
import { findRedisServer } from "@konverge/infra-redis";
import { Redis } from "ioredis";
import { createCertificateAuthority } from "../kube/certificate-authority.ts";
import { until } from "../../support/until.ts";

/** Files with certificates and passwords, for servers that accept only clients with both. */
export interface SentinelSecurity {
  readonly files: Readonly<Record<"ca" | "cert" | "key", string>>;
  readonly password: string;
  readonly sentinelPassword: string;
}

/** Starts a Sentinel on a free port with a quorum of one. */
async function startSentinel(
  dir: string,
  primaryPort: number,
  security: SentinelSecurity | undefined,
): Promise<{ port: number; stop: () => void }> {
  const server = findRedisServer();
  if (server === undefined) throw new Error("no redis-server");
  const spare = await startRedis();
  const { port } = spare;
  await spare.stop();
  const file = join(dir, "sentinel.conf");
  writeFileSync(
    file,
    [
      ...(security === undefined ? [`port ${port}`] : ["port 0", `tls-port ${port}`]),
      "bind 127.0.0.1",
      `dir ${dir}`,
      `sentinel monitor mymaster 127.0.0.1 ${primaryPort} 1`,
      "sentinel down-after-milliseconds mymaster 500",
      "sentinel failover-timeout mymaster 2000",
      ...(security === undefined
        ? []
        : [
            ...tlsSettings(security).map(([name, value]) => `${name} ${value}`),
            `requirepass ${security.sentinelPassword}`,
            `sentinel auth-pass mymaster ${security.password}`,
          ]),
    ].join("\n"),
  );
  const child = spawn(server.path, [file, "--sentinel"], {
    stdio: "ignore",
    env: {
      ...process.env,
      ...defined({ LD_LIBRARY_PATH: server.libraryPath }),
    },
  });
  const guardian = dieWithUs({ pids: child.pid === undefined ? [] : [child.pid] });
  child.once("exit", () => guardian.release());
  return { port, stop: () => child.kill("SIGKILL") };
}

/** TLS for clients, with client certificates, and between the servers. */
function tlsSettings({ files }: SentinelSecurity): [name: string, value: string][] {
  return [
    ["tls-auth-clients", "yes"],
    ["tls-replication", "yes"],
    ["tls-ca-cert-file", files.ca],
    ["tls-cert-file", files.cert],
    ["tls-key-file", files.key],
  ];
}

/** Creates certificates, and the passwords of Redis and of the Sentinels, in files of this folder. */
export function createSentinelSecurity(dir: string): SentinelSecurity {
  const authority = createCertificateAuthority();
  const { cert, key } = authority.issue("redis", ["127.0.0.1"]);
  const write = (name: string, text: string) => {
    const path = join(dir, name);
    writeFileSync(path, text);
    return path;
  };
  const files = {
    ca: write("ca.crt", authority.ca),
    cert: write("tls.crt", cert),
    key: write("tls.key", key),
  };
  return { files, password: "of-redis", sentinelPassword: "of-the-sentinels" };
}

/**
 * Opens the TLS port of a server, and requires the password on it and on the other port, which only `startRedis` uses. Returns the
 * TLS port.
 */
async function secure(server: RunningRedis, { password }: SentinelSecurity): Promise<number> {
  const admin = new Redis({ port: server.port });
  const port = server.port > 45_000 ? server.port - 20_000 : server.port + 20_000;
  try {
    await admin.config("SET", "tls-port", String(port));
    await admin.config("SET", "masterauth", password, "requirepass", password);
  } finally {
    admin.disconnect();
  }
  return port;
}

/** Returns the options of a connection to a Sentinel. The certificate has no other name than the address. */
function secureOptions({ files, sentinelPassword: password }: SentinelSecurity) {
  const read = (name: keyof typeof files) => readFileSync(files[name], "utf8");
  return {
    host: "127.0.0.1",
    password,
    tls: { ca: read("ca"), cert: read("cert"), key: read("key") },
  };
}

export interface SentinelSet {
  readonly primary: RunningRedis;
  readonly replica: RunningRedis;
  readonly sentinel: { readonly port: number };
  /** A connection to the Sentinel. */
  readonly asked: Redis;
}

/** Starts a primary, its replica, and a Sentinel. With `security`, all of them speak TLS and require passwords. */
export async function startSentinelSet(
  cleanup: AsyncDisposableStack,
  security?: SentinelSecurity,
): Promise<SentinelSet> {
  const dir = mkdtempSync(join(tmpdir(), "konverge-sentinel-"));
  cleanup.defer(() => rmSync(dir, { recursive: true, force: true }));
  const extraArgs =
    security === undefined
      ? []
      : tlsSettings(security).flatMap(([name, value]) => [`--${name}`, value]);
  const primary = await startRedis({ extraArgs });
  cleanup.defer(() => primary.stop());
  const replica = await startRedis({ extraArgs });
  cleanup.defer(() => replica.stop());
  const portOf = async (server: RunningRedis) =>
    security === undefined ? server.port : await secure(server, security);
  const [primaryPort, replicaPort] = [await portOf(primary), await portOf(replica)];
  const admin = new Redis({ port: replica.port, ...defined({ password: security?.password }) });
  await admin.replicaof("127.0.0.1", primaryPort);
  admin.disconnect();
  const sentinel = await startSentinel(dir, primaryPort, security);
  cleanup.defer(() => sentinel.stop());
  const asked = new Redis({
    port: sentinel.port,
    ...(security === undefined ? {} : secureOptions(security)),
  });
  asked.on("error", () => undefined);
  cleanup.defer(() => asked.disconnect());
  await until("the Sentinel knows the replica", async () => {
    const known = await asked.call("SENTINEL", "REPLICAS", "mymaster").catch(() => []);
    return JSON.stringify(known).includes(String(replicaPort));
  });
  return { primary, replica, sentinel, asked };
}
