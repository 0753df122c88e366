import {
  createLocalGate,
  defined,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import {
  createKubeClient,
  ignoreNotFound,
  isAlreadyExists,
  isServed,
  loadKubeCredentials,
  type KubeClient,
  type KubeconfigOptions,
} from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import { createApiServer } from "@konverge/apiserver";
import { until } from "../../support/until.ts";

export interface TestServer {
  readonly name: string;
  /** A client and its close function, equal for both servers. */
  open(): Promise<{
    readonly client: KubeClient;
    /** For another process. */
    readonly kubeconfig: KubeconfigOptions;
    close(): Promise<void>;
  }>;
}

const connect = (
  kubeconfigText: string | undefined,
  kubeconfigPath: string | undefined,
): KubeClient =>
  createKubeClient({
    credentials: loadKubeCredentials({
      ...defined({ kubeconfigText, kubeconfigPath }),
    }),
    gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
    userAgent: "konverge-test/1",
  });

const embedded: TestServer = {
  name: "embedded API server",
  async open() {
    const server = await createApiServer({});
    const client = connect(server.kubeconfig, undefined);
    return {
      client,
      kubeconfig: { kubeconfigText: server.kubeconfig },
      async close() {
        await client.close();
        await server.close();
      },
    };
  },
};

/** The embedded server always, the real one if the runner started it. */
export function testServers(): TestServer[] {
  const path = process.env["KONVERGE_TEST_KUBECONFIG"];
  if (path === undefined || path === "") return [embedded];
  const real: TestServer = {
    name: "kube-apiserver",
    async open() {
      const client = connect(undefined, path);
      return { client, kubeconfig: { kubeconfigPath: path }, close: () => client.close() };
    },
  };
  return [embedded, real];
}

export interface Widget extends ApiObject {
  spec?: JsonObject;
  status?: JsonObject;
}

/** A custom resource that keeps unknown fields and has a status; each test file has its own group. */
export async function installWidgets(
  client: KubeClient,
  group: string,
): Promise<ResourceType<Widget>> {
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const definition = {
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { ...open, properties: { spec: open, status: open } } },
          subresources: { status: {} },
        },
      ],
    },
  };
  await client.create(CustomResourceDefinition, definition).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
  const widgets: ResourceType<Widget> = {
    group,
    version: "v1",
    kind: "Widget",
    resource: "widgets",
    scope: "Namespaced",
  };
  let served = false;
  const probe = async (): Promise<void> => {
    while (!served) served = await isServed(client, widgets);
  };
  const probing = probe();
  await until("the new resource is served", () => served);
  await probing;
  return widgets;
}

export async function removeWidgets(client: KubeClient, group: string): Promise<void> {
  await client.delete(CustomResourceDefinition, { name: `widgets.${group}` }).catch(ignoreNotFound);
}
