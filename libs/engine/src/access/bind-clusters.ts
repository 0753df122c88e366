import { KonvergeError } from "@konverge/core";
import { createClientNodeApi, type KubeCalls } from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import { forwardInAttempt } from "./attempt-api.ts";
import type { Attempt } from "./attempt.ts";

type Calls = KubeCalls<"handler">;
interface Reached {
  readonly remote: Attempt;
  readonly calls: Calls;
}
type AnyCall = (...args: readonly unknown[]) => unknown;

/**
 * Returns `on` for the handler of this attempt.
 * @param own the calls to the own cluster
 * @param callsOf creates the calls to another cluster
 */
export function bindClusters(
  attempt: Attempt,
  own: () => Calls,
  callsOf: (remote: Attempt) => Calls,
): AttemptKube["on"] {
  const opened = new Map<string, Calls>();
  const open = async (cluster: string): Promise<Reached> => {
    const { clusters } = attempt.runtime;
    if (clusters === undefined) {
      throw new KonvergeError(
        "invalid_config",
        `kube.on("${cluster}") needs a worker with several clusters; run the controller with konverge worker`,
      );
    }
    const remote = attempt.on(cluster, await clusters.reach(cluster));
    return { remote, calls: callsOf(remote) };
  };
  return (cluster) => {
    if (cluster === attempt.lease.key.cluster) return own();
    const known = opened.get(cluster) ?? lazyCalls(attempt, () => open(cluster));
    opened.set(cluster, known);
    return known;
  };
}

/** The calls of a cluster that is connected by the first of them. */
function lazyCalls(attempt: Attempt, connect: () => Promise<Reached>): Calls {
  let connecting: Promise<Reached> | undefined;
  const open = async (): Promise<Reached> => {
    connecting ??= connect();
    try {
      return await connecting;
    } catch (error) {
      connecting = undefined;
      throw error;
    }
  };
  const special: Partial<Record<string, unknown>> = {
    api: ((type) =>
      createClientNodeApi(type, (request) =>
        attempt.call(async () => await forwardInAttempt((await open()).remote, request)),
      )) satisfies Calls["api"],
    async *pages(...args: Parameters<Calls["pages"]>) {
      const { calls } = await attempt.call(open);
      yield* calls.pages(...args);
    },
  };
  return new Proxy({} as Calls, {
    get: (_, method) => {
      if (typeof method !== "string" || method === "then") return undefined;
      return (
        special[method] ??
        ((...args: readonly unknown[]) =>
          attempt.call(async () => {
            const { calls } = await open();
            return await callOf(calls, method)(...args);
          }))
      );
    },
  });
}

/** @throws KonvergeError `invalid_request` for a method that exists in the own cluster only, or not at all */
function callOf(calls: Calls, method: string): AnyCall {
  const call = Object.hasOwn(calls, method) ? Reflect.get(calls, method) : undefined;
  if (typeof call === "function") return call as AnyCall;
  throw new KonvergeError(
    "invalid_request",
    `kube.on(...) has no method "${method}"; available: ${Object.keys(calls).join(", ")}`,
  );
}
