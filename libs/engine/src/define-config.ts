import type { SettingsInput } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import { checkClusters, type ClusterOptions } from "./cluster-options.ts";
import type { Controller } from "./define-controller.ts";

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
  checkClusters(clusters);
  return { controllers: config.controllers, clusters, settings: config.settings ?? {} };
}
