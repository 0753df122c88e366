import type { Scene } from "../scene.ts";
import { rollApi } from "./api-rollout.ts";
import { deployBesideAutoscaler } from "./autoscaler-at-deploy.ts";
import { loseZone } from "./lost-zone.ts";
import { failOver } from "./redis-failover.ts";
import { loseWorkersOfOne } from "./two-installations.ts";

interface Disaster {
  readonly title: string;
  readonly play: (scene: Scene) => Promise<void>;
}

export const DISASTERS: Readonly<Record<string, Disaster>> = {
  "redis-failover": { title: "The primary of Redis is lost", play: failOver },
  "api-rollout": { title: "All API processes are replaced under load", play: rollApi },
  "autoscaler-at-deploy": {
    title: "A new build is deployed beside an autoscaler",
    play: deployBesideAutoscaler,
  },
  "two-installations": {
    title: "One of two installations loses its workers",
    play: loseWorkersOfOne,
  },
  "lost-zone": { title: "One of two zones is lost", play: loseZone },
};
