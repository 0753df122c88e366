import {
  formatApiVersion,
  isKonvergeError,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import { ignoreNotFound, isAlreadyExists, isServed, type KubeClient } from "@konverge/kube";
import { ConfigMap, CustomResourceDefinition, Lease, Namespace } from "konverge/kinds";
import { Autoscaler, Machine, NodePool } from "./kinds.ts";
import { MAX_REPLICAS, MIN_REPLICAS, TARGET_LOAD } from "./load-plan.ts";
import { pollUntil } from "../stage/poll-until.ts";

/** ConfigMaps that the handlers read, in addition to the load. */
const SETTINGS = {
  quota: { machinesPerPool: String(MAX_REPLICAS) },
  machine: { image: "debian-13" },
};

/** A custom resource definition, as far as the demo needs it for the installation. */
export interface Installable {
  crd(): ApiObject & { spec: JsonObject };
}

/** The objects that the demo creates on the cluster and deletes afterwards. */
export interface World {
  readonly namespace: string;
  install(resources: readonly Installable[]): Promise<void>;
  /** Creates the pools, an autoscaler for each, and the load ConfigMap. */
  populate(pools: readonly string[], loads: Readonly<Record<string, string>>): Promise<void>;
  setLoads(loads: Readonly<Record<string, string>>): Promise<void>;
  /** Deletes the objects of {@link World.populate} and waits until they are deleted. */
  clear(): Promise<void>;
  /** Deletes the rest: CRDs, Leases, the namespace. */
  remove(leases: readonly string[]): Promise<void>;
}

export function createWorld(client: KubeClient, namespace: string): World {
  const installed: string[] = [];
  const load = { namespace, name: "load" };
  const make = async <T extends ApiObject>(
    type: ResourceType<T>,
    object: object,
  ): Promise<void> => {
    const whole = {
      apiVersion: formatApiVersion(type.group, type.version),
      kind: type.kind,
      ...object,
    };
    await client.create(type, whole as T).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
  };
  const deleteAll = async <T extends ApiObject>(type: ResourceType<T>): Promise<void> => {
    const { items } = await client.list(type, { namespace });
    await Promise.all(
      items.map(({ metadata: { name } }) =>
        client.delete(type, { namespace, name }).catch(ignoreNotFound),
      ),
    );
  };

  return {
    namespace,
    async install(resources) {
      await make(Namespace, { metadata: { name: namespace } });
      for (const resource of resources) {
        const { spec, ...crd } = resource.crd();
        await make(CustomResourceDefinition, { ...crd, spec });
        installed.push(crd.metadata.name);
      }
      await pollUntil("the CRDs are established", async () => {
        const found = await Promise.all(
          installed.map((name) => client.get(CustomResourceDefinition, { name })),
        );
        return found.every(isEstablished);
      });
      await pollUntil("the CRDs are served", async () => {
        try {
          const types: readonly ResourceType[] = [NodePool, Autoscaler, Machine];
          return (await Promise.all(types.map((type) => isServed(client, type)))).every(Boolean);
        } catch (error) {
          if (isKonvergeError(error)) return false;
          throw error;
        }
      });
    },
    async populate(pools, loads) {
      for (const [name, data] of Object.entries(SETTINGS)) {
        await make(ConfigMap, { metadata: { namespace, name }, data });
      }
      for (const name of pools) {
        await make(NodePool, { metadata: { namespace, name }, spec: { replicas: MIN_REPLICAS } });
        await make(Autoscaler, {
          metadata: { namespace, name },
          spec: { poolRef: name, min: MIN_REPLICAS, max: MAX_REPLICAS, targetLoad: TARGET_LOAD },
        });
      }
      await make(ConfigMap, { metadata: load, data: loads });
    },
    async setLoads(loads) {
      await client.mutate(ConfigMap, load, (draft) => {
        draft.data = { ...loads };
      });
    },
    async clear() {
      // Autoscalers first: they would write to pools that are being deleted.
      const types: readonly ResourceType[] = [Autoscaler, NodePool, Machine];
      for (const type of types) {
        await pollUntil(`no ${type.resource} are left`, async () => {
          await deleteAll(type);
          return (await client.list(type, { namespace })).items.length === 0;
        });
      }
      for (const name of [load.name, ...Object.keys(SETTINGS)]) {
        await client.delete(ConfigMap, { namespace, name }).catch(ignoreNotFound);
      }
    },
    async remove(leases) {
      await Promise.all(
        leases.map((name) => client.delete(Lease, { namespace, name }).catch(ignoreNotFound)),
      );
      for (const name of installed) {
        await client.delete(CustomResourceDefinition, { name }).catch(ignoreNotFound);
      }
      // A control plane without a namespace controller leaves it Terminating; it is empty.
      await client.delete(Namespace, { name: namespace }).catch(ignoreNotFound);
    },
  };
}

function isEstablished({ status }: ApiObject & { status?: JsonObject }): boolean {
  const list = status?.["conditions"];
  return (
    Array.isArray(list) &&
    list.some(
      (condition) =>
        typeof condition === "object" &&
        condition !== null &&
        "type" in condition &&
        condition["type"] === "Established" &&
        condition["status"] === "True",
    )
  );
}
