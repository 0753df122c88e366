import type { Controller } from "@konverge/engine";
import { ConfigMap } from "@konverge/kube/kinds";
import { defineConfig, kubeconfigDirectory, startWorker } from "@konverge/worker";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type LogLine, keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import { until } from "../../support/until.ts";
import { blockOf, importText } from "../docs/load-block.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { KubeconfigFolder, startFleetCluster, type FleetCluster } from "./fleet-harness.ts";

const queues = useQueues();
const namespace = "default";
let east: FleetCluster;
let west: FleetCluster;
beforeAll(async () => {
  [east, west] = await Promise.all([startFleetCluster(), startFleetCluster()]);
});
afterAll(async () => {
  await east[Symbol.asyncDispose]();
  await west[Symbol.asyncDispose]();
});

let stamp: Controller;
beforeAll(async () => {
  const { text } = blockOf("docs/several-clusters.md ts 1");
  ({ stamp } = (await importText(text)) as { readonly stamp: Controller });
});

async function start(folder: KubeconfigFolder, controllers: readonly Controller[] = [stamp]) {
  const lines: LogLine[] = [];
  const worker = await startWorker({
    config: defineConfig({
      controllers,
      clusters: kubeconfigDirectory({ path: folder.path }),
      settings: { leaseDuration: "3s", prefix: queues.prefix },
    }),
    redis: queues.url,
    log: keepLog(lines),
  });
  return Object.assign(worker, { lines });
}
const want = async ({ client }: FleetCluster, name: string, wanted: string) => {
  const metadata = { namespace, name };
  const found = await client.list(ConfigMap, { namespace });
  if (found.items.some((each) => each.metadata.name === name)) {
    await client.mutate(ConfigMap, metadata, (draft) => {
      draft.data = { ...draft.data, wanted };
    });
  } else {
    await client.create(ConfigMap, { metadata, data: { wanted } });
  }
};
const seen = ({ client }: FleetCluster, name: string, expected: string) =>
  until(`${name} has ${expected}`, async () => {
    const { data } = await client.get(ConfigMap, { namespace, name });
    return data?.["seen"] === expected;
  });

test("one worker reconciles all clusters of a directory, also those added and removed later", async () => {
  using folder = new KubeconfigFolder();
  folder.put("east", east.server.kubeconfig);
  await using worker = await start(folder);
  await want(east, "a", "1");
  await seen(east, "a", "east 1");

  await want(west, "a", "1");
  folder.put("west", west.server.kubeconfig);
  await seen(west, "a", "west 1");

  folder.remove("west");
  await until("the worker leaves west", () =>
    worker.lines.some(
      ({ message, fields }) => message === "cluster disengaged" && fields["cluster"] === "west",
    ),
  );
  const before = west.calls().length;
  await want(west, "a", "2");
  await want(east, "a", "2");
  await seen(east, "a", "east 2");
  expect(west.calls()).toHaveLength(before);

  folder.put("west", west.server.kubeconfig);
  await seen(west, "a", "west 2");
});
