import type { SettingsInput } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { Controller } from "./define-controller.ts";

/** Where one cluster is and how hard it may be driven. */
export interface ClusterOptions {
  /** Path of a kubeconfig. Default: `KUBECONFIG`, `~/.kube/config`, or the pod's own account. */
  readonly kubeconfig?: string;
  readonly context?: string;
  /** API calls per second of the whole fleet. Default 500. */
  readonly rate?: number;
  /** API calls of the whole fleet on top of that, in any window. Default twice the rate. */
  readonly burst?: number;
  /** Trouble cuts the rate, but not below this. Default a fiftieth of the rate. */
  readonly minRate?: number;
  /** API calls at once per process, and its connections. Default 64. */
  readonly maxInFlight?: number;
}

export interface Config {
  readonly controllers: readonly Controller[];
  readonly clusters: Readonly<Record<string, ClusterOptions>>;
  /** Settings of the process; the environment wins over them. */
  readonly settings: SettingsInput;
}

/** What `konverge worker --config` loads. @throws KonvergeError `invalid_config` */
export function defineConfig(config: {
  readonly controllers: readonly Controller[];
  readonly clusters?: Readonly<Record<string, ClusterOptions>>;
  readonly settings?: SettingsInput;
}): Config {
  const names = config.controllers.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new KonvergeError(
      "invalid_config",
      `controllers: two are named "${twice}"; give each its own name`,
    );
  }
  if (names.length === 0) {
    throw new KonvergeError("invalid_config", "controllers is empty; list at least one");
  }
  const clusters = config.clusters ?? { default: {} };
  if (Object.keys(clusters).length === 0) {
    throw new KonvergeError(
      "invalid_config",
      "clusters is empty; leave it out for one named default",
    );
  }
  return { controllers: config.controllers, clusters, settings: config.settings ?? {} };
}
