import type { ObjectKey } from "@konverge/core";
import { defineResource } from "@konverge/engine";
import { z } from "zod";

/** The contract between the test and its worker processes. */
export interface FleetWorkerConfig {
  readonly redisUrl: string;
  readonly kubeconfig: string;
  readonly prefix: string;
  readonly namespace: string;
  readonly workerId: string;
  /** Journal file of the handlers. */
  readonly journal: string;
  /** Shortest and longest run of a plain handler, in ms. */
  readonly plainMs: readonly [number, number];
  /** Share of the plain runs that fail. */
  readonly failing: number;
}

export interface FleetWord {
  readonly kind: "ready";
  /** The protection that this worker lacks, or "". */
  readonly patched: string;
}

/** Command to a worker: shift the wall clock by this time. */
export interface ClockOrder {
  readonly kind: "clock";
  readonly offsetMs: number;
}

/** Short, so that the keys of a dead worker are soon taken over. */
export const LEASE_MS = 2_000;
/** Longest backoff of the fleet's controllers. */
export const CAP_MS = 1_000;
export const AGING_MS = 5_000;

const group = "chaos.konverge.dev";
/** Each increments a hot object once per attempt. */
export const Counter = defineResource({
  group,
  version: "v1",
  kind: "Counter",
  spec: z.object({}),
});
export const Plain = defineResource({ group, version: "v1", kind: "Plain", spec: z.object({}) });

/** How writers of one hot object are separated: by lanes with passed objects, by the version alone, or by the fields read. */
export const MODES = ["lane", "guarded", "fields"] as const;
export type Mode = (typeof MODES)[number];

export const hotObject = (mode: Mode): string => `hot-${mode}`;

/** The mode of a counter named `<mode>-<n>`. */
export function modeOf(name: string): Mode {
  const mode = MODES.find((one) => name.startsWith(`${one}-`));
  if (mode === undefined) throw new Error(`counter ${name} has no mode`);
  return mode;
}

const COUNTERS_PER_MODE = 8;
const PLAIN = 5;
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);
export const COUNTER_NAMES: readonly string[] = MODES.flatMap((mode) =>
  upTo(COUNTERS_PER_MODE).map((index) => `${mode}-${index}`),
);
export const PLAIN_NAMES: readonly string[] = [
  ...upTo(PLAIN).map((index) => `plain-${index}`),
  "deaf-0",
  "deaf-1",
];

export type ControllerName = "counter" | "plain";
export const CONTROLLERS: readonly ControllerName[] = ["counter", "plain"];

export function fleetKey(controller: ControllerName, namespace: string, name: string): ObjectKey {
  const { resource } = controller === "counter" ? Counter : Plain;
  return { controller, cluster: "default", resource, group, namespace, name };
}
