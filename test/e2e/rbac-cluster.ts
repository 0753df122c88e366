import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalGate, isJsonObject, type ApiObject, type ResourceType } from "@konverge/core";
import { startControlPlane, type ControlPlane } from "@konverge/infra-envtest";
import { createKubeClient, isServed, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { load } from "js-yaml";
import { until } from "../support/until.ts";

/** The fields of an audit log line that tests read. */
interface AuditedCall {
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code: number };
}

interface Account {
  readonly namespace: string;
  readonly name: string;
}

/** A real API server with RBAC, and the tasks of its administrator. */
export interface RbacCluster extends AsyncDisposable {
  readonly admin: KubeClient;
  readonly kubeconfigPath: string;
  /** A folder that is removed with the cluster. */
  readonly folder: string;
  /** Applies objects server-side and waits for CRDs to be served. */
  apply(objects: readonly ApiObject[]): Promise<void>;
  ensureNamespace(name: string): Promise<void>;
  /** Returns the objects that server-side apply would store, as a dry run. */
  dryRun(object: ApiObject): Promise<ApiObject>;
  /** Returns the path of a kubeconfig with a TokenRequest token of the account, as a pod has it. */
  kubeconfigOf(account: Account): Promise<string>;
  /** Returns a token of the account; with `secret`, the token is valid while that Secret exists. */
  tokenOf(account: Account, secret?: string): Promise<string>;
  /** Returns the administrator's kubeconfig with this user. */
  kubeconfigWith(user: object): string;
  callsOf(account: Account): AuditedCall[];
}

export async function openRbacCluster(): Promise<RbacCluster> {
  const folder = await mkdtemp(join(tmpdir(), "konverge-rbac-"));
  const auditLog = join(folder, "audit.jsonl");
  const plane = await startControlPlane({
    log: () => undefined,
    auditLog,
    // Default on OpenShift: owner references need separate permissions.
    admissionPlugins: ["OwnerReferencesPermissionEnforcement"],
  });
  const admin = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath: plane.kubeconfigPath }),
    gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
    userAgent: "konverge-test-admin/1",
    fieldManager: "konverge-test",
  });
  const pathOf = async ({ apiVersion, kind, metadata: { namespace, name } }: ApiObject) => {
    const { group, version, resource } = await admin.resolveType(apiVersion, kind);
    const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    return `${root}${namespace === undefined ? "" : `/namespaces/${namespace}`}/${resource}/${name}`;
  };
  const applyOne = async (object: ApiObject, query: Readonly<Record<string, string>> = {}) => {
    const { body } = await admin.raw({
      method: "PATCH",
      path: await pathOf(object),
      query: { fieldManager: "konverge-test", fieldValidation: "Strict", force: true, ...query },
      contentType: "application/apply-patch+yaml",
      body: object as never,
    });
    return body as unknown as ApiObject;
  };

  const tokenOf = async ({ namespace, name }: Account, secret?: string): Promise<string> => {
    const { body } = await admin.raw({
      method: "POST",
      path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
      body: {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: {
          expirationSeconds: 3_600,
          ...(secret === undefined
            ? {}
            : { boundObjectRef: { kind: "Secret", apiVersion: "v1", name: secret } }),
        },
      },
    });
    const status = isJsonObject(body) ? body["status"] : undefined;
    return String(isJsonObject(status) ? status["token"] : undefined);
  };

  return {
    admin,
    kubeconfigPath: plane.kubeconfigPath,
    folder,
    async apply(objects) {
      for (const object of objects) {
        await applyOne(object);
        if (object.kind === "CustomResourceDefinition") await served(admin, object);
      }
    },
    ensureNamespace: async (name) => {
      await applyOne({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    },
    dryRun: (object) => applyOne(object, { dryRun: "All" }),
    async kubeconfigOf(account) {
      const path = join(folder, `${account.namespace}-${account.name}.kubeconfig`);
      await writeFile(path, withUser(plane, { token: await tokenOf(account) }));
      return path;
    },
    tokenOf,
    kubeconfigWith: (user) => withUser(plane, user),
    callsOf: ({ namespace, name }) =>
      readFileSync(auditLog, "utf8")
        .split("\n")
        .filter((line) => line.includes(`"system:serviceaccount:${namespace}:${name}"`))
        .map((line) => JSON.parse(line) as AuditedCall),
    async [Symbol.asyncDispose]() {
      await admin.close();
      await plane.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function served(admin: KubeClient, crd: ApiObject): Promise<void> {
  const { group, names, scope, versions } = (crd as never as { spec: CrdSpec }).spec;
  const { plural: resource, kind } = names;
  const version = versions[0]?.name ?? "";
  await until(`${resource}.${group} is served`, () =>
    isServed(admin, { group, version, kind, resource, scope }),
  );
}

interface CrdSpec {
  readonly group: string;
  readonly names: { readonly plural: string; readonly kind: string };
  readonly scope: ResourceType["scope"];
  readonly versions: readonly { readonly name: string }[];
}

function withUser({ kubeconfig }: ControlPlane, user: object): string {
  const document = load(kubeconfig) as { users: object[] };
  return JSON.stringify({
    ...document,
    users: document.users.map((entry) => ({ ...entry, user })),
  });
}
