import {
  defined,
  ensureError,
  KonvergeError,
  sleepMs,
  type ApiObject,
  type ResourceType,
} from "@konverge/core";
import { createReflector, isForbidden, type KubeClient, type Reflector } from "@konverge/kube";
import { parseKindKey, placeOf } from "../store/wait-names.ts";
import { RunWaker, type RunWakerOptions } from "./run-waker.ts";

/** Delay before a failed call is repeated, in ms, such as for a kind that is not served. */
const RETRY_MS = 5_000;

export interface KindWatchOptions extends Omit<RunWakerOptions, "retry" | "signal"> {
  readonly client: () => Promise<KubeClient>;
  /** The namespaces that the account may access. Undefined: all. */
  readonly namespaces: readonly string[] | undefined;
  readonly onError: (error: Error) => void;
}

/**
 * Watches one kind and wakes the runs that wait for an object when it changes. Changes from before the watch have no event, so
 * after the first list all runs of the kind are woken; a later list of the same watch reports its differences.
 */
export class KindWatch {
  readonly #options: KindWatchOptions;
  readonly #stopping = new AbortController();
  readonly #waker: RunWaker;
  readonly #watching: Promise<void>;
  #reportedForbidden = false;

  constructor(options: KindWatchOptions) {
    this.#options = options;
    const retry = (work: () => Promise<void>) => this.#retry(work);
    this.#waker = new RunWaker({ ...options, retry, signal: this.#stopping.signal });
    this.#watching = this.#retry(() => this.#watch());
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the watch is stopped"));
    await Promise.all([this.#watching, this.#waker.ended()]);
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopping;
    const { apiVersion, kind } = parseKindKey(this.#options.kind);
    const client = await this.#options.client();
    const type = await client.scoped({ signal }).resolveType(apiVersion, kind);
    const { namespaces } = this.#options;
    const scopes = type.scope === "Cluster" ? [undefined] : (namespaces ?? [undefined]);
    const reflectors = scopes.map((namespace) => this.#reflect(client, type, namespace));
    for (const reflector of reflectors) reflector.start();
    Promise.all(reflectors.map(({ synced }) => synced)).then(
      () => this.#waker.addAll(),
      // Stopped before the first list.
      () => undefined,
    );
    try {
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    } finally {
      await Promise.all(reflectors.map((reflector) => reflector.stop()));
    }
  }

  #reflect(
    client: KubeClient,
    type: ResourceType,
    namespace: string | undefined,
  ): Reflector<ApiObject> {
    return createReflector<ApiObject>({
      client,
      type,
      ...defined({ namespace }),
      trim,
      onEvent: ({ object, initial }) => {
        // All runs are woken after the first list.
        if (initial) return;
        this.#waker.add(placeOf(object.metadata.namespace, object.metadata.name));
      },
      onError: (error) => this.#report(error),
    });
  }

  /** Repeats failed work. Equal consecutive errors are reported once, such as a kind that is not served. */
  async #retry(work: () => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    let reported = "";
    while (!signal.aborted) {
      try {
        return await work();
      } catch (thrown) {
        if (signal.aborted) return;
        const error = ensureError(thrown);
        if (error.message !== reported) this.#report(error);
        reported = error.message;
        await sleepMs(RETRY_MS, signal).catch(() => undefined);
      }
    }
  }

  /** Reports an error; a 403 once, because it lasts until a role changes while the watch is repeated. */
  #report(error: Error): void {
    const { onError, kind: key } = this.#options;
    if (!isForbidden(error)) return onError(error);
    if (this.#reportedForbidden) return;
    this.#reportedForbidden = true;
    const { cluster, apiVersion, kind } = parseKindKey(key);
    const message =
      `${kind} of ${apiVersion} cannot be watched in cluster "${cluster}": ${error.message}; runs that wait for such objects are ` +
      'rechecked every 30 s. Add the kind to kinds of the workflow and apply the roles that "konverge manifests" prints';
    onError(new KonvergeError("forbidden", message, { cause: error }));
  }
}

/** Keeps what identifies an object and its version. Contents of objects are not kept, for any kind (P12). */
function trim({ apiVersion, kind, metadata }: ApiObject): ApiObject {
  const { name, namespace, uid, resourceVersion } = metadata;
  return { apiVersion, kind, metadata: { name, ...defined({ namespace, uid, resourceVersion }) } };
}
