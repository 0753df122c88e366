import { randomUUID } from "node:crypto";
import type { Settings } from "@konverge/contracts";
import { KonvergeError, parseKey, formatKey } from "@konverge/core";
import type { PlanRecord } from "@konverge/records";
import { loadWorkerConfig } from "../config/load-config.ts";
import { readVersion } from "../process/version.ts";

/** The controllers of a configuration that no worker runs yet. */
export interface NewCode {
  readonly controllers: readonly string[];
  plan(key: string): Promise<PlanRecord>;
  /** The keys of the objects that a controller selects. */
  keys(controller: string, query: { readonly namespace?: string }): AsyncIterable<string>;
  close(): Promise<void>;
}

interface NewCodeOptions {
  /** Of the client, which reads the plans of the running code. */
  readonly settings: Settings;
  readonly cluster: string;
}

/**
 * Loads new code into this process, which plans with it and cannot write. Errors that its handlers leave behind are logged.
 * @throws KonvergeError as `openPlanner`
 */
export async function openNewCode(
  file: string,
  { settings: { server, prefix }, cluster }: NewCodeOptions,
): Promise<NewCode> {
  const { config, settings } = await loadWorkerConfig(file, process.env);
  if (server === undefined && settings.prefix !== prefix) {
    throw new KonvergeError(
      "invalid_config",
      `--config: ${file} belongs to the installation "${settings.prefix}", but this command uses "${prefix}"; set KONVERGE_PREFIX`,
    );
  }
  const [{ openPlanner }, { reportStrayErrors }, { createLogger }] = await Promise.all([
    import("@konverge/worker"),
    import("@konverge/engine"),
    import("@konverge/telemetry"),
  ]);
  const version = readVersion();
  const log = createLogger({
    service: "planner",
    version,
    level: "warn",
    linesPerSecond: settings.logLimit,
    destination: process.stderr,
  });
  const uninstall = reportStrayErrors({ log });
  try {
    const planner = await openPlanner({
      config,
      settings: { ...settings, cluster },
      version,
      log,
      env: process.env,
    });
    const { signal } = new AbortController();
    return {
      controllers: planner.controllers,
      plan: (key) =>
        planner.plan({ id: randomUUID(), key: parseKey(key), class: "background", signal }),
      async *keys(controller, query) {
        for await (const key of planner.keys(controller, query)) yield formatKey(key);
      },
      async close() {
        await planner.stop();
        uninstall();
      },
    };
  } catch (error) {
    uninstall();
    throw error;
  }
}
