import type { Settings } from "@konverge/contracts";
import { defined } from "@konverge/core";
import {
  labelsOf,
  selectorOf,
  type Component,
  type Installation,
  type Manifest,
} from "./manifest.ts";
import { podTemplate, type SecretFile } from "./pod-template.ts";

export interface WorkerManifestsOptions {
  readonly installation: Installation;
  readonly settings: Settings;
  /** Path of the configuration file in the image. */
  readonly config: string;
  readonly redis: SecretFile;
  readonly component: "worker" | "watcher";
  readonly role: Settings["role"];
  readonly replicas: number;
  /** Undefined: all namespaces. */
  readonly namespaces: readonly string[] | undefined;
}

const METRICS_PORT = 9090;
/** Time between the drain and the SIGKILL of the kubelet, to release Leases and connections. */
const AFTER_DRAIN_SECONDS = 10;
const MEMORY_MIB = 512;

/** Returns a Deployment of workers with its PodDisruptionBudget and the Service for Prometheus. */
export function workerManifests(options: WorkerManifestsOptions): Manifest[] {
  const { installation, settings, config, redis, component, role, replicas, namespaces } = options;
  const port = { name: "metrics", number: METRICS_PORT };
  const template = podTemplate(installation, {
    component,
    args: ["worker", "--config", config],
    env: {
      KONVERGE_ROLE: role,
      KONVERGE_BUILD_ID: installation.image,
      KONVERGE_LEASE_NAMESPACE: installation.namespace,
      KONVERGE_METRICS_HOST: "0.0.0.0",
      KONVERGE_METRICS_PORT: String(METRICS_PORT),
      ...defined({ KONVERGE_NAMESPACES: namespaces?.join(",") }),
    },
    secrets: [redis],
    port,
    account: installation.name,
    token: true,
    graceSeconds: Math.ceil(settings.shutdownGrace / 1_000) + AFTER_DRAIN_SECONDS,
    memoryMiB: MEMORY_MIB,
  });
  return [
    deployment(installation, component, replicas, template),
    disruptionBudget(installation, component),
    {
      ...service(installation, component, port, "-metrics"),
      spec: {
        // Prometheus scrapes each Pod, even if it is not ready.
        clusterIP: "None",
        publishNotReadyAddresses: true,
        selector: selectorOf(installation, component),
        ports: [{ name: port.name, port: port.number, targetPort: port.name }],
      },
    },
  ];
}

export function deployment(
  installation: Installation,
  component: Component,
  replicas: number,
  template: object,
): Manifest {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadataOf(installation, component),
    spec: {
      replicas,
      revisionHistoryLimit: 5,
      // A new Pod is ready before an old one drains.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      selector: { matchLabels: selectorOf(installation, component) },
      template,
    },
  };
}

export function disruptionBudget(installation: Installation, component: Component): Manifest {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: metadataOf(installation, component),
    spec: {
      maxUnavailable: 1,
      // A Pod that is not ready does not block the drain of its node.
      unhealthyPodEvictionPolicy: "AlwaysAllow",
      selector: { matchLabels: selectorOf(installation, component) },
    },
  };
}

export function service(
  installation: Installation,
  component: Component,
  port: { readonly name: string; readonly number: number },
  suffix = "",
): Manifest {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadataOf(installation, component, suffix),
    spec: {
      selector: selectorOf(installation, component),
      ports: [{ name: port.name, port: port.number, targetPort: port.name }],
    },
  };
}

function metadataOf(installation: Installation, component: Component, suffix = "") {
  return {
    name: `${installation.name}-${component}${suffix}`,
    namespace: installation.namespace,
    labels: labelsOf(installation, component),
  };
}
