import { createLocalGate, isKonvergeError, sleepMs } from "@konverge/core";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { RoutePolicy } from "./resources.ts";

export interface CompetingWriterOptions {
  readonly kubeconfigPath: string;
  readonly policies: number;
  /** Time between two rounds of writes. */
  readonly everyMs: number;
}

/** Another program that owns `spec.weight` as well: it writes 1 where the controller writes 100. */
export function startCompetingWriter(options: CompetingWriterOptions): AsyncDisposable {
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath: options.kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 10_000, burst: 10_000 }),
    userAgent: "argocd-controller",
  });
  const stop = new AbortController();
  const { signal } = stop;
  const write = async () => {
    while (!signal.aborted) {
      for (let number = 1; number <= options.policies; number++) {
        const target = { namespace: "checkout", name: `web-${number}` };
        const body = { spec: { weight: 1 } };
        await client.patch(
          RoutePolicy,
          target,
          { type: "merge", body },
          { unguarded: true, signal },
        );
      }
      await sleepMs(options.everyMs, signal);
    }
  };
  const running = write().catch((error: unknown) => {
    // The API server is frozen in the last part, so its calls time out.
    if (!signal.aborted && !isKonvergeError(error)) throw error;
  });
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
      await client.close();
    },
  };
}
