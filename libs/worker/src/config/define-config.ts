import { findSettingsIssues, type SettingsInput } from "@konverge/contracts";
import {
  defined,
  findCodecIssue,
  findLimitIssues,
  invalidConfig,
  type ErrorIssue,
  type NamedLimits,
  type PayloadCodec,
} from "@konverge/core";
import { MUTATIONS } from "@konverge/mutations";
import type { AnyWorkflow, Schedule } from "@konverge/workflow";
import { isClusterProvider, type ClusterProvider } from "../clusters/cluster-provider.ts";
import { findClusterIssues, type ClusterOptions } from "./cluster-options.ts";
import { findMutationIssues, type MutationOptions } from "./mutation-options.ts";
import { findNotifyIssues, type NotifyRule } from "../notify/notify-options.ts";
import type { Controller, Middleware } from "@konverge/engine";

export interface Config {
  readonly controllers: readonly Controller[];
  readonly workflows: readonly AnyWorkflow[];
  readonly schedules: readonly Schedule[];
  readonly clusters: Readonly<Record<string, ClusterOptions>> | ClusterProvider;
  /** Encodes the values of workflow runs in Redis. */
  readonly codec?: PayloadCodec;
  readonly limits: NamedLimits;
  readonly mutations?: MutationOptions;
  readonly notify?: readonly NotifyRule[];
  /** Settings of the process; environment variables override them. */
  readonly settings: SettingsInput;
  /** Runs around every handler of every controller, the first one outermost. */
  readonly use: readonly Middleware[];
}

/** The configuration of a process. */
export interface ConfigInput {
  /** Default: none, for a process with workflows only. */
  readonly controllers?: readonly Controller[];
  /** The workflows that the workers execute. Default: none. */
  readonly workflows?: readonly AnyWorkflow[];
  /** Schedules that start runs. Default: none. */
  readonly schedules?: readonly Schedule[];
  /** Encodes the values of workflow runs before they are stored in Redis, for example to encrypt them. Default: none. */
  readonly codec?: PayloadCodec;
  /**
   * The clusters by name, or a provider that finds them, such as `kubeconfigDirectory`. A worker serves all of them; with a list,
   * the setting `cluster` selects one. Default: one cluster named `default`.
   */
  readonly clusters?: Readonly<Record<string, ClusterOptions>> | ClusterProvider;
  /**
   * Limits of external services by name, for the `limit` of handlers and steps. All workers of the installation share them. The worker
   * that started last decides their values. Default: none.
   */
  readonly limits?: NamedLimits;
  /** The changes that other systems may request over the HTTP API. The workers apply them. Default: none. */
  readonly mutations?: MutationOptions;
  /** The receivers of notifications about faults. Default: none. */
  readonly notify?: readonly NotifyRule[];
  /** Settings; environment variables take precedence. */
  readonly settings?: SettingsInput;
  /** Middleware of all controllers, outside their own. */
  readonly use?: readonly Middleware[];
}

/** A table, so that a new key without an entry does not compile. */
const KNOWN: Readonly<Record<keyof ConfigInput, true>> = {
  controllers: true,
  workflows: true,
  schedules: true,
  codec: true,
  clusters: true,
  limits: true,
  mutations: true,
  notify: true,
  settings: true,
  use: true,
};

/** Defines the configuration that `konverge worker --config` loads. @throws KonvergeError `invalid_config` with all problems */
export function defineConfig(config: ConfigInput): Config {
  const { controllers = [], workflows = [], schedules = [], clusters } = config;
  const issues = [
    ...Object.keys(config)
      .filter((key) => !Object.hasOwn(KNOWN, key))
      .map((key) => ({
        pointer: `/${key}`,
        detail: `${key}: is unknown; valid options: ${Object.keys(KNOWN).join(", ")}`,
      })),
    ...findControllerIssues(controllers, [workflows, config.mutations?.kinds]),
    ...findWorkflowIssues(workflows),
    ...findScheduleIssues(schedules),
    ...findCodecIssues(config.codec),
    ...findClustersIssues(clusters),
    ...(config.limits === undefined ? [] : findLimitIssues(config.limits)),
    ...(config.mutations === undefined ? [] : findMutationIssues(config.mutations)),
    ...(config.notify === undefined ? [] : findNotifyIssues(config.notify)),
    ...(config.settings === undefined ? [] : findSettingsIssues(config.settings)),
    ...findUseIssues(config.use),
  ];
  if (issues.length > 0) throw invalidConfig(issues);
  return {
    controllers,
    workflows,
    schedules,
    ...defined({ codec: config.codec }),
    clusters: clusters ?? { default: {} },
    limits: config.limits ?? {},
    ...defined({ mutations: config.mutations, notify: config.notify }),
    settings: config.settings ?? {},
    use: config.use ?? [],
  };
}

function findClustersIssues(clusters: ConfigInput["clusters"]): ErrorIssue[] {
  if (clusters === undefined) return [];
  if (!isClusterProvider(clusters)) return findClusterIssues(clusters);
  if (clusters.home === undefined) return [];
  const { engage: _engage, ...home } = clusters.home;
  return findClusterIssues({ home });
}

function findCodecIssues(codec: unknown): ErrorIssue[] {
  const issue = codec === undefined ? undefined : findCodecIssue(codec);
  return issue === undefined ? [] : [{ pointer: "/codec", detail: `codec: ${issue}` }];
}

function findUseIssues(use: unknown = []): ErrorIssue[] {
  if (Array.isArray(use) && use.every((entry) => typeof entry === "function")) return [];
  const detail = "use: must be a list of functions (context, next) => result";
  return [{ pointer: "/use", detail }];
}

/** @param others lists of other work, one of which is enough */
function findControllerIssues(controllers: unknown, others: readonly unknown[]): ErrorIssue[] {
  const pointer = "/controllers";
  if (!Array.isArray(controllers)) {
    return [{ pointer, detail: "controllers: must be a list of results of defineController" }];
  }
  const isEmpty = (list: unknown) =>
    list === undefined || (Array.isArray(list) && list.length === 0);
  if (controllers.length === 0 && others.every(isEmpty)) {
    return [
      { pointer, detail: "controllers: must have at least one controller, or set workflows" },
    ];
  }
  const named = controllers as readonly Controller[];
  const reserved = named.some(({ name }) => name === MUTATIONS)
    ? [{ pointer, detail: `controllers: the name "${MUTATIONS}" is reserved; use another name` }]
    : [];
  return [...findTwice("controllers", named), ...reserved, ...findInboundTwice(named)];
}

/** The name of an inbound source is part of its URL. */
function findInboundTwice(
  controllers: readonly Partial<Pick<Controller, "eventSources">>[],
): ErrorIssue[] {
  const names = controllers.flatMap(({ eventSources = [] }) =>
    eventSources.filter(({ kind }) => kind === "inbound").map(({ name }) => name),
  );
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at));
  return [...twice].map((name) => ({
    pointer: "/controllers",
    detail: `controllers: several have an inbound source "${name}"; use unique names`,
  }));
}

function findWorkflowIssues(workflows: unknown): ErrorIssue[] {
  if (!Array.isArray(workflows) || !workflows.every(isWorkflow)) {
    const detail = "workflows: must be a list of results of defineWorkflow";
    return [{ pointer: "/workflows", detail }];
  }
  return findTwice("workflows", workflows);
}

function findScheduleIssues(schedules: unknown): ErrorIssue[] {
  if (!Array.isArray(schedules) || !schedules.every(isSchedule)) {
    const detail = "schedules: must be a list of results of defineSchedule";
    return [{ pointer: "/schedules", detail }];
  }
  return findTwice("schedules", schedules);
}

function isSchedule(value: unknown): value is Schedule {
  if (typeof value !== "object" || value === null) return false;
  const { name, times, workflow } = value as Partial<Schedule>;
  return typeof name === "string" && typeof times?.next === "function" && isWorkflow(workflow);
}

function isWorkflow(value: unknown): value is AnyWorkflow {
  if (typeof value !== "object" || value === null) return false;
  const { name, version, kinds, run } = value as Partial<AnyWorkflow>;
  const isNamed = typeof name === "string" && typeof version === "number";
  return isNamed && Array.isArray(kinds) && typeof run === "function";
}

function findTwice(key: string, named: readonly { readonly name: string }[]): ErrorIssue[] {
  const names = named.map(({ name }) => name);
  const twice = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  return [...twice].map((name) => ({
    pointer: `/${key}`,
    detail: `${key}: duplicate name "${name}"; use unique names`,
  }));
}
