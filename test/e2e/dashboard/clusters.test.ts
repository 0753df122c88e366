import { createClusterRegistry } from "@konverge/queue";
import { expect, onTestFinished, test } from "vitest";
import { useQueues } from "../../integration/queue/queue-harness.ts";
import { findBarriers, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();

/** Reports clusters as a worker does. */
function report(
  workerId: string,
  clusters: readonly { readonly name: string; readonly reason?: string }[],
): void {
  const registry = createClusterRegistry({
    redis: harness.target,
    prefix: harness.prefix,
    workerId,
    onError: (error) => expect.unreachable(String(error)),
  });
  onTestFinished(() => registry.close());
  registry.follow(() =>
    clusters.map((cluster) => ({
      source: "directory clusters",
      state: cluster.reason === undefined ? "engaged" : "failing",
      since: "2026-01-01T00:00:00Z",
      serverVersion: "v1.34.1",
      ...cluster,
    })),
  );
}

test("the page of workers lists the clusters with state, reason and workers", async (context) => {
  const { page, troubles } = await open(context);
  const { url } = await startOwnApi(harness);
  report("w-1", [{ name: "berlin" }, { name: "lima", reason: "certificate has expired" }]);
  report("w-2", [{ name: "berlin" }, { name: "lima" }]);
  await page.goto(new URL("/workers", url).href);
  const table = page.getByRole("table", { name: "2 clusters" });
  await table.waitFor();
  await table.getByRole("row", { name: /^berlin engaged 2 of 2 v1\.34\.1/ }).waitFor();
  await table.getByRole("row", { name: /^lima failing certificate has expired 1 of 2/ }).waitFor();
  expect(await findBarriers(page)).toEqual([]);
  expect(troubles).toEqual([]);
});
