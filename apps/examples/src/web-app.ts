import { child, conditions, defineController, defineResource, reportProgress } from "konverge";
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

/** Keeps a Deployment, its Service and its autoscaler, and reports when all of them are ready. */
export const webApp = defineController({
  name: "web-app",
  for: WebApp,
  owns: [Deployment, Service, HorizontalPodAutoscaler],
  async reconcile({ object: app, kube }) {
    const { image, port, minReplicas, maxReplicas, cpuPercent } = app.spec;
    const { name } = app.metadata;
    const labels = { "app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "web-app" };
    const target = { type: "Utilization", averageUtilization: cpuPercent };
    const { children, ready, message } = await kube.reconcileChildren(app, [
      child(Deployment, {
        metadata: { name, labels },
        spec: {
          // No replicas: that field belongs to the autoscaler.
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: "app", image, ports: [{ containerPort: port }] }] },
          },
        },
      }),
      child(Service, {
        metadata: { name, labels },
        spec: { selector: labels, ports: [{ name: "http", port: 80, targetPort: port }] },
      }),
      child(HorizontalPodAutoscaler, {
        metadata: { name, labels },
        spec: {
          scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name },
          minReplicas,
          maxReplicas,
          metrics: [{ type: "Resource", resource: { name: "cpu", target } }],
        },
      }),
    ]);

    const [{ object: deployment }] = children;
    const { availableReplicas = 0 } = deployment.status ?? {};
    const available = `${availableReplicas} of ${minReplicas} replicas are available`;
    await kube.mutateStatus(app, (draft) => {
      draft.status.availableReplicas = availableReplicas;
      reportProgress(
        draft,
        ready && availableReplicas >= minReplicas
          ? { state: "ready", reason: "Available", message: available }
          : { state: "reconciling", reason: "WaitingForReplicas", message: message || available },
      );
    });
  },
});
