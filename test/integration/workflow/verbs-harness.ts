import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { ApiObject } from "@konverge/core";
import { ignoreNotFound, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import type { ObjectRef, StepContext } from "@konverge/workflow";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import { createExecutions, type Executions } from "./execution-harness.ts";
import type { TestServer } from "../kube/kube-servers.ts";
import type { QueueHarness } from "../queue/queue-harness.ts";
import { startRequestRelay, type RequestRelay } from "../kube/request-relay.ts";

export interface ConfigMapObject extends ApiObject {
  data?: Record<string, string>;
}

export interface VerbsHarness {
  /** Bypasses the relay. */
  readonly client: KubeClient;
  readonly relay: RequestRelay;
  /** Runs in Redis whose verbs use the relay. */
  readonly runs: Executions;
  /** The path of the test's object. */
  readonly name: string;
  /** The ConfigMap of that name: ref, manifest, path, current state, and creation. */
  readonly target: () => {
    apiVersion: "v1";
    kind: "ConfigMap";
    namespace: "default";
    name: string;
  };
  readonly intent: (data: Record<string, string>) => ApiObject & { data: Record<string, string> };
  readonly path: () => RegExp;
  readonly read: () => Promise<ConfigMapObject | undefined>;
  readonly make: (data: Record<string, string>) => Promise<ConfigMapObject>;
  /** Names of the annotations that steps have added. */
  readonly marks: () => Promise<string[]>;
  /** Adds 1 to `n`. */
  readonly increment: (k: StepContext) => Promise<ObjectRef>;
}

const MARK = /^konverge\.dev\/step-/;
let serial = 0;

export function useVerbs(server: TestServer, queues: QueueHarness): VerbsHarness {
  let open: Awaited<ReturnType<TestServer["open"]>>;
  let relay: RequestRelay;
  let runs: Executions;
  let name = "";
  beforeAll(async () => {
    open = await server.open();
  });
  afterAll(async () => {
    await open.close();
  });
  beforeEach(async () => {
    name = `verbs-${process.pid}-${(serial += 1)}`;
    relay = await startRequestRelay(loadKubeCredentials(open.kubeconfig));
    const store = createRedisRunStore({
      call: (run) => run(queues.redis),
      prefix: queues.prefix,
      cluster: "default",
      retentionMs: 60_000,
    });
    runs = createExecutions(store, { default: relay.client, west: open.client });
  });
  afterEach(async () => {
    await relay[Symbol.asyncDispose]();
    await open.client.delete(ConfigMap, { namespace: "default", name }).catch(ignoreNotFound);
  });

  const harness: VerbsHarness = {
    get client() {
      return open.client;
    },
    get relay() {
      return relay;
    },
    get runs() {
      return runs;
    },
    get name() {
      return name;
    },
    target: () => ({ apiVersion: "v1", kind: "ConfigMap", namespace: "default", name }),
    intent(data) {
      const { apiVersion, kind, ...metadata } = harness.target();
      return { apiVersion, kind, metadata, data };
    },
    path: () => new RegExp(`/configmaps/${name}$`),
    read: () => open.client.get(ConfigMap, { namespace: "default", name }).catch(ignoreNotFound),
    make: (data) =>
      open.client.create(ConfigMap, { metadata: { namespace: "default", name }, data }),
    async marks() {
      const { metadata } = (await harness.read()) ?? {};
      return Object.keys(metadata?.annotations ?? {}).filter((key) => MARK.test(key));
    },
    increment: (k) =>
      k.mutate<ConfigMapObject>(harness.target(), (draft) => {
        draft.data = { ...draft.data, n: String(Number(draft.data?.["n"]) + 1) };
      }),
  };
  return harness;
}
