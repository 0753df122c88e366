import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { guard as dieWithUs } from "@konverge/apiserver";
import { startRedis } from "@konverge/infra-redis";
import { Namespace } from "@konverge/kube/kinds";
import { until } from "../../support/until.ts";
import { startPlane, type Plane } from "../plane.ts";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite } from "../site.ts";

/** Restores an older copy of etcd in the order of docs/restore.md, without a higher revision. */
export async function restoreEtcd(scene: Scene): Promise<void> {
  const plane = await startPlane(() => undefined);
  scene.defer(async () => await plane[Symbol.asyncDispose]());
  const servers = serversOf(plane);
  if (servers === undefined) {
    scene.fact("not played: only a real kube-apiserver on Linux has an etcd", []);
    return;
  }
  scene.defer(() => servers.end());
  scene.plane = plane;
  const redis = await startRedis();
  scene.defer(() => redis.stop());
  const installation = await scene.install({ redisUrl: redis.url });
  const traffic = await scene.trafficFor(installation);
  const backup = join(await scene.folder(), "etcd-backup");
  await servers.stop();
  await cp(servers.dataDir, backup, { recursive: true });
  await servers.start();

  const workers = [await installation.startWorker(), await installation.startWorker()];
  await installation.startApi();
  traffic.start();
  await traffic.untilServed();
  await traffic.createRestingObjects(10);
  scene.observe(installation);
  await scene.compare(installation, "two workers run under load", { minutes: 10, may: RECENT });

  await installation.command("guard", "isolate", "default", "--reason", "etcd restore");
  await traffic.stop();
  await servers.stop();
  await rm(servers.dataDir, { recursive: true });
  await cp(backup, servers.dataDir, { recursive: true });
  await servers.start();
  await scene.compare(installation, "all calls are stopped, and etcd has an older copy", {
    minutes: 5,
    alerts: ["KonvergeApiServerProtected"],
    problems: ["api_server_isolated"],
    may: RECENT,
  });
  for (const worker of workers) await worker.stop();
  const starting = [installation.startWorker(), installation.startWorker()];
  await installation.command("guard", "reset", "default", "--reason", "etcd is restored");
  await Promise.all(starting);
  traffic.start();
  await traffic.untilServed();
  await closeSite(scene, { installation, traffic });
}

interface Servers {
  readonly dataDir: string;
  stop(): Promise<void>;
  start(): Promise<void>;
  end(): Promise<void>;
}

/** The processes of a real control plane, which can be stopped and started with other data. */
function serversOf({ pids, client }: Plane): Servers | undefined {
  if (pids === undefined || process.platform !== "linux") return undefined;
  const commands = [pids.etcd, pids.kubeApiserver].map((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").filter(Boolean),
  );
  const [etcd = []] = commands;
  const dataDir = etcd.find((arg) => arg.startsWith("--data-dir="))?.slice("--data-dir=".length);
  if (dataDir === undefined) throw new Error(`etcd has no --data-dir: ${etcd.join(" ")}`);
  let started: ChildProcess[] = [];
  let running: readonly number[] = [pids.etcd, pids.kubeApiserver];
  const stop = async () => {
    for (const pid of running.toReversed()) {
      process.kill(pid, "SIGKILL");
      await until("the process has ended", () => !isAlive(pid));
    }
    running = [];
  };
  return {
    dataDir,
    stop,
    async start() {
      started = commands.map(([program = "", ...args]) =>
        spawn(program, args, { stdio: "ignore" }),
      );
      await Promise.all(started.map((child) => once(child, "spawn")));
      running = started.map(({ pid = 0 }) => pid);
      const guardian = dieWithUs({ pids: running });
      started[0]?.once("exit", () => guardian.release());
      await until("the API server answers", () =>
        client.get(Namespace, { name: "default" }).then(
          () => true,
          () => false,
        ),
      );
    },
    end: stop,
  };
}

/** A process that has ended may still be a zombie of its parent. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
