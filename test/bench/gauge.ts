import { defineResource, type CustomObject } from "@konverge/engine";
import { isNotFound, type KubeClient } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import { z } from "zod";

/** The kind that the benchmark's controllers reconcile: `status.seen` must become `spec.step`. */
export const Gauge = defineResource({
  group: "bench.konverge.dev",
  version: "v1",
  kind: "Gauge",
  spec: z.object({ step: z.int() }),
  status: z.object({ seen: z.int() }),
});

export type GaugeObject = CustomObject<{ step: number }, { seen: number }>;

export const GAUGES_IN = "default";
export const gaugeName = (n: number): string => `gauge-${String(n).padStart(5, "0")}`;
export const gaugePath = (name: string): string =>
  `/apis/${Gauge.group}/${Gauge.version}/namespaces/${GAUGES_IN}/${Gauge.resource}/${name}`;
const WIDTH = 16;

/** Creates the kind and `count` gauges in their desired state, so that a starting controller has nothing to write. */
export async function createGauges(client: KubeClient, count: number): Promise<void> {
  await client.create(CustomResourceDefinition, Gauge.crd());
  for (;;) {
    try {
      await client.list(Gauge, { namespace: GAUGES_IN });
      break;
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  let next = 0;
  const make = async () => {
    while (next < count) {
      const metadata = { namespace: GAUGES_IN, name: gaugeName(next++) };
      await client.create(Gauge, { metadata, spec: { step: 0 } });
      await client.mutate(
        Gauge,
        metadata,
        (draft) => {
          draft.status = { seen: 0 };
        },
        { subresource: "status" },
      );
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, make));
}
