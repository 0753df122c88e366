import {
  formatApiVersion,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import { isServed, type KubeClient } from "@konverge/kube";
import { CustomResourceDefinition, Namespace } from "konverge/kinds";
import { pollUntil } from "../stage/poll-until.ts";
import { Certificate, Database, Quota, RoutePolicy, Tenant } from "./resources.ts";

const RESOURCES = [Tenant, Certificate, Database, RoutePolicy, Quota];
/** Tenants are spread over the namespaces; the problems are in `checkout`. */
const NAMESPACES = ["payments", "search", "checkout"] as const;
/** Concurrent creations. More only queue in the API server. */
const AT_A_TIME = 8;

/** The numbers of objects that cause problems. */
export interface Troubled {
  /** Certificates per reason of their dead letters: rate limit, timeout, invalid host. */
  readonly certificates: readonly [number, number, number];
  readonly databases: number;
  readonly policies: number;
  readonly quotas: number;
}

/** Creates the namespaces and the kinds, and waits until they are served. */
export async function installKinds(client: KubeClient, signal: AbortSignal): Promise<void> {
  for (const name of NAMESPACES) await create(client, Namespace, { metadata: { name } });
  for (const resource of RESOURCES) {
    await create(client, CustomResourceDefinition, resource.crd());
  }
  for (const resource of RESOURCES) {
    await pollUntil(`${resource.kind} is served`, () => isServed(client, resource), { signal });
  }
}

/** Creates objects without a problem: tenants, issued certificates, databases. */
export async function createTenants(
  client: KubeClient,
  count: number,
  { onCount, signal }: { onCount: (count: number) => void; signal: AbortSignal },
): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) {
      const at = next++;
      signal.throwIfAborted();
      if (at % 500 === 0) onCount(at);
      const namespace = NAMESPACES[at % NAMESPACES.length];
      const name = `tenant-${String(at).padStart(5, "0")}`;
      await create(client, Tenant, {
        metadata: { namespace, name },
        spec: { tier: at % 10 === 0 ? "gold" : "free" },
      });
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
}

/** Creates the objects of the incident. */
export async function createTroubled(client: KubeClient, counts: Troubled): Promise<void> {
  const at = (name: string) => ({ metadata: { namespace: "checkout", name } });
  const each = async (count: number, make: (number: number) => Promise<void>) => {
    for (let number = 1; number <= count; number++) await make(number);
  };
  for (const [index, reason] of (["limited", "slow", "invalid"] as const).entries()) {
    await each(counts.certificates[index] ?? 0, (number) =>
      create(client, Certificate, {
        ...at(`${reason}-${number}`),
        spec: { host: `${reason}-${number}.example.com` },
      }),
    );
  }
  await each(counts.databases, (number) =>
    create(client, Database, { ...at(`${number % 3 === 0 ? "flaky" : "db"}-${number}`), spec: {} }),
  );
  await each(counts.policies, (number) =>
    create(client, RoutePolicy, { ...at(`web-${number}`), spec: { weight: 1 } }),
  );
  await each(counts.quotas, (number) =>
    create(client, Quota, { ...at(`team-${number}`), spec: {} }),
  );
}

async function create(client: KubeClient, type: ResourceType, object: object): Promise<void> {
  const apiVersion = formatApiVersion(type.group, type.version);
  await client.create(type, { apiVersion, kind: type.kind, ...object } as ApiObject & JsonObject);
}
