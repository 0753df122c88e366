import { findSettingsIssues, type SettingsInput } from "@konverge/contracts";
import { invalidConfig, type ErrorIssue } from "@konverge/core";
import { findClusterIssues, type ClusterOptions } from "./cluster-options.ts";
import type { Controller } from "./define-controller.ts";
import type { Middleware } from "./middleware.ts";

export interface Config {
  readonly controllers: readonly Controller[];
  readonly clusters: Readonly<Record<string, ClusterOptions>>;
  /** Settings of the process; the environment wins over them. */
  readonly settings: SettingsInput;
  /** Runs around every handler of every controller, the first one outermost. */
  readonly use: readonly Middleware[];
}

export interface ConfigInput {
  readonly controllers: readonly Controller[];
  /** Default: one named `default`. */
  readonly clusters?: Readonly<Record<string, ClusterOptions>>;
  readonly settings?: SettingsInput;
  /** Middleware of all controllers, outside of their own. */
  readonly use?: readonly Middleware[];
}

/** A table, so that a new key cannot be forgotten here. */
const KNOWN: Readonly<Record<keyof ConfigInput, true>> = {
  controllers: true,
  clusters: true,
  settings: true,
  use: true,
};

/** What `konverge worker --config` loads. @throws KonvergeError `invalid_config` with everything that is wrong */
export function defineConfig(config: ConfigInput): Config {
  const issues = [
    ...Object.keys(config)
      .filter((key) => !Object.hasOwn(KNOWN, key))
      .map((key) => ({
        pointer: `/${key}`,
        detail: `${key}: is not known; known are ${Object.keys(KNOWN).join(", ")}`,
      })),
    ...findControllerIssues(config.controllers),
    ...(config.clusters === undefined ? [] : findClusterIssues(config.clusters)),
    ...(config.settings === undefined ? [] : findSettingsIssues(config.settings)),
    ...findUseIssues(config.use),
  ];
  if (issues.length > 0) throw invalidConfig(issues);
  return {
    controllers: config.controllers,
    clusters: config.clusters ?? { default: {} },
    settings: config.settings ?? {},
    use: config.use ?? [],
  };
}

function findUseIssues(use: unknown = []): ErrorIssue[] {
  if (Array.isArray(use) && use.every((entry) => typeof entry === "function")) return [];
  const detail = "use: write a list of functions (context, next) => result";
  return [{ pointer: "/use", detail }];
}

function findControllerIssues(controllers: unknown): ErrorIssue[] {
  const pointer = "/controllers";
  if (!Array.isArray(controllers) || controllers.length === 0) {
    return [{ pointer, detail: "controllers: write a list of at least one" }];
  }
  const names = (controllers as readonly Controller[]).map(({ name }) => name);
  const twice = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  return [...twice].map((name) => ({
    pointer,
    detail: `controllers: several are named "${name}"; give each its own name`,
  }));
}
