import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { ignoreNotFound, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { ConfigMap, Deployment } from "@konverge/kube/kinds";
import { createObjectLanes, type ObjectLanes } from "@konverge/lanes";
import {
  openMutations,
  type MutationView,
  type Mutations,
  type MutationWorkerSettings,
  type NewMutation,
  type OpenKind,
} from "@konverge/mutations";
import type { QueueWorker } from "@konverge/queue";
import type { ApiObject } from "@konverge/core";
import type { TestServer } from "../kube/kube-servers.ts";
import { startRequestRelay, type RequestRelay } from "../kube/request-relay.ts";
import type { QueueHarness } from "../queue/queue-harness.ts";

/** Opens all fields. */
export const OPEN_KINDS: readonly OpenKind[] = [ConfigMap, Deployment].map(
  ({ group, version, kind, resource, scope }) => ({ group, version, kind, resource, scope }),
);

interface ConfigMapObject extends ApiObject {
  data?: Record<string, string>;
}

export interface MutationsHarness {
  /** Bypasses the relay. */
  readonly client: KubeClient;
  readonly relay: RequestRelay;
  readonly mutations: Mutations;
  /** Name of the test's ConfigMap. */
  readonly name: string;
  readonly errors: Error[];
  readonly path: () => RegExp;
  readonly read: () => Promise<ConfigMapObject | undefined>;
  readonly make: (data?: Record<string, string>) => Promise<ConfigMapObject>;
  readonly remove: () => Promise<void>;
  /** Starts a worker, by default one whose calls pass the relay. */
  readonly work: (settings?: Partial<MutationWorkerSettings>) => QueueWorker;
  /** A mutation of the test's ConfigMap. */
  readonly mutation: (
    changes: NewMutation["changes"],
    options?: Partial<NewMutation>,
  ) => NewMutation;
  /** Submits mutations and returns their ends. */
  readonly run: (mutations: readonly NewMutation[]) => Promise<readonly MutationView[]>;
  readonly settled: (mutations: readonly NewMutation[]) => Promise<readonly MutationView[]>;
  /** The number of writes that have passed the relay. */
  readonly writes: () => number;
}

let serial = 0;

export function useMutations(server: TestServer, queues: QueueHarness): MutationsHarness {
  let open: Awaited<ReturnType<TestServer["open"]>>;
  let relay: RequestRelay;
  let mutations: Mutations;
  let lanes: ObjectLanes;
  let name = "";
  const errors: Error[] = [];
  beforeAll(async () => {
    open = await server.open();
  });
  afterAll(async () => {
    await open.close();
  });
  beforeEach(async () => {
    name = `mutations-${process.pid}-${(serial += 1)}`;
    relay = await startRequestRelay(loadKubeCredentials(open.kubeconfig));
    const place = { redis: queues.target, prefix: queues.prefix, cluster: "default" };
    const onError = (error: Error) => void errors.push(error);
    mutations = openMutations({ ...place, leaseMs: 20_000, onError });
    lanes = createObjectLanes({ ...place, processId: "test", onError });
  });
  afterEach(async () => {
    await mutations.close();
    lanes.close();
    await relay[Symbol.asyncDispose]();
    await harness.remove();
    errors.length = 0;
  });

  const harness: MutationsHarness = {
    get client() {
      return open.client;
    },
    get relay() {
      return relay;
    },
    get mutations() {
      return mutations;
    },
    get name() {
      return name;
    },
    errors,
    path: () => new RegExp(`/configmaps/${name}$`),
    read: () => open.client.get(ConfigMap, { namespace: "default", name }).catch(ignoreNotFound),
    make: (data = {}) =>
      open.client.create(ConfigMap, { metadata: { namespace: "default", name }, data }),
    remove: () =>
      open.client.delete(ConfigMap, { namespace: "default", name }).catch(ignoreNotFound),
    work: (settings = {}) =>
      mutations.work({
        client: relay.client,
        lanes,
        kinds: OPEN_KINDS,
        workerId: "test",
        ...settings,
      }),
    mutation: (changes, options = {}) => ({
      id: crypto.randomUUID(),
      object: {
        group: "",
        version: "v1",
        kind: "ConfigMap",
        resource: "configmaps",
        namespace: "default",
        name,
      },
      changes,
      ...options,
    }),
    async run(given) {
      await mutations.submit(given);
      return await harness.settled(given);
    },
    settled: (given) => {
      const signal = AbortSignal.timeout(90_000);
      return Promise.all(given.map(({ id }) => mutations.settled(id, signal)));
    },
    writes: () => relay.passed.filter((call) => /^(PATCH|POST)/.test(call)).length,
  };
  return harness;
}
