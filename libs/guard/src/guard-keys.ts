import { KonvergeError } from "@konverge/core";

/** Where a cluster's guard lives in Redis: one hash tag, so that the scripts may touch all of it. */
export interface GuardKeys {
  readonly state: string;
  readonly live: string;
  readonly failing: string;
  readonly transitions: string;
  /** Transitions are told here; only an accelerator. */
  readonly channel: string;
}

/** Beside the queue's names, under the cluster's own root `<prefix>:{<cluster>}`. @throws KonvergeError `invalid_config` */
export function guardKeys(prefix: string, cluster: string): GuardKeys {
  if (prefix === "" || /[{}\s]/.test(prefix)) {
    throw new KonvergeError(
      "invalid_config",
      `prefix "${prefix}" must not be empty, nor hold braces or spaces`,
    );
  }
  if (cluster === "")
    throw new KonvergeError("invalid_config", "cluster is empty; name what is guarded");
  const root = `${prefix}:{${encodeURIComponent(cluster)}}/guard`;
  return {
    state: root,
    live: `${root}/live`,
    failing: `${root}/failing`,
    transitions: `${root}/transitions`,
    channel: `${root}/changed`,
  };
}
