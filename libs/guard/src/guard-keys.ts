import { KonvergeError } from "@konverge/core";

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
  if (prefix === "" || /[{}\s]/.test(prefix)) {
    throw new KonvergeError(
      "invalid_config",
      `prefix "${prefix}" must not be empty or contain braces or spaces`,
    );
  }
  if (cluster === "") throw new KonvergeError("invalid_config", "cluster must not be empty");
  const root = `${prefix}:{${encodeURIComponent(cluster)}}/guard`;
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
