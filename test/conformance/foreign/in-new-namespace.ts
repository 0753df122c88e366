import { randomBytes } from "node:crypto";
import type { JsonObject } from "@konverge/core";
import type { TestedServer } from "../servers.ts";

/** Runs a program in a namespace of its own, which is removed at its end. */
export async function inNewNamespace<T>(
  server: TestedServer,
  run: (namespace: string) => Promise<T>,
): Promise<T> {
  const name = `foreign-${randomBytes(4).toString("hex")}`;
  const body = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
  await sendJson(server, "POST", "/api/v1/namespaces", body);
  try {
    return await run(name);
  } finally {
    await removeNamespace(server, name);
  }
}

const CONTENT = [
  "/api/v1:configmaps,persistentvolumeclaims,pods,secrets,serviceaccounts,services,events",
  "/apis/apps/v1:daemonsets,deployments,replicasets,statefulsets",
  "/apis/autoscaling/v2:horizontalpodautoscalers",
  "/apis/batch/v1:cronjobs,jobs",
  "/apis/coordination.k8s.io/v1:leases",
  "/apis/networking.k8s.io/v1:ingresses,networkpolicies",
  "/apis/policy/v1:poddisruptionbudgets",
  "/apis/rbac.authorization.k8s.io/v1:roles,rolebindings",
];

/** Removes a namespace with its content, as the controllers of a cluster do. */
async function removeNamespace(server: TestedServer, name: string): Promise<void> {
  for (const [root = "", resources = ""] of CONTENT.map((line) => line.split(":"))) {
    for (const resource of resources.split(",")) {
      const path = `${root}/namespaces/${name}/${resource}`;
      await sendJson(server, "DELETE", path, {
        kind: "DeleteOptions",
        apiVersion: "v1",
        propagationPolicy: "Background",
        gracePeriodSeconds: 0,
      });
    }
  }
  const path = `/api/v1/namespaces/${name}`;
  await sendJson(server, "DELETE", path);
  const namespace = await sendJson(server, "GET", path);
  await sendJson(server, "PUT", `${path}/finalize`, { ...namespace, spec: { finalizers: [] } });
}

/** Sends a request with a JSON body and returns the JSON of its response. */
export async function sendJson(
  { api }: TestedServer,
  method: string,
  path: string,
  body?: JsonObject,
): Promise<JsonObject> {
  const headers = { "Content-Type": "application/json" };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const { text } = await api.send({ method, path, headers, ...sent });
  return JSON.parse(text) as JsonObject;
}
