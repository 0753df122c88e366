import type { Scene } from "../scene.ts";
import { rollApi } from "./api-rollout.ts";
import { deployBesideAutoscaler } from "./autoscaler-at-deploy.ts";
import { shiftClock } from "./clock-skew.ts";
import { fillRedis } from "./full-redis.ts";
import { loseZone } from "./lost-zone.ts";
import { failOver } from "./redis-failover.ts";
import { reshard } from "./resharding.ts";
import { restoreEtcd } from "./restore-etcd.ts";
import { restoreRedis } from "./restore-redis.ts";
import { rotateCredentials } from "./rotated-credentials.ts";
import { loseWorkersOfOne } from "./two-installations.ts";
import { upgradeAndRollBack } from "./upgrade.ts";

interface Disaster {
  readonly title: string;
  readonly play: (scene: Scene) => Promise<void>;
}

export const DISASTERS: Readonly<Record<string, Disaster>> = {
  "redis-failover": { title: "The primary of Redis is lost", play: failOver },
  resharding: { title: "A slot of a Redis Cluster moves under load", play: reshard },
  "restore-redis": { title: "Redis is restored from an older copy", play: restoreRedis },
  "restore-etcd": { title: "etcd is restored from an older copy", play: restoreEtcd },
  upgrade: {
    title: "The fleet is upgraded from the previous version and rolled back under load",
    play: upgradeAndRollBack,
  },
  "api-rollout": { title: "All API processes are replaced under load", play: rollApi },
  "autoscaler-at-deploy": {
    title: "A new build is deployed beside an autoscaler",
    play: deployBesideAutoscaler,
  },
  "two-installations": {
    title: "One of two installations loses its workers",
    play: loseWorkersOfOne,
  },
  "rotated-credentials": {
    title: "The password of Redis is replaced under load",
    play: rotateCredentials,
  },
  "full-redis": { title: "Redis is full", play: fillRedis },
  "clock-skew": { title: "The clock of a worker is an hour wrong", play: shiftClock },
  "lost-zone": { title: "One of two zones is lost", play: loseZone },
};
