import { defined, isKonvergeError, KonvergeError, parseKey } from "@konverge/core";
import type { DescribedObject, Engine } from "@konverge/engine";
import { serveObjectReads, type ObjectRead, type WantedPlan } from "@konverge/queue";
import type { WorkerSetup } from "./worker-setup.ts";

/** Longest read of an object, in ms. The caller waits a little longer. */
const READ_MS = 4_000;
const MAX_MESSAGE = 500;

type Answer =
  | DescribedObject
  | { readonly kind: "unavailable"; readonly code: string; readonly message: string };

/** Serves reads and plans of objects for the HTTP API, through the guard, unless the settings turn them off. */
export function startObjectReads(setup: WorkerSetup, engine: Engine): void {
  const { config, place } = setup;
  const { settings, log } = setup.options;
  const reads = settings.objectReads === "on";
  const plans = settings.plans === "on";
  if (!reads && !plans) return;
  // Ends the handlers of plans before the engine stops.
  const stopping = new AbortController();
  const stop = serveObjectReads({
    ...place,
    controllers: config.controllers.map(({ name }) => name),
    ...(reads
      ? { read: async (wanted: ObjectRead) => JSON.stringify(await answerOf(engine, wanted)) }
      : {}),
    ...(plans ? { plan: (wanted: WantedPlan) => planOf(engine, wanted, stopping.signal) } : {}),
    attempts: () => ({ active: sumOf(Object.values(engine.slots)), ended: engine.finished }),
    onError: (error) => log.debug({ err: error }, "object reads and plans without Redis"),
  });
  setup.atEnd("reads and plans of objects", async () => {
    stopping.abort(new KonvergeError("cancelled", "the worker stops"));
    await stop();
  });
}

function sumOf(slots: readonly { readonly running: number }[]): number {
  return slots.reduce((sum, { running }) => sum + running, 0);
}

async function planOf(
  engine: Engine,
  { id, key, by, class: planClass = "interactive" }: WantedPlan,
  signal: AbortSignal,
): Promise<string> {
  const plan = await engine.plan({ id, key: parseKey(key), by, class: planClass, signal });
  return JSON.stringify(plan);
}

async function answerOf(
  engine: Engine,
  { controller, namespace, name }: ObjectRead,
): Promise<Answer> {
  const signal = AbortSignal.timeout(READ_MS);
  try {
    return await engine.describe(controller, { name, ...defined({ namespace }) }, { signal });
  } catch (error) {
    if (isKonvergeError(error)) {
      // Texts of Konverge and of the API server; those of sensitive kinds are redacted by the client.
      const { code, message } = error;
      return { kind: "unavailable", code, message: message.slice(0, MAX_MESSAGE) };
    }
    if (!signal.aborted) throw error;
    const message = `the API server did not respond within ${READ_MS / 1_000} s`;
    return { kind: "unavailable", code: "kube_timeout", message };
  }
}
