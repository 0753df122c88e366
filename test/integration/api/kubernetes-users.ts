import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { createKubernetesReviews } from "@konverge/api";
import { createLocalGate, isJsonObject, type JsonObject } from "@konverge/core";
import { createKubeClient, isAlreadyExists, loadKubeCredentials } from "@konverge/kube";
import { load } from "js-yaml";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from "vitest";
import { authReviewRules } from "../../../apps/cli/src/manifests/api-manifests.ts";
import { announce, NODE_POOL } from "../queue/announce.ts";
import { announceOpenKinds, PLANET, WIDGET } from "./announce-open-kinds.ts";
import type { ApiHarness, Call } from "./api-harness.ts";
import { KINDS } from "./api-targets.ts";

const path = process.env["KONVERGE_TEST_KUBECONFIG"] ?? "";
const AUDIENCE = "konverge";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
export const GROUP = "demo.konverge.dev";
export const HOME = "nsblue";
/** The admin token of the configuration. */
export const ADMIN = "the-token-of-the-configuration";
export const NO_LIMIT = { ratePerSecond: 1e6, burst: 1e6 };

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** A real API server with RBAC, and the tasks of its administrator. */
function openCluster() {
  const text = readFileSync(path, "utf8");
  const admin = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: text, env: {} }),
    gate: createLocalGate(NO_LIMIT),
    userAgent: "konverge-test/1",
  });
  const create = async (at: string, body: JsonObject): Promise<JsonObject> => {
    const made = await admin.raw({ method: "POST", path: at, body }).catch((error: unknown) => {
      if (isAlreadyExists(error)) return { body: {} };
      throw error;
    });
    return isJsonObject(made.body) ? made.body : {};
  };
  let count = 0;
  const run = `kubernetes-${process.pid}-${Date.now()}`;
  const tokenOf = async (name: string, spec: JsonObject): Promise<string> => {
    const { status } = await create(`/api/v1/namespaces/${HOME}/serviceaccounts/${name}/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec,
    });
    return String(isJsonObject(status) ? status["token"] : undefined);
  };
  /** Binds a role with the rules to an account. Returns the function that removes the binding. */
  const grant = async (account: string, rules: readonly Rule[], namespace?: string) => {
    const name = `${run}-${count++}`;
    const kind = namespace === undefined ? "ClusterRole" : "Role";
    const root = namespace === undefined ? RBAC : `${RBAC}/namespaces/${namespace}`;
    await create(`${root}/${kind.toLowerCase()}s`, { metadata: { name }, rules: rules as never });
    await create(`${root}/${kind.toLowerCase()}bindings`, {
      metadata: { name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
      subjects: [{ kind: "ServiceAccount", name: account, namespace: HOME }],
    });
    return () =>
      admin.raw({ method: "DELETE", path: `${root}/${kind.toLowerCase()}bindings/${name}` });
  };
  return {
    admin,
    create,
    close: () => admin.close(),
    async namespaces(...names: readonly string[]) {
      for (const name of names) await create("/api/v1/namespaces", { metadata: { name } });
    },
    /** Returns the name of a new account with the rules, in a namespace or in all. */
    async account(rules: readonly Rule[], namespace?: string) {
      const account = `${run}-${count++}`;
      await create(`/api/v1/namespaces/${HOME}/serviceaccounts`, { metadata: { name: account } });
      return { name: account, withdraw: await grant(account, rules, namespace) };
    },
    /** Creates an account with this name and without rights. */
    async named(name: string) {
      await create(`/api/v1/namespaces/${HOME}/serviceaccounts`, { metadata: { name } });
      return name;
    },
    grant,
    tokenOf,
    token: (name: string) => tokenOf(name, { audiences: [AUDIENCE], expirationSeconds: 3_600 }),
    /** The credentials of an account, as its Pod has them. */
    async credentialsOf(name: string) {
      const token = await tokenOf(name, { expirationSeconds: 3_600 });
      const document = load(text) as { users: object[] };
      const users = document.users.map((entry) => ({ ...entry, user: { token } }));
      return loadKubeCredentials({
        kubeconfigText: JSON.stringify({ ...document, users }),
        env: {},
      });
    },
  };
}

type Cluster = ReturnType<typeof openCluster>;
type Reviews = Parameters<typeof createKubernetesReviews>[0];

export interface KubernetesUsers {
  readonly cluster: Cluster;
  /** The credentials of an API, whose account may only create reviews. */
  readonly credentials: Reviews["credentials"];
  /** An API that accepts the tokens of the cluster. */
  readonly serve: (given?: Partial<Reviews>, options?: Parameters<ApiHarness["serve"]>[0]) => Call;
}

/** Users of a real API server, and the controllers, workflows and open kinds that they may have rights on. */
export function useKubernetesUsers(harness: ApiHarness): KubernetesUsers {
  let cluster: Cluster | undefined;
  let credentials: Reviews["credentials"] | undefined;
  beforeAll(async () => {
    if (path === "") return;
    cluster = openCluster();
    await cluster.namespaces(HOME, "nsred");
    const api = await cluster.account(authReviewRules);
    credentials = await cluster.credentialsOf(api.name);
  });
  afterAll(() => cluster?.close());
  beforeEach(async (context) => {
    if (path === "") context.skip("no kube-apiserver: the embedded one has no RBAC");
    const { queues } = harness;
    await announce(
      queues,
      Object.entries(KINDS).map(([name, resource]) => ({
        ...NODE_POOL,
        name,
        resource,
        kind: "Thing",
        scope: name === "ctlwide" ? "Cluster" : "Namespaced",
      })),
      ["wfblue", "wfred", "wfwide"].map((name) => ({ name, version: 1 })),
    );
    await announceOpenKinds(queues, [WIDGET, PLANET]);
  });
  const opened = () => {
    if (cluster === undefined || credentials === undefined) throw new Error("no kube-apiserver");
    return { cluster, credentials };
  };
  return {
    get cluster() {
      return opened().cluster;
    },
    get credentials() {
      return opened().credentials;
    },
    serve(given = {}, options = {}) {
      const reviews = createKubernetesReviews({
        credentials: opened().credentials,
        audiences: [AUDIENCE],
        rate: NO_LIMIT,
        // A busy machine slows the server down.
        callMs: 60_000,
        onError: (error) => expect.unreachable(inspect(error)),
        ...given,
      });
      onTestFinished(() => reviews.close());
      const settings = { isLoopback: false, token: ADMIN, rate: NO_LIMIT };
      return harness.serve({ reviews, ...settings, ...options });
    },
  };
}

export const widgets = (verbs: readonly string[], rest: Partial<Rule> = {}): Rule => ({
  apiGroups: [GROUP],
  resources: ["widgets"],
  verbs,
  ...rest,
});
export const own = (resource: string, name: string, verbs: readonly string[]): Rule => ({
  apiGroups: ["konverge.dev"],
  resources: [resource],
  resourceNames: [name],
  verbs,
});
