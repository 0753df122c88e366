import { defined, isKonvergeError } from "@konverge/core";
import type { DescribedObject, Engine } from "@konverge/engine";
import { serveObjectReads, type ObjectRead } from "@konverge/queue";
import type { WorkerSetup } from "./worker-setup.ts";

/** Longest read of an object, in ms. The caller waits a little longer. */
const READ_MS = 4_000;
const MAX_MESSAGE = 500;

type Answer =
  | DescribedObject
  | { readonly kind: "unavailable"; readonly code: string; readonly message: string };

/** Serves reads of objects for the HTTP API, through the guard, unless the setting `objectReads` is off. */
export function startObjectReads(setup: WorkerSetup, engine: Engine): void {
  const { config, place } = setup;
  const { settings, log } = setup.options;
  if (settings.objectReads === "off") return;
  const stop = serveObjectReads({
    ...place,
    controllers: config.controllers.map(({ name }) => name),
    read: async (wanted) => JSON.stringify(await answerOf(engine, wanted)),
    onError: (error) => log.debug({ err: error }, "object reads without Redis"),
  });
  setup.atEnd("reads of objects", stop);
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
