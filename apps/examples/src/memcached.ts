import { child, conditions, defineController, defineResource, setCondition } from "konverge";
import { Deployment, Pod } from "konverge/kinds";
import { z } from "zod";

/** A number of memcached servers. */
export const Memcached = defineResource({
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Memcached",
  plural: "memcacheds",
  spec: z.object({
    size: z.int().min(0).max(5).default(1),
    port: z.int().default(11_211),
  }),
  status: z.object({
    /** Names of the Pods. */
    nodes: z.array(z.string()),
    observedGeneration: z.int(),
    conditions,
  }),
});

const labelsOf = (name: string) => ({
  "app.kubernetes.io/name": "memcached",
  "app.kubernetes.io/instance": name,
});

/** Keeps a Deployment of the right size, and lists its Pods in the status. */
export const memcached = defineController({
  name: "memcached",
  for: Memcached,
  owns: [Deployment],
  // The Pods belong to the Deployment's ReplicaSet, so they are found by their label.
  watches: [
    {
      type: Pod,
      map: ({ metadata: { namespace = "default", labels = {} } }) => {
        const { "app.kubernetes.io/name": app, "app.kubernetes.io/instance": name } = labels;
        return app === "memcached" && name !== undefined ? [{ namespace, name }] : [];
      },
    },
  ],
  async reconcile({ object: cache, kube }) {
    const { size, port } = cache.spec;
    const { name, generation: observedGeneration = 0 } = cache.metadata;
    const labels = labelsOf(name);
    const containers = [
      { name: "memcached", image: "memcached:1.6", ports: [{ containerPort: port }] },
    ];
    await kube.reconcileChildren(cache, [
      child(Deployment, {
        metadata: { name, labels },
        spec: {
          replicas: size,
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers } },
        },
      }),
    ]);

    const pods = await kube.list(Pod, { labelSelector: `app.kubernetes.io/instance=${name}` });
    // A Pod that is being deleted serves no longer.
    const living = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const isReady = ({ status }: (typeof pods)[number]) =>
      status?.conditions?.some((one) => one.type === "Ready" && one.status === "True") ?? false;
    const isAvailable = living.length === size && living.every(isReady);
    await kube.mutateStatus(cache, (draft) => {
      draft.status.nodes = living.map(({ metadata }) => metadata.name).toSorted();
      draft.status.observedGeneration = observedGeneration;
      setCondition(draft, {
        type: "Available",
        status: isAvailable ? "True" : "False",
        reason: isAvailable ? "SizeReached" : "Scaling",
        message: `${living.length} of ${size} servers run`,
        observedGeneration,
      });
    });
  },
});
