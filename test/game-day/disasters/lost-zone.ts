import { defined } from "@konverge/core";
import { startRedis } from "@konverge/infra-redis";
import { Redis } from "ioredis";
import { until } from "../../support/until.ts";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite, openSite } from "../site.ts";

/** Kills everything in one of two zones at once: a worker that leads, an API process and the replica of Redis. */
export async function loseZone(scene: Scene): Promise<void> {
  const primary = await startRedis();
  scene.defer(() => primary.stop());
  const startReplica = async (port?: number) => {
    const extraArgs = ["--replicaof", "127.0.0.1", String(primary.port)];
    const replica = await startRedis({ extraArgs, ...defined({ port }) });
    scene.defer(() => replica.stop());
    return replica;
  };
  const replica = await startReplica();
  const admin = new Redis(primary.url);
  scene.defer(async () => admin.disconnect());
  await until("the replica follows", async () =>
    (await admin.info("replication")).includes("state=online"),
  );
  const site = await openSite(scene, { redisUrl: primary.url });
  const { installation, traffic, api, workers } = site;
  await installation.startApi();

  installation.service.remove(api.url);
  await Promise.all([workers[0].kill(), api.kill(), replica.kill()]);
  await traffic.untilServed();
  await scene.compare(
    installation,
    "the leader, an API process and the replica of Redis are lost",
    {
      minutes: 20,
      alerts: ["KonvergeReplicaLost"],
      may: RECENT,
    },
  );

  await startReplica(replica.port);
  await installation.startWorker();
  await installation.startApi();
  await closeSite(scene, site);
}
