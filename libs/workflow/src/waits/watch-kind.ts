import { defined, ensureError, KonvergeError, sleepMs, type ApiObject } from "@konverge/core";
import { createReflector, isForbidden, type KubeClient } from "@konverge/kube";
import type { RunRef } from "../define/run-ref.ts";
import type { WaitIndex } from "./wait-index.ts";
import { parseKindKey, placeOf } from "../store/wait-names.ts";

/** Before what failed is tried again, in ms: a kind that is not served, a Redis that does not answer. */
const AGAIN_MS = 5_000;
/** Changed objects asked for at once, and runs woken at once. */
const PLACES_AT_ONCE = 500;
const WAKES_AT_ONCE = 16;

export interface KindWatchOptions {
  /** Key of the kind in the index. */
  readonly kind: string;
  readonly client: () => Promise<KubeClient>;
  readonly index: WaitIndex;
  readonly wake: (run: RunRef, reason: string) => Promise<void>;
  readonly onError: (error: Error) => void;
}

/**
 * Watches one kind and wakes the runs that wait for an object when it changes. What changed while nobody watched is in no event, so
 * behind the first list all runs of the kind are woken; a later list of the same watch tells its differences.
 */
export function watchKind(options: KindWatchOptions): { stop(): Promise<void> } {
  const { kind, index, wake, onError } = options;
  const { cluster, apiVersion, kind: kindName } = parseKindKey(kind);
  const stopping = new AbortController();
  const { signal } = stopping;
  const changed = new Set<string>();
  let isAllDue = false;
  let toldForbidden = false;
  let waking: Promise<void> | undefined;

  /** A 403 stays until somebody changes a role, and the watch asks again and again: one line says it. */
  const report = (error: Error) => {
    if (!isForbidden(error)) return onError(error);
    if (toldForbidden) return;
    toldForbidden = true;
    const message =
      `${kindName} of ${apiVersion} cannot be watched in cluster "${cluster}": ${error.message}; runs that wait for such objects are looked at ` +
      'every 30 s meanwhile. Name the kind under kinds of the workflow and apply the roles that "konverge manifests" prints';
    onError(new KonvergeError("forbidden", message, { cause: error }));
  };
  /** What fails in the same way again is told once: a kind that is not served, a cluster that is not configured here. */
  const retry = async (work: () => Promise<void>): Promise<void> => {
    let told = "";
    while (!signal.aborted) {
      try {
        return await work();
      } catch (thrown) {
        if (signal.aborted) return;
        const error = ensureError(thrown);
        if (error.message !== told) report(error);
        told = error.message;
        await sleepMs(AGAIN_MS, signal).catch(() => undefined);
      }
    }
  };

  const wakeAll = async (runs: readonly RunRef[]): Promise<void> => {
    const left = runs.values();
    const waker = async (): Promise<void> => {
      for (const run of left) await wake(run, `${kindName} has changed`);
    };
    await Promise.all(Array.from({ length: WAKES_AT_ONCE }, waker));
  };
  /** What comes while this runs is done by its next round. A round that fails is made again as a whole. */
  const wakeChanged = async (): Promise<void> => {
    while (changed.size > 0 || isAllDue) {
      if (isAllDue) {
        isAllDue = false;
        try {
          for await (const runs of index.allOf(kind)) await wakeAll(runs);
        } catch (error) {
          isAllDue = true;
          throw error;
        }
        continue;
      }
      const places = [...changed].slice(0, PLACES_AT_ONCE);
      for (const place of places) changed.delete(place);
      try {
        await wakeAll(await index.runsOf(kind, places));
      } catch (error) {
        for (const place of places) changed.add(place);
        throw error;
      }
    }
  };
  const startWaking = () => {
    waking ??= retry(wakeChanged).finally(() => {
      waking = undefined;
      // Came behind its last look.
      if (!signal.aborted && (changed.size > 0 || isAllDue)) startWaking();
    });
  };

  const watch = async (): Promise<void> => {
    const client = await options.client();
    const type = await client.scoped({ signal }).resolveType(apiVersion, kindName);
    const reflector = createReflector<ApiObject>({
      client,
      type,
      trim,
      onEvent({ object, initial }) {
        // The first list is followed by a look at all who wait.
        if (initial) return;
        const { namespace, name } = object.metadata;
        changed.add(placeOf(namespace, name));
        startWaking();
      },
      onSynced() {
        isAllDue = true;
        startWaking();
      },
      onError: report,
    });
    reflector.start();
    try {
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    } finally {
      await reflector.stop();
    }
  };
  const watching = retry(watch);

  return {
    async stop() {
      stopping.abort(new Error("the watch is stopped"));
      await Promise.all([watching, waking]);
    },
  };
}

/** Enough to tell that it is another one or has changed: what objects hold is not kept, of whatever kind (P12). */
function trim({ apiVersion, kind, metadata }: ApiObject): ApiObject {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...defined({ namespace, uid, resourceVersion }),
    },
  };
}
