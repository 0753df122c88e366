import { defined } from "@konverge/core";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { guard as dieWithUs, startRedis, type RunningRedis } from "@konverge/apiserver";
import { findRedisServer } from "@konverge/infra-redis";
import { Redis } from "ioredis";
import { until } from "../../support/until.ts";

/** Starts a Sentinel on a free port with a quorum of one. */
async function startSentinel(
  dir: string,
  primaryPort: number,
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
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${dir}`,
      `sentinel monitor mymaster 127.0.0.1 ${primaryPort} 1`,
      "sentinel down-after-milliseconds mymaster 500",
      "sentinel failover-timeout mymaster 2000",
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

export interface SentinelSet {
  readonly primary: RunningRedis;
  readonly replica: RunningRedis;
  readonly sentinel: { readonly port: number };
  /** A connection to the Sentinel. */
  readonly asked: Redis;
}

/** Starts a primary, its replica, and a Sentinel. */
export async function startSentinelSet(cleanup: AsyncDisposableStack): Promise<SentinelSet> {
  const dir = mkdtempSync(join(tmpdir(), "konverge-sentinel-"));
  cleanup.defer(() => rmSync(dir, { recursive: true, force: true }));
  const primary = await startRedis();
  cleanup.defer(() => primary.stop());
  const replica = await startRedis({
    extraArgs: ["--replicaof", "127.0.0.1", String(primary.port)],
  });
  cleanup.defer(() => replica.stop());
  const sentinel = await startSentinel(dir, primary.port);
  cleanup.defer(() => sentinel.stop());
  const asked = new Redis({ port: sentinel.port });
  asked.on("error", () => undefined);
  cleanup.defer(() => asked.disconnect());
  await until("the Sentinel knows the replica", async () => {
    const known = await asked.call("SENTINEL", "REPLICAS", "mymaster").catch(() => []);
    return JSON.stringify(known).includes(String(replica.port));
  });
  return { primary, replica, sentinel, asked };
}
