import { KonvergeError, toMs, type ErrorIssue, type ResourceType } from "@konverge/core";
import { parseLabelSelector } from "@konverge/kube";
import { findFairnessIssues, type Fairness } from "@konverge/queue";
import { findApprovalIssue } from "./approval-rule.ts";
import { findBackoffIssues } from "./backoff.ts";
import { findNamespacesIssue } from "./namespace-selection.ts";
import { ACCESS_VERBS } from "./permission.ts";
import type { EventSource } from "./event-source.ts";
import { findServiceLevelIssue } from "./service-level.ts";
import type { ControllerOptions } from "./controller-options.ts";
import type { Source, WatchSource } from "./source.ts";

/** Options of any type, because a configuration can be JavaScript. */
type Written = { readonly [Option in keyof ControllerOptions<never>]?: unknown };

type Check = (value: unknown) => string | undefined;

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** The maximum of setTimeout. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined ? undefined : check(value);
const isFunction = (value: unknown) => typeof value === "function";
const wholeFrom1 =
  (fix = ""): Check =>
  (value) =>
    Number.isInteger(value) && Number(value) >= 1
      ? undefined
      : `${String(value)} must be an integer >= 1${fix}`;
const listOf =
  (check: Check): Check =>
  (value) => {
    if (!Array.isArray(value)) return "must be a list";
    const wrong = value.map((entry, index) => [index, check(entry)] as const);
    const [index, detail] = wrong.find(([, found]) => found !== undefined) ?? [0, undefined];
    return detail === undefined ? undefined : `entry ${index} ${detail}`;
  };
/** Each resync enqueues every object; a shorter time is a mistake of the unit. */
const SHORTEST_RESYNC_MS = 1_000;
const isType: Check = (value) => {
  const { group, version, kind, resource } = (value ?? {}) as Record<string, unknown>;
  return [group, version, kind, resource].every((part) => typeof part === "string")
    ? undefined
    : "must be a resource of defineResource, or { group, version, kind, resource, scope }";
};
const duration =
  (field: string, { atLeastMs = 1, maxMs = Infinity } = {}): Check =>
  (value) => {
    try {
      const ms = toMs(value as number, field);
      if (ms >= atLeastMs && ms <= maxMs) return undefined;
      const unit =
        typeof value === "number"
          ? '; a number is in milliseconds, so write text such as "5m"'
          : "";
      return `${String(value)} must be at least ${atLeastMs} ms${maxMs === Infinity ? "" : " and at most 24 days"}${unit}`;
    } catch (error) {
      if (!(error instanceof KonvergeError)) throw error;
      return `${String(value)} is not a duration; write milliseconds or text such as "30s"`;
    }
  };
const isSelector: Check = (value) =>
  typeof value === "string" && value !== "" && parseLabelSelector(value) !== undefined
    ? undefined
    : 'must be a label selector such as "app=web" or "tier in (a, b)"';
const isFieldSelector: Check = (value) =>
  typeof value === "string" && /^[^=!,]+(=|==|!=)[^=!,]*(,[^=!,]+(=|==|!=)[^=!,]*)*$/.test(value)
    ? undefined
    : 'must be a field selector such as "spec.nodeName=n1"';
const indexes: Check = (value) =>
  typeof value === "object" && value !== null && Object.values(value).every(isFunction)
    ? undefined
    : "must be an object of functions (object) => text or a list of texts";
/** The checks of the fields of a source. Tables, so that a new field without a check does not compile. */
const SOURCE_CHECKS: Readonly<Record<keyof Source, Check>> = {
  type: isType,
  predicate: optional((value) =>
    isFunction(value) ? undefined : "must be a function (change) => boolean",
  ),
  namespaces: optional(findNamespacesIssue),
  labels: optional(isSelector),
  fields: optional(isFieldSelector),
  indexes: optional(indexes),
};
const WATCH_CHECKS: Readonly<Record<keyof WatchSource, Check>> = {
  ...SOURCE_CHECKS,
  map: (value) =>
    isFunction(value) ? undefined : "must be a function (object) => names to reconcile",
};
const fieldsOf =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) => {
    const given = (value ?? {}) as Readonly<Record<string, unknown>>;
    for (const [field, check] of Object.entries(checks)) {
      const detail = check(given[field]);
      if (detail !== undefined) return `${field} ${detail}`;
    }
    if (given["namespaces"] !== undefined && (given["type"] as ResourceType).scope === "Cluster") {
      return "namespaces must be omitted, because the kind is cluster-scoped";
    }
    const unknown = Object.keys(given).find((field) => !Object.hasOwn(checks, field));
    if (unknown === undefined) return undefined;
    return `${unknown} is unknown; valid fields: ${Object.keys(checks).join(", ")}`;
  };
/** A kind, or a source with more fields. */
const source: Check = (value) =>
  typeof value === "object" && value !== null && "type" in value
    ? fieldsOf(SOURCE_CHECKS)(value)
    : isType(value);

const permission: Check = (value) => {
  const { type, verbs, subresource } = (value ?? {}) as Record<string, unknown>;
  if (isType(type) !== undefined) return `type ${isType(type)}`;
  const known: readonly unknown[] = ACCESS_VERBS;
  if (!Array.isArray(verbs) || verbs.length === 0 || !verbs.every((verb) => known.includes(verb))) {
    return `verbs must be a list of ${ACCESS_VERBS.join(", ")}`;
  }
  return subresource === undefined || (typeof subresource === "string" && subresource !== "")
    ? undefined
    : 'subresource must be a name such as "status"';
};

const eventSource: Check = (value) =>
  ["poll", "stream", "inbound"].includes(String((value as Partial<EventSource> | null)?.kind))
    ? undefined
    : "must be a result of poll(), stream() or inbound()";

/** The cursor of a source is stored under its name. */
function findTwice(sources: readonly EventSource[]): string | undefined {
  const names = sources.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  return twice === undefined ? undefined : `duplicate name "${twice}"; use unique names`;
}

const clusters: Check = (value) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return 'must be an object such as { names: ["east"] } or { labels: "tier=prod" }';
  }
  const { names, labels, ...unknown } = value as Record<string, unknown>;
  const [option] = Object.keys(unknown);
  if (option !== undefined) return `${option} is unknown; valid fields: names, labels`;
  if (labels !== undefined && isSelector(labels) !== undefined) {
    return `labels ${isSelector(labels)}`;
  }
  const isName = (name: unknown) => typeof name === "string" && name !== "";
  if (names === undefined) return undefined;
  return Array.isArray(names) && names.length > 0 && names.every(isName)
    ? undefined
    : "names must be a list of names of clusters; omit it for all";
};

/** The check of each option. A table, so that a new option without a check does not compile. */
const CHECKS: Readonly<Record<keyof ControllerOptions<never>, Check>> = {
  name: (value) =>
    typeof value === "string" && NAME.test(value)
      ? undefined
      : "must be lower-case letters, digits and dashes, at most 63",
  for: source,
  owns: optional(listOf(source)),
  watches: optional(listOf(fieldsOf(WATCH_CHECKS))),
  sources: optional((value) => listOf(eventSource)(value) ?? findTwice(value as EventSource[])),
  permissions: optional(listOf(permission)),
  clusters: optional(clusters),
  concurrency: optional(wholeFrom1()),
  timeout: optional(duration("timeout", { maxMs: MAX_TIMEOUT_MS })),
  resync: optional(duration("resync", { atLeastMs: SHORTEST_RESYNC_MS })),
  conflictRetry: optional((value) =>
    ["inline", "job", "both"].includes(String(value))
      ? undefined
      : `"${String(value)}" must be inline, job or both`,
  ),
  backoff: () => undefined,
  maxFailures: optional(wholeFrom1("; omit it to retry forever")),
  maxLost: optional((value) =>
    value === Infinity || (Number.isSafeInteger(value) && Number(value) >= 3)
      ? undefined
      : `must be an integer >= 3, or Infinity to retry forever (got ${String(value)})`,
  ),
  agingTime: optional(duration("agingTime", { atLeastMs: 100 })),
  weights: () => undefined,
  loopProtection: optional((value) =>
    value === "throttle" || value === "report" || value === "accept"
      ? undefined
      : `"${String(value)}" must be throttle, report or accept`,
  ),
  approval: optional(findApprovalIssue),
  slo: optional(findServiceLevelIssue),
  mode: optional((value) =>
    value === "reconcile" || value === "observe"
      ? undefined
      : `"${String(value)}" must be reconcile or observe`,
  ),
  record: optional((value) => {
    const { reads, ...unknown } = (value ?? {}) as Record<string, unknown>;
    const isRecord = typeof value === "object" && Object.keys(unknown).length === 0;
    return isRecord && (reads === undefined || typeof reads === "boolean")
      ? undefined
      : "must be an object such as { reads: true }";
  }),
  use: optional(
    listOf((value) =>
      isFunction(value) ? undefined : "must be a function (context, next) => result",
    ),
  ),
  reconcile: (value) =>
    isFunction(value) ? undefined : "must be a function: async ({ object, kube }) => { ... }",
  cleanup: optional((value) =>
    isFunction(value) || value === "abandon" ? undefined : 'must be a function, or "abandon"',
  ),
};

/** Returns all problems of a controller's options. */
export function findControllerIssues(options: Written): ErrorIssue[] {
  const known = Object.keys(CHECKS) as (keyof typeof CHECKS)[];
  return [
    ...Object.keys(options)
      .filter((option) => !Object.hasOwn(CHECKS, option))
      .map((option) => ({
        pointer: `/${option}`,
        detail: `${option}: is unknown; valid options: ${known.join(", ")}`,
      })),
    ...known.flatMap((option) => {
      const detail = CHECKS[option](options[option]);
      return detail === undefined
        ? []
        : [{ pointer: `/${option}`, detail: `${option}: ${detail}` }];
    }),
    ...findModeIssues(options),
    ...findRecordIssues(options),
    ...findBackoffIssues(options.backoff),
    ...findWeightIssues(options.weights),
  ];
}

function findModeIssues({ mode, approval }: Written): ErrorIssue[] {
  if (mode !== "observe" || approval === undefined) return [];
  const detail = "mode: a controller that observes makes no changes, so it cannot have approval";
  return [{ pointer: "/mode", detail }];
}

/** An approved attempt runs the handler twice, and may only make the writes of its plan. An observing one makes none. */
function findRecordIssues({ record, approval, mode }: Written): ErrorIssue[] {
  const isRecorded = (record as ControllerOptions<never>["record"])?.reads === true;
  if (!isRecorded || (approval === undefined && mode !== "observe")) return [];
  const other = approval === undefined ? "mode: observe" : "approval";
  const detail = `record: reads cannot be combined with ${other}; remove one of them`;
  return [{ pointer: "/record/reads", detail }];
}

function findWeightIssues(weights: unknown = {}): ErrorIssue[] {
  if (typeof weights !== "object" || weights === null) {
    return [{ pointer: "/weights", detail: "weights: must be an object of numbers by namespace" }];
  }
  return findFairnessIssues({ agingMs: Infinity, weights: weights as Fairness["weights"] }).filter(
    ({ pointer }) => pointer !== "/agingTime",
  );
}
