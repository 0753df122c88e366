import { clusterRoot } from "@konverge/redis";

/** The names of a cluster's guard in Redis, under one hash tag, so that scripts can use all of them. */
export interface GuardKeys {
  readonly state: string;
  readonly live: string;
  readonly failing: string;
  readonly transitions: string;
  /** Workers that wait for tokens, by place, and the ends of their turns. */
  readonly order: string;
  readonly turns: string;
  /** Channel of transitions; an accelerator only. */
  readonly channel: string;
}

/** Returns the names under the cluster's root `<prefix>:{<cluster>}`, next to the queue's. @throws KonvergeError `invalid_config` */
export function guardKeys(prefix: string, cluster: string): GuardKeys {
  const root = `${clusterRoot(prefix, cluster)}/guard`;
  return {
    state: root,
    live: `${root}/live`,
    failing: `${root}/failing`,
    transitions: `${root}/transitions`,
    order: `${root}/order`,
    turns: `${root}/turns`,
    channel: `${root}/changed`,
  };
}
