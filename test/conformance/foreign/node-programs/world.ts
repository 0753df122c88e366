import {
  ApiException,
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
} from "@kubernetes/client-node";
import { until } from "../../../support/until.ts";

/** The clients of a program, and the namespace that it may use. */
export interface World {
  readonly config: KubeConfig;
  readonly namespace: string;
  readonly core: CoreV1Api;
  readonly custom: CustomObjectsApi;
  readonly leases: CoordinationV1Api;
  /** Prints one line. */
  readonly say: (line: string) => void;
}

export const parts = { group: "foreign.konverge.dev", version: "v1", plural: "parts" };

/** Long enough for a busy machine. */
const LIMIT_MS = 60_000;

export function openWorld(): World {
  const config = new KubeConfig();
  config.loadFromDefault();
  return {
    config,
    namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? "default",
    core: config.makeApiClient(CoreV1Api),
    custom: config.makeApiClient(CustomObjectsApi),
    leases: config.makeApiClient(CoordinationV1Api),
    say: (line) => console.log(line),
  };
}

/** Returns the result of a call, or the code and body of its error, without what a server chooses. */
export async function outcomeOf(call: () => Promise<unknown>): Promise<string> {
  try {
    return format(await call());
  } catch (error) {
    if (!(error instanceof ApiException)) throw error;
    const body: unknown = error.body;
    return `${error.code} ${typeof body === "string" ? body.trim() : format(body)}`;
  }
}

/** JSON with sorted members, because the order of members has no meaning. */
export function format(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === "object" && one !== null && !Array.isArray(one) && !(one instanceof Date)
      ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}

/** Waits until the lines contain one that begins with `line`. */
export const has = (lines: readonly string[], line: string) =>
  until(line, () => lines.some((one) => one.startsWith(line)), LIMIT_MS);
