import type { AttemptRecord } from "@konverge/records";
import { defined, KonvergeError } from "@konverge/core";
import type { ControllerWrites } from "./lost-updates.ts";

/** The attempts of one object, newest first, as any client of the HTTP API reads them. */
async function readHistory(
  apiUrl: string,
  {
    controller,
    namespace,
    name,
  }: { readonly controller: string; readonly namespace: string; readonly name: string },
): Promise<readonly AttemptRecord[]> {
  const path = ["default", controller, namespace, name].map(encodeURIComponent).join("/");
  const response = await fetch(`${apiUrl}/v1/objects/${path}`, {
    signal: AbortSignal.timeout(10_000),
  });
  if (response.status === 404) return [];
  if (!response.ok) {
    throw new KonvergeError(
      "demo_failed",
      `GET ${path} answered ${response.status}: ${await response.text()}`,
    );
  }
  const { attempts } = (await response.json()) as { readonly attempts: readonly AttemptRecord[] };
  return attempts;
}

/** What both controllers last wrote to a pool, by their attempt records. */
export async function readControllerWrites(
  apiUrl: string,
  namespace: string,
  pools: readonly string[],
): Promise<Map<string, ControllerWrites>> {
  const entries = await Promise.all(
    pools.map(async (name): Promise<[string, ControllerWrites]> => {
      const [scaler, pool] = await Promise.all([
        readHistory(apiUrl, { controller: "autoscaler", namespace, name }),
        readHistory(apiUrl, { controller: "node-pool", namespace, name }),
      ]);
      const replicas = lastWritten(scaler, "spec", "replicas");
      const machines = lastWritten(pool, "status", "machines");
      return [
        name,
        {
          ...defined({ replicas, machines }),
        },
      ];
    }),
  );
  return new Map(entries);
}

function lastWritten(
  history: readonly AttemptRecord[],
  section: "spec" | "status",
  field: string,
): number | undefined {
  for (const { writes } of history) {
    for (const { resource, patch } of writes.toReversed()) {
      const part = resource === "nodepools.demo.konverge.dev" ? patch?.[section] : undefined;
      if (typeof part === "object" && part !== null && field in part) {
        return Number((part as Record<string, unknown>)[field]);
      }
    }
  }
  return undefined;
}
