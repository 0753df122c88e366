import { defineResource, type CustomObject } from "@konverge/engine";
import { isNotFound, type KubeClient } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import { z } from "zod";

/** The kind that the benchmark's controllers reconcile: `status.seen` must become `spec.step`. */
export const Gauge = defineResource({
  group: "bench.konverge.dev",
  version: "v1",
  kind: "Gauge",
  spec: z.object({
    step: z.int(),
    parts: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
  }),
  status: z.object({ seen: z.int() }),
});

export type GaugeObject = CustomObject<
  { step: number; parts?: { name: string; value: string }[] | undefined },
  { seen: number }
>;

export const GAUGES_IN = "default";
export const gaugeName = (n: number): string => `gauge-${String(n).padStart(5, "0")}`;
export const gaugePath = (name: string): string =>
  `/apis/${Gauge.group}/${Gauge.version}/namespaces/${GAUGES_IN}/${Gauge.resource}/${name}`;
const WIDTH = 16;

/**
 * Creates the kind and `count` gauges in their desired state, so that a starting controller has nothing to write. Large ones
 * have 2 kB, with labels, annotations and the managedFields of two writers; the others have 0.7 kB.
 */
export async function createGauges(
  client: KubeClient,
  count: number,
  { large = false }: { readonly large?: boolean } = {},
): Promise<void> {
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
      const n = next++;
      const metadata = { namespace: GAUGES_IN, name: gaugeName(n) };
      await client.create(Gauge, large ? largeGauge(n) : { metadata, spec: { step: 0 } });
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

/** A gauge whose JSON takes 2 kB once the API server has stored it. */
export function largeGauge(n: number) {
  const labels = Object.fromEntries(
    ["name", "instance", "part-of", "managed-by"].map((name) => [
      `app.kubernetes.io/${name}`,
      `gauge-${n}`,
    ]),
  );
  const annotations = {
    "bench.konverge.dev/team": `team-${n % 10}`,
    "bench.konverge.dev/n": `${n}`,
  };
  const parts = Array.from({ length: 8 }, (_, part) => ({
    name: `part-${part}`,
    value: `${n}-${part}-`.padEnd(60, "v"),
  }));
  return {
    metadata: { namespace: GAUGES_IN, name: gaugeName(n), labels, annotations },
    spec: { step: 0, parts },
  };
}
