import { toMs, type Duration } from "../duration.ts";
import { KonvergeError, type ErrorIssue } from "../errors.ts";
import type { LimitUse } from "./limits.ts";

/**
 * A named limit that all workers share. In every time T at most `burst + rate * T / per` permits are given, and at most
 * `concurrency` are held at once. A `key` that a use gives, such as a tenant, has a rate and slots of its own.
 */
export interface LimitOptions {
  /** Permits in `per`. Default: no limit of the rate. */
  readonly rate?: number;
  /** The interval of `rate`. Default 1 s. */
  readonly per?: Duration;
  /**
   * Permits that are available at once after a pause. Default: those of one second, at least 1. Too high floods the target after
   * a pause; too low leaves a part of the rate unused when workers are late.
   */
  readonly burst?: number;
  /** Permits held at once. Default: any number. A permit of a killed worker returns after 30 s. */
  readonly concurrency?: number;
}

export type NamedLimits = Readonly<Record<string, LimitOptions>>;

/** A limit as the scripts use it. Zero: not limited. */
export interface LimitRules {
  /** Time in which one token arrives, in microseconds. */
  readonly intervalUs: number;
  readonly burst: number;
  readonly concurrency: number;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const KNOWN = new Set<string>(["rate", "per", "burst", "concurrency"]);
/** Longest time between two permits. */
const MAX_INTERVAL_MS = 366 * 86_400_000;
const MAX_COUNT = 1_000_000;
/** Most characters of the key of a use. */
const MAX_KEY = 200;

/** Returns the rules of valid options. */
export function limitRules({ rate, per = "1s", burst, concurrency = 0 }: LimitOptions): LimitRules {
  if (rate === undefined) return { intervalUs: 0, burst: 0, concurrency };
  const intervalUs = (toMs(per, "per") * 1_000) / rate;
  return { intervalUs, burst: burst ?? Math.max(1, Math.floor(1e6 / intervalUs)), concurrency };
}

/** Returns all problems, with pointers below `pointer`. */
export function findLimitIssues(limits: unknown, pointer = "/limits"): ErrorIssue[] {
  if (typeof limits !== "object" || limits === null || Array.isArray(limits)) {
    return [{ pointer, detail: "limits: must be an object of limits by name" }];
  }
  return Object.entries(limits as Readonly<Record<string, unknown>>).flatMap(([name, options]) => {
    const at = `${pointer}/${name}`;
    if (!NAME.test(name)) {
      const detail = `limits: name "${name}" must be 1 to 63 letters, digits and . _ -, and begin with a letter or digit`;
      return [{ pointer: at, detail }];
    }
    return issuesOf(options).map(([field, detail]) => ({
      pointer: field === "" ? at : `${at}/${field}`,
      detail: `limits.${name}${field === "" ? "" : `.${field}`}: ${detail}`,
    }));
  });
}

function issuesOf(options: unknown): (readonly [field: string, detail: string])[] {
  if (typeof options !== "object" || options === null) return [["", "must be an object"]];
  const { rate, per, burst, concurrency } = options as LimitOptions;
  const issues: [string, string][] = Object.keys(options)
    .filter((key) => !KNOWN.has(key))
    .map((key) => [key, `is unknown; valid options: ${[...KNOWN].join(", ")}`]);
  if (rate === undefined && concurrency === undefined) {
    issues.push(["", "must have a rate, a concurrency, or both"]);
  }
  if (rate === undefined && (per !== undefined || burst !== undefined)) {
    issues.push(["rate", "is required with per and burst"]);
  }
  if (rate !== undefined) {
    if (!(Number.isFinite(rate) && rate > 0 && rate <= MAX_COUNT)) {
      issues.push(["rate", `must be a number above 0, at most ${MAX_COUNT} (got ${rate})`]);
    } else {
      const detail = findPeriodIssue(rate, per);
      if (detail !== undefined) issues.push(["per", detail]);
    }
  }
  for (const [field, count] of Object.entries({ burst, concurrency })) {
    if (count === undefined || isCount(count)) continue;
    issues.push([field, `must be an integer from 1 to ${MAX_COUNT} (got ${count})`]);
  }
  return issues;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1 && value <= MAX_COUNT;
}

function findPeriodIssue(rate: number, per: Duration = "1s"): string | undefined {
  let periodMs: number;
  try {
    periodMs = toMs(per, "per");
  } catch {
    return `must be a duration such as "1s" (got ${String(per)})`;
  }
  if (periodMs < 1) return "must be at least 1ms";
  if (periodMs / rate > MAX_INTERVAL_MS) return "gives less than one permit per year";
  return undefined;
}

/** Returns what is wrong with a use, whatever limits are configured. */
export function findUseIssue({ name, key = "" }: LimitUse): string | undefined {
  const isValid =
    typeof name === "string" &&
    name !== "" &&
    typeof key === "string" &&
    key.length <= MAX_KEY &&
    key.isWellFormed();
  if (isValid) return undefined;
  return `must be a name or { name, key, cost }, with a key of at most ${MAX_KEY} characters`;
}

/**
 * @throws KonvergeError `invalid_config` for a limit that is not configured, a cost that it can never give, or an invalid key
 */
export function findLimit(limits: NamedLimits, use: LimitUse): LimitRules {
  const { name, cost = 1 } = use;
  const issue = findUseIssue(use);
  if (issue !== undefined) throw new KonvergeError("invalid_config", `limit ${issue}`);
  const options = Object.hasOwn(limits, name) ? limits[name] : undefined;
  if (options === undefined) {
    const known = Object.keys(limits).map((each) => `"${each}"`);
    const names = known.length === 0 ? "none is configured" : `known: ${known.join(", ")}`;
    throw new KonvergeError(
      "invalid_config",
      `limit "${name}" is not configured (${names}); add it to limits of defineConfig`,
    );
  }
  const rules = limitRules(options);
  if (!(Number.isSafeInteger(cost) && cost >= 1)) {
    throw new KonvergeError(
      "invalid_config",
      `cost of limit "${name}" must be an integer >= 1 (got ${cost})`,
    );
  }
  if (rules.intervalUs > 0 && cost > rules.burst) {
    throw new KonvergeError(
      "invalid_config",
      `cost ${cost} exceeds the burst ${rules.burst} of limit "${name}", so it would wait forever; increase burst`,
    );
  }
  return rules;
}
