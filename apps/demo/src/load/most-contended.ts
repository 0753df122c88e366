import type { ContentionReport } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import { NodePool } from "./kinds.ts";

/** Returns the dashboard's page of the most contended pool; undefined without contention. */
export async function findMostContended(apiUrl: string): Promise<string | undefined> {
  const response = await fetch(`${apiUrl}/v1/contention`, { signal: AbortSignal.timeout(10_000) });
  if (!response.ok) {
    const detail = `GET /v1/contention answered ${response.status}: ${await response.text()}`;
    throw new KonvergeError("demo_failed", detail);
  }
  const { contendedObjects } = (await response.json()) as ContentionReport;
  const found = contendedObjects.find(
    ({ resource }) => resource === `${NodePool.resource}.${NodePool.group}`,
  );
  if (found === undefined) return undefined;
  const path = ["default", "node-pool", found.namespace ?? "_", found.name];
  return `${apiUrl}/objects/${path.map(encodeURIComponent).join("/")}`;
}
