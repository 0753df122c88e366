import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { createLocalGate } from "@konverge/core";
import { startControlPlane, type ControlPlane } from "@konverge/infra-envtest";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { until } from "../support/until.ts";

/** A real API server for faults, with a user whose calls have a separate priority level. */
export interface OutagePlane extends AsyncDisposable {
  readonly plane: ControlPlane;
  readonly admin: KubeClient;
  readonly namespace: string;
  /** The kubeconfig of the user. The administrator's group is exempt from priority and fairness. */
  readonly kubeconfig: string;
  /** Pauses etcd's process, so that the API server does not respond to calls that need it. */
  freezeEtcd(): void;
  thawEtcd(): void;
  /** Makes every call of the user return 429, or ends that. */
  throttle(on: boolean): Promise<void>;
  /** Kills kube-apiserver and starts a new one in its place. */
  killServer(): void;
  startServer(): Promise<void>;
}

const USER = "outage-user";
const type = (group: string, version: string, kind: string, resource: string) =>
  ({ group, version, kind, resource, scope: "Cluster" }) as const;
const FLOWS = type("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas");
const LEVELS = type(
  "flowcontrol.apiserver.k8s.io",
  "v1",
  "PriorityLevelConfiguration",
  "prioritylevelconfigurations",
);
const BINDINGS = type(
  "rbac.authorization.k8s.io",
  "v1",
  "ClusterRoleBinding",
  "clusterrolebindings",
);
const NAMESPACES = type("", "v1", "Namespace", "namespaces");

export async function startOutagePlane(): Promise<OutagePlane> {
  const plane = await startControlPlane({
    log: (line) => console.error(line),
    users: [{ name: USER }],
  });
  const admin = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: plane.kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
    userAgent: "outage-admin",
  });
  const namespace = "outage";
  await admin.create(NAMESPACES, {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: namespace },
  });
  await admin.create(BINDINGS, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: USER },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ kind: "User", name: USER, apiGroup: "rbac.authorization.k8s.io" }],
  } as never);
  for (const [name, shares] of [
    ["outage-normal", 100],
    ["outage-none", 0],
  ] as const) {
    await admin.create(LEVELS, {
      apiVersion: "flowcontrol.apiserver.k8s.io/v1",
      kind: "PriorityLevelConfiguration",
      metadata: { name },
      spec: {
        type: "Limited",
        limited: {
          nominalConcurrencyShares: shares,
          lendablePercent: 0,
          borrowingLimitPercent: 0,
          limitResponse: { type: "Reject" },
        },
      },
    } as never);
  }
  await admin.create(FLOWS, {
    apiVersion: "flowcontrol.apiserver.k8s.io/v1",
    kind: "FlowSchema",
    metadata: { name: USER },
    spec: {
      priorityLevelConfiguration: { name: "outage-normal" },
      matchingPrecedence: 100,
      rules: [
        {
          subjects: [{ kind: "User", user: { name: USER } }],
          resourceRules: [
            {
              verbs: ["*"],
              apiGroups: ["*"],
              resources: ["*"],
              clusterScope: true,
              namespaces: ["*"],
            },
          ],
          nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
        },
      ],
    },
  } as never);
  let restarted: ChildProcess | undefined;
  const command = readCommand(plane.pids.kubeApiserver);
  const kubeconfig = plane.users.get(USER)?.kubeconfig ?? "";
  return {
    plane,
    admin,
    namespace,
    kubeconfig,
    freezeEtcd: () => void process.kill(plane.pids.etcd, "SIGSTOP"),
    thawEtcd: () => void process.kill(plane.pids.etcd, "SIGCONT"),
    async throttle(on) {
      await admin.mutate(FLOWS, { name: USER }, (draft) => {
        (
          draft as unknown as { spec: { priorityLevelConfiguration: { name: string } } }
        ).spec.priorityLevelConfiguration.name = on ? "outage-none" : "outage-normal";
      });
    },
    killServer: () => void process.kill(restarted?.pid ?? plane.pids.kubeApiserver, "SIGKILL"),
    async startServer() {
      const [program = "", ...args] = command;
      restarted = spawn(program, args, { stdio: "ignore" });
      await until("the new API server answers", () => answers(admin));
    },
    async [Symbol.asyncDispose]() {
      process.kill(plane.pids.etcd, "SIGCONT");
      await admin.close();
      restarted?.kill("SIGKILL");
      await plane.stop();
    },
  };
}

/** Whether a process's command can be read, which a restart needs. */
export const canRestart = process.platform === "linux";

function readCommand(pid: number): string[] {
  if (!canRestart) return [];
  return readFileSync(`/proc/${pid}/cmdline`, "utf8")
    .split("\0")
    .filter((part) => part !== "");
}

async function answers(client: KubeClient): Promise<boolean> {
  return client.get(NAMESPACES, { name: "outage" }).then(
    () => true,
    () => false,
  );
}
