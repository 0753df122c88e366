export { CONSERVATIVE_RATE, clusterLimits, credentialsFrom } from "./config/cluster-options.ts";
export type { BreakerOptions, ClusterOptions } from "./config/cluster-options.ts";
export {
  isClusterProvider,
  namesOfClusters,
  optionsOfCluster,
} from "./clusters/cluster-provider.ts";
export type {
  ClusterProvider,
  FollowClustersOptions,
  HomeCluster,
  ProvidedCluster,
  ProvidedClusters,
  ProvidedKubeconfig,
  ProvidedOptions,
} from "./clusters/cluster-provider.ts";
export type { ClusterState, ClusterStatus } from "./clusters/cluster-status.ts";
export { credentialsOf } from "./clusters/credentials-of.ts";
export { servedClusters } from "./clusters/cluster-list.ts";
export { withHome } from "./clusters/with-home.ts";
export { kubeconfigSecrets } from "./clusters/kubeconfig-secrets.ts";
export type { KubeconfigSecretsOptions } from "./clusters/kubeconfig-secrets-options.ts";
export { kubeconfigDirectory } from "./clusters/kubeconfig-directory.ts";
export type { KubeconfigDirectoryOptions } from "./clusters/kubeconfig-directory.ts";
export { requiredAccess, WAITS_LEASE } from "./config/controller-access.ts";
export type { AccessRule, RequiredAccess } from "./config/controller-access.ts";
export { defineConfig } from "./config/define-config.ts";
export type { Config, ConfigInput } from "./config/define-config.ts";
export { sensitiveResources } from "./config/sensitive-resources.ts";
export { openKindsOf } from "./config/mutation-options.ts";
export type { MutationKind, MutationOptions } from "./config/mutation-options.ts";
export { webhook, Webhook } from "./notify/webhook.ts";
export type { SecretText, WebhookOptions } from "./notify/webhook.ts";
export type { NotifyRule } from "./notify/notify-options.ts";
export { findMissingAccess } from "./config/find-missing-access.ts";
export { namespacesOf } from "./config/cluster-options.ts";
export { identityNamespace, readClusterUid } from "./connect-cluster.ts";
export { openPlanner } from "./open-planner.ts";
export type { PlannerOptions } from "./open-planner.ts";
export { openKube } from "./open-kube.ts";
export type { OpenKube, OpenKubeOptions } from "./open-kube.ts";
export { createRunStarter } from "./run-starter.ts";
export { startWorker } from "./start-worker.ts";
export type { RunningWorker, WorkerOptions } from "./start-worker.ts";
export { startWorkerProcess } from "./start-worker-process.ts";
export type { WorkerProcess, WorkerProcessOptions } from "./start-worker-process.ts";
