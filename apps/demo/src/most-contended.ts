import type { ContentionReport } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import { POOLS } from "./world.ts";

/** The dashboard's page of the pool that was fought over most; undefined when nobody was in anybody's way. */
export async function findMostFought(apiUrl: string): Promise<string | undefined> {
  const response = await fetch(`${apiUrl}/v1/contention`, { signal: AbortSignal.timeout(10_000) });
  if (!response.ok) {
    const detail = `GET /v1/contention answered ${response.status}: ${await response.text()}`;
    throw new KonvergeError("demo_failed", detail);
  }
  const { contendedObjects } = (await response.json()) as ContentionReport;
  const found = contendedObjects.find(
    ({ resource }) => resource === `${POOLS.resource}.${POOLS.group}`,
  );
  if (found === undefined) return undefined;
  const path = ["default", "node-pool", found.namespace ?? "_", found.name];
  return `${apiUrl}/o/${path.map(encodeURIComponent).join("/")}`;
}
