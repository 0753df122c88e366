import { startRedis } from "@konverge/infra-redis";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";

/** Loses all workers of one of two installations on one Redis and one API server. */
export async function loseWorkersOfOne(scene: Scene): Promise<void> {
  const redis = await startRedis();
  scene.defer(() => redis.stop());
  const open = async (name: string) => {
    const installation = await scene.install({ name, redisUrl: redis.url });
    const worker = await installation.startWorker();
    await installation.startApi();
    const traffic = await scene.trafficFor(installation);
    traffic.start();
    await traffic.untilServed();
    return { installation, worker, traffic };
  };
  const [shop, bank] = [await open("game-shop"), await open("game-bank")];
  scene.observe(shop.installation, bank.installation);
  await scene.compare(shop.installation, "two installations share Redis and the API server", {
    minutes: 10,
  });

  await bank.worker.kill();
  await scene.compare(bank.installation, "game-bank lost its only worker", {
    minutes: 5,
    alerts: ["KonvergeNoWorker"],
    problems: ["no_workers"],
    may: RECENT,
  });
  await scene.compare(shop.installation, "the same moment in game-shop");

  await bank.installation.startWorker();
  await bank.traffic.untilServed();
  for (const { installation, traffic } of [shop, bank]) {
    await scene.compare(installation, `${installation.name} afterwards`, {
      minutes: 2,
      may: RECENT,
    });
    await traffic.stop();
    await traffic.settle();
  }
  scene.fact("all accepted work of both ended", []);
}
