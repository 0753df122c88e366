import { expect, test } from "vitest";
import { actOnRunsResponseSchema } from "@konverge/contracts";
import { defineWorkflow } from "@konverge/workflow";
import { openAnnounced } from "../integration/queue/announce.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { until } from "../support/until.ts";
import { runCommand } from "./cli-runner.ts";

const harness = useQueues();
const held = defineWorkflow("held", { version: 1 }, async (w) => await w.signal("go"));

async function stage(ids: readonly string[]) {
  const { url, prefix } = harness;
  const runs = await openAnnounced(harness, [held]);
  runs.work({ workflows: [held] });
  for (const id of ids) {
    await runs.start(held, undefined, { id, labels: { team: id.slice(0, -2) } });
    const status = async () => (await runs.peek({ workflow: "held", id }))?.status;
    await until(`${id} waits`, async () => (await status()) === "waiting");
  }
  const env = { KONVERGE_REDIS_URL: url, KONVERGE_PREFIX: prefix };
  const konverge = (...args: readonly string[]) =>
    runCommand(["run", ...args, "--reason", "freeze", "--by", "ann"], env);
  return { runs, konverge };
}

test("previews, confirms and pauses the runs that match", async () => {
  const { runs, konverge } = await stage(["web-1", "web-2", "db-1"]);
  const web = ["--workflow", "held", "--label", "team=web"];
  const preview = await konverge("pause", ...web, "--dry-run");
  expect(preview).toMatchObject({ code: 0, stdout: "2 runs would be paused\n" });
  expect(await konverge("pause", ...web)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("run pause would pause 2 runs; add --yes") as string,
  });
  const wrong = await konverge("pause", ...web, "--yes", "--expect", "3");
  expect(wrong).toMatchObject({
    code: 4,
    stderr: expect.stringContaining("2 runs match, but 3 were expected") as string,
  });
  const paused = await konverge("pause", ...web, "--yes", "-o", "json");
  expect(actOnRunsResponseSchema.parse(JSON.parse(paused.stdout))).toMatchObject({
    matched: 2,
    changed: 2,
  });
  expect(await runs.get({ workflow: "held", id: "web-1" })).toMatchObject({
    status: "paused",
    pause: { by: "ann", reason: "freeze" },
  });
  const resumed = await konverge("resume", "--all", "--yes");
  expect(resumed).toMatchObject({ code: 0, stdout: "2 resumed\n" });
  const ended = await konverge("terminate", "--workflow", "held", "--status", "waiting", "--yes");
  expect(ended.stdout).toMatch(/^\d terminated\n$/);
});

test("previews and sends a signal to the runs that match", async () => {
  const { runs, konverge } = await stage(["web-1", "web-2", "db-1"]);
  const web = ["signal", "go", "--payload", '{"by":"ann"}', "--label", "team=web"];
  const preview = await konverge(...web, "--dry-run");
  expect(preview).toMatchObject({ code: 0, stdout: "2 runs would be signalled\n" });
  expect(await konverge(...web, "--yes", "--expect", "3")).toMatchObject({
    code: 4,
    stderr: expect.stringContaining("2 runs match, but 3 were expected") as string,
  });
  expect(await konverge(...web, "--yes", "--expect", "2")).toMatchObject({
    code: 0,
    stdout: "2 signalled\n",
  });
  for (const id of ["web-1", "web-2"]) {
    const result = async () => (await runs.get({ workflow: "held", id }))?.result;
    expect(await until(`${id} is done`, result)).toEqual({ by: "ann" });
  }
  expect(await runs.peek({ workflow: "held", id: "db-1" })).toMatchObject({ status: "waiting" });
  const refused = (stderr: string) => ({
    code: 2,
    stderr: expect.stringContaining(stderr) as string,
  });
  expect(await konverge("signal", "go")).toMatchObject(refused("--all: is required"));
  const unnamed = await konverge("signal", "held/default/db-1");
  expect(unnamed).toMatchObject(refused("<signal>: is required"));
  expect(await konverge("signal", "held/default/db-1", "go", "--yes")).toMatchObject(
    refused("a run cannot be combined with filters"),
  );
});

test("sends a signal once to each run if the command is repeated with its ID", async () => {
  const { runs, konverge } = await stage(["web-1"]);
  const signal = ["signal", "later", "--id", "freeze-7", "--all", "--yes", "-o", "json"];
  for (const changed of [1, 0]) {
    const sent = await konverge(...signal);
    expect(JSON.parse(sent.stdout)).toMatchObject({ matched: 1, changed, unchanged: 1 - changed });
  }
  expect(await runs.unconsumedSignals({ workflow: "held", id: "web-1" })).toHaveLength(1);
});

test("rejects an action without a run and a filter, and a run with a filter", async () => {
  const { konverge } = await stage(["web-1"]);
  const refused = (stderr: string) => ({
    code: 2,
    stderr: expect.stringContaining(stderr) as string,
  });
  expect(await konverge("cancel", "--yes")).toMatchObject(refused("--all: is required"));
  expect(await konverge("cancel", "--all", "--search", "x")).toMatchObject(
    refused("--all: cannot"),
  );
  const both = await konverge("cancel", "held/default/web-1", "--all");
  expect(both).toMatchObject(refused("a run cannot be combined with filters"));
  expect(await konverge("retry", "--all", "--yes")).toMatchObject(refused("retry needs a status"));
  const waiting = await konverge("retry", "--status", "failed", "--wait");
  expect(waiting).toMatchObject(refused("--wait and --skip-undo need a run"));
});
