import type { V1Lease } from "@kubernetes/client-node";
import type { KubeClient } from "../contract/kube-client.ts";
import { ignoreNotFound, isAlreadyExists, isConflict } from "../errors/error-predicates.ts";
import { Lease, type BuiltIn } from "../names/kinds.ts";

type LeaseObject = BuiltIn<V1Lease>;
type LeaseSpec = NonNullable<LeaseObject["spec"]>;

export interface LeaseRecordOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  readonly identity: string;
  readonly leaseDurationMs: number;
  /** Monotonic, in ms. */
  readonly clock: () => number;
}

/** The Lease of an election, as one candidate sees it. */
export class LeaseRecord {
  readonly #options: LeaseRecordOptions;
  #seen: { readonly text: string; readonly atMs: number } | undefined;
  #held: LeaseObject | undefined;
  /** Also true after a write with an unknown outcome. If false, there is nothing to release. */
  #mayBeOurs = false;

  constructor(options: LeaseRecordOptions) {
    this.#options = options;
  }

  /** Takes or renews the Lease. Returns false if another candidate holds it or wrote first. */
  async tryToHold(signal: AbortSignal): Promise<boolean> {
    const { identity, clock } = this.#options;
    const client = this.#options.client.scoped({ signal, priority: "critical" });
    if (this.#held !== undefined && (await this.#hold(client, this.#held))) return true;
    const found = await this.#find(client);
    if (found === undefined) return this.#create(client);
    const text = JSON.stringify(found.spec);
    if (this.#seen?.text !== text) this.#seen = { text, atMs: clock() };
    const holder = found.spec?.holderIdentity ?? "";
    const lastsMs = (found.spec?.leaseDurationSeconds ?? 0) * 1_000;
    this.#mayBeOurs = holder === identity;
    const isTaken = holder !== "" && holder !== identity;
    if (isTaken && clock() - this.#seen.atMs < lastsMs) return false;
    return this.#hold(client, found);
  }

  async release(signal: AbortSignal | undefined): Promise<void> {
    if (!this.#mayBeOurs) return;
    const { client: unscoped, identity } = this.#options;
    const client = signal === undefined ? unscoped : unscoped.scoped({ signal });
    const found = await this.#find(client);
    this.#mayBeOurs = found?.spec?.holderIdentity === identity;
    if (!this.#mayBeOurs || found === undefined) return;
    const spec: LeaseSpec = {
      ...found.spec,
      holderIdentity: "",
      leaseDurationSeconds: 1,
      renewTime: microTime(new Date()),
    };
    await this.#write(() => client.replace(Lease, { ...found, spec }));
    this.#mayBeOurs = false;
  }

  #find(client: KubeClient): Promise<LeaseObject | undefined> {
    const { namespace, name } = this.#options;
    return client.get(Lease, { namespace, name }).catch(ignoreNotFound);
  }

  #create(client: KubeClient): Promise<boolean> {
    const { namespace, name } = this.#options;
    return this.#write(() =>
      client.create(Lease, {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { namespace, name },
        spec: this.#nextSpec(undefined),
      }),
    );
  }

  #hold(client: KubeClient, lease: LeaseObject): Promise<boolean> {
    const spec = this.#nextSpec(lease.spec);
    return this.#write(() => client.replace(Lease, { ...lease, spec }));
  }

  #nextSpec(previous: LeaseSpec | undefined): LeaseSpec {
    const { identity, leaseDurationMs } = this.#options;
    const renewTime = microTime(new Date());
    const keeps = previous?.holderIdentity === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.round(leaseDurationMs / 1_000)),
      acquireTime: keeps ? (previous.acquireTime ?? renewTime) : renewTime,
      renewTime,
      leaseTransitions:
        (previous?.leaseTransitions ?? 0) + (keeps || previous === undefined ? 0 : 1),
    };
  }

  async #write(run: () => Promise<LeaseObject>): Promise<boolean> {
    try {
      this.#mayBeOurs = true;
      this.#held = await run();
      this.#seen = { text: JSON.stringify(this.#held.spec), atMs: this.#options.clock() };
      return true;
    } catch (error) {
      this.#held = undefined;
      if (isConflict(error) || isAlreadyExists(error)) return false;
      throw error;
    }
  }
}

/** The format of a MicroTime, which requires six fractional digits. */
function microTime(date: Date): string {
  return date.toISOString().replace("Z", "000Z");
}
