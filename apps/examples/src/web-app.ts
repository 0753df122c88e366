import {
  conditions,
  defineController,
  defineResource,
  reportProgress,
  setControllerReference,
} from "konverge";
import { Deployment, HorizontalPodAutoscaler, Service } from "konverge/kinds";
import { z } from "zod";

/** A web application behind one address, with as many Pods as its load needs. */
export const WebApp = defineResource({
  group: "demo.konverge.dev",
  version: "v1",
  kind: "WebApp",
  spec: z.object({
    image: z.string().min(1),
    port: z.int().min(1).max(65_535).default(8080),
    minReplicas: z.int().min(1).default(1),
    maxReplicas: z.int().min(1).default(3),
    /** Load of a Pod at which another one starts. */
    cpuPercent: z.int().min(1).max(100).default(80),
  }),
  status: z.object({ availableReplicas: z.int(), observedGeneration: z.int(), conditions }),
  printerColumns: [
    { name: "Image", path: ".spec.image" },
    { name: "Available", path: ".status.availableReplicas" },
    { name: "Ready", path: '.status.conditions[?(@.type=="Ready")].status' },
  ],
});

/** Applies a Deployment, its Service and its autoscaler, and reports when enough Pods of the current version are available. */
export const webApp = defineController({
  name: "web-app",
  for: WebApp,
  owns: [Deployment, Service, HorizontalPodAutoscaler],
  async reconcile({ object: app, kube }) {
    const { image, port, minReplicas, maxReplicas, cpuPercent } = app.spec;
    const { name, namespace = "default" } = app.metadata;
    const labels = { "app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "web-app" };
    const owned = <T extends { metadata: object }>(object: T): T => {
      setControllerReference(object, app);
      return object;
    };
    // The objects are children of the app, so fields that others have changed are taken over.
    const force = true;
    const deployment = await kube.apply(
      Deployment,
      owned({
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name, namespace, labels },
        spec: {
          // No replicas: that field belongs to the autoscaler.
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: "app", image, ports: [{ containerPort: port }] }] },
          },
        },
      }),
      { force },
    );
    await kube.apply(
      Service,
      owned({
        apiVersion: "v1",
        kind: "Service",
        metadata: { name, namespace, labels },
        spec: { selector: labels, ports: [{ name: "http", port: 80, targetPort: port }] },
      }),
      { force },
    );
    const target = { type: "Utilization", averageUtilization: cpuPercent };
    await kube.apply(
      HorizontalPodAutoscaler,
      owned({
        apiVersion: "autoscaling/v2",
        kind: "HorizontalPodAutoscaler",
        metadata: { name, namespace, labels },
        spec: {
          scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name },
          minReplicas,
          maxReplicas,
          metrics: [{ type: "Resource", resource: { name: "cpu", target } }],
        },
      }),
      { force },
    );

    const { status = {} } = deployment;
    const { availableReplicas = 0, updatedReplicas = 0, observedGeneration = 0 } = status;
    // The figures of an earlier version do not describe the current one.
    const isCurrent = observedGeneration >= (deployment.metadata.generation ?? 0);
    const isReady = isCurrent && Math.min(availableReplicas, updatedReplicas) >= minReplicas;
    await kube.mutateStatus(app, (draft) => {
      draft.status.availableReplicas = availableReplicas;
      const message = `${availableReplicas} of ${minReplicas} replicas are available`;
      reportProgress(
        draft,
        isReady
          ? { state: "ready", reason: "Available", message }
          : { state: "reconciling", reason: "WaitingForReplicas", message },
      );
    });
  },
});
