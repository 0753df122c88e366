import { KonvergeError } from "@konverge/core";
import {
  createControllerRegistry,
  type AnnouncedController,
  type ControllerRegistry,
  type RedisTarget,
} from "@konverge/queue";
import { keyed } from "./keyed.ts";
import { oncePerTurn } from "./once-per-turn.ts";

const ANNOUNCED_MS = 1_000;

export interface AnnouncementsOptions {
  readonly redis: RedisTarget;
  readonly prefix: string;
  readonly onError: (error: Error) => void;
}

/** The clusters, controllers and queue shards that workers have announced. */
export class Announcements {
  readonly #clusters: ControllerRegistry;
  readonly #knownClusters = new Set<string>();
  readonly #registries;
  readonly #shards;
  readonly #recent = new Map<
    string,
    { readonly announced: AnnouncedController; readonly untilMs: number }
  >();

  constructor(options: AnnouncementsOptions) {
    this.#clusters = createControllerRegistry({ ...options, cluster: "default" });
    this.#registries = keyed(
      (cluster: string) => createControllerRegistry({ ...options, cluster }),
      (registry) => registry.close(),
    );
    this.#shards = keyed((cluster: string) =>
      oncePerTurn(() => this.#registries.of(cluster).shards()),
    );
  }

  listClusters(): Promise<string[]> {
    return this.#clusters.listClusters();
  }

  /** The registry of a cluster, or undefined: an unknown name from a caller must not open connections. */
  async registry(cluster: string): Promise<ControllerRegistry | undefined> {
    return (await this.#isKnown(cluster)) ? this.#registries.of(cluster) : undefined;
  }

  /** @throws KonvergeError with `code` if no worker has announced the cluster */
  async demand(
    cluster: string,
    code: "unknown_controller" | "not_found",
  ): Promise<ControllerRegistry> {
    const registry = await this.registry(cluster);
    if (registry !== undefined) return registry;
    const detail = `cluster "${cluster}" not found; start a worker with konverge worker --config <file>`;
    throw new KonvergeError(code, detail);
  }

  /** Remembers an announcement for a second. @throws KonvergeError `unknown_controller` */
  async controller(cluster: string, name: string): Promise<AnnouncedController> {
    const registry = await this.demand(cluster, "unknown_controller");
    const id = JSON.stringify([cluster, name]);
    const recent = this.#recent.get(id);
    if (recent !== undefined && performance.now() < recent.untilMs) return recent.announced;
    const announced = await registry.get(name);
    this.#recent.set(id, { announced, untilMs: performance.now() + ANNOUNCED_MS });
    return announced;
  }

  /** Read each time, because a request in a shard that no longer exists would never run. */
  async shards(cluster: string): Promise<number> {
    await this.demand(cluster, "unknown_controller");
    return await this.#shards.of(cluster)();
  }

  async close(): Promise<void> {
    await Promise.all([this.#registries.close(), this.#clusters.close()]);
  }

  async #isKnown(cluster: string): Promise<boolean> {
    if (this.#knownClusters.has(cluster)) return true;
    for (const name of await this.listClusters()) this.#knownClusters.add(name);
    return this.#knownClusters.has(cluster);
  }
}
