import { KonvergeError } from "@konverge/core";
import {
  closeRedis,
  DEFAULT_PREFIX,
  openProducer,
  runScript,
  sharedRoot,
  withRedis,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import { claimIdentityScript } from "../scripts/claim-identity.ts";
import { listClustersScript } from "../scripts/list-clusters.ts";
import { reportClustersScript } from "../scripts/report-clusters.ts";
import type { ReportedCluster, WorkerClusters } from "./announced.ts";
import { HEARTBEAT_MS, WORKER_TTL_MS } from "./live-workers.ts";

export interface IdentityClaim {
  readonly cluster: string;
  /** Identifies the cluster independently of its name. */
  readonly uid: string;
  /**
   * Called when the claim was lost while Redis was unavailable, and another name has the cluster. Until its release, the cluster is
   * claimed again with each heartbeat.
   */
  readonly onLost: (error: KonvergeError) => void;
}

/** The clusters that the workers of an installation serve. Entries expire 15 s after the last heartbeat of their worker. */
export interface ClusterRegistry {
  /**
   * Reserves a cluster for one name, so that an API server has one guard. All workers with this name may hold it.
   * @returns releases the cluster
   * @throws KonvergeError `duplicate_cluster` if live workers serve it under another name, `redis_unavailable`
   */
  claim(claim: IdentityClaim): Promise<() => Promise<void>>;
  /** Reports the clusters of this worker from now on. */
  follow(read: () => readonly ReportedCluster[]): void;
  /** Reports a change before the next heartbeat. */
  changed(): void;
  /** Removes the report and the claims. */
  close(): Promise<void>;
}

export interface ClusterRegistryOptions {
  readonly redis: RedisTarget;
  readonly prefix?: string;
  /** Unique among all workers. */
  readonly workerId: string;
  /** Receives connection errors and failed heartbeats. */
  readonly onError: (error: Error) => void;
}

export function createClusterRegistry(options: ClusterRegistryOptions): ClusterRegistry {
  return new RedisClusterRegistry(options);
}

class RedisClusterRegistry implements ClusterRegistry {
  readonly #redis: RedisClient;
  readonly #root: string;
  readonly #workerId: string;
  readonly #onError: (error: Error) => void;
  readonly #claims = new Set<IdentityClaim>();
  /** Those of them that another name has. */
  readonly #lost = new Set<IdentityClaim>();
  #read: (() => readonly ReportedCluster[]) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> = Promise.resolve();
  #isDue = false;
  #isClosed = false;

  constructor({ redis, prefix = DEFAULT_PREFIX, workerId, onError }: ClusterRegistryOptions) {
    this.#root = rootOf(prefix);
    this.#workerId = workerId;
    this.#onError = onError;
    this.#redis = openProducer(redis);
    this.#redis.on("error", onError);
  }

  async claim(claim: IdentityClaim): Promise<() => Promise<void>> {
    const [other] = await withRedis(this.#redis, () => this.#claim([claim]));
    if (other !== undefined && other !== "") throw duplicateOf(claim, other);
    this.#claims.add(claim);
    this.#start();
    return async () => {
      this.#lost.delete(claim);
      if (this.#claims.delete(claim)) await this.#release(claim);
    };
  }

  follow(read: () => readonly ReportedCluster[]): void {
    this.#read = read;
    this.#start();
    this.changed();
  }

  changed(): void {
    if (this.#isDue || this.#isClosed) return;
    this.#isDue = true;
    // After the heartbeat that is running, and once for changes of one turn.
    this.#beating = this.#beating.then(() => {
      this.#isDue = false;
      return this.#beat();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#beating;
    try {
      await Promise.all([...this.#claims].map((claim) => this.#release(claim)));
      if (this.#read !== undefined) {
        const { seen, reports } = reportKeys(this.#root);
        await withRedis(this.#redis, async () => {
          await this.#redis.zrem(seen, this.#workerId);
          await this.#redis.hdel(reports, this.#workerId);
        });
      }
    } catch (error) {
      // The entries expire.
      this.#onError(error as Error);
    }
    await closeRedis(this.#redis);
  }

  #start(): void {
    this.#timer ??= setInterval(() => this.changed(), HEARTBEAT_MS);
  }

  async #beat(): Promise<void> {
    if (this.#isClosed) return;
    try {
      await withRedis(this.#redis, async () => {
        await this.#report();
        await this.#renew();
      });
    } catch (error) {
      this.#onError(error as Error);
    }
  }

  async #report(): Promise<void> {
    if (this.#read === undefined) return;
    const report: WorkerClusters = { workerId: this.#workerId, clusters: this.#read() };
    await runScript(this.#redis, reportClustersScript, {
      keys: reportKeys(this.#root),
      args: { worker: this.#workerId, report: JSON.stringify(report), ttlMs: WORKER_TTL_MS },
    });
  }

  async #renew(): Promise<void> {
    const claims = [...this.#claims];
    if (claims.length === 0) return;
    const others = await this.#claim(claims);
    for (const [index, claim] of claims.entries()) {
      const other = others[index] ?? "";
      if (other === "") this.#lost.delete(claim);
      else if (this.#claims.has(claim) && !this.#lost.has(claim)) {
        this.#lost.add(claim);
        claim.onLost(duplicateOf(claim, other));
      }
    }
    // Released while it was renewed.
    const gone = claims.filter((claim, index) => others[index] === "" && !this.#claims.has(claim));
    await Promise.all(gone.map((claim) => this.#release(claim)));
  }

  #claim(claims: readonly IdentityClaim[]): Promise<readonly string[]> {
    return runScript(this.#redis, claimIdentityScript, {
      args: { worker: this.#workerId, ttlMs: WORKER_TTL_MS },
      each: claims.map(({ cluster, uid }) => ({
        holders: this.#holders(uid),
        cluster: encodeURIComponent(cluster),
      })),
    });
  }

  async #release({ cluster, uid }: IdentityClaim): Promise<void> {
    const holder = `${encodeURIComponent(cluster)}/${this.#workerId}`;
    await withRedis(this.#redis, () => this.#redis.zrem(this.#holders(uid), holder));
  }

  #holders(uid: string): string {
    return `${this.#root}/uid/${encodeURIComponent(uid)}`;
  }
}

/** The clusters of all live workers. @throws KonvergeError `redis_unavailable` */
export async function listServedClusters(
  redis: RedisClient,
  prefix: string,
): Promise<WorkerClusters[]> {
  const keys = reportKeys(rootOf(prefix));
  const reports = await withRedis(redis, () =>
    runScript(redis, listClustersScript, { keys, args: { ttlMs: WORKER_TTL_MS } }),
  );
  return reports.map((text) => JSON.parse(text) as WorkerClusters);
}

function rootOf(prefix: string): string {
  return sharedRoot(prefix, "clusters");
}

function reportKeys(root: string): { readonly seen: string; readonly reports: string } {
  return { seen: `${root}/seen`, reports: `${root}/reports` };
}

function duplicateOf({ uid }: IdentityClaim, holder: string): KonvergeError {
  const name = decodeURIComponent(holder.slice(0, holder.indexOf("/")));
  return new KonvergeError(
    "duplicate_cluster",
    `same cluster as "${name}": both have the UID ${uid}; remove one of the two names`,
  );
}
