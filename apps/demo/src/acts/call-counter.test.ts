import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { countAuditedCalls } from "./call-counter.ts";

const event = (over: object) => ({
  stage: "ResponseComplete",
  verb: "get",
  userAgent: "konverge-worker/1",
  objectRef: { resource: "nodepools" },
  stageTimestamp: "2026-01-01T00:00:01.000000Z",
  ...over,
});

test("counts calls, writes and conflicts of the agent, without watches, Leases, Events and other times", async () => {
  const folder = await mkdtemp(join(tmpdir(), "konverge-test-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "audit.log");
  const events = [
    event({}),
    event({ verb: "patch", responseStatus: { code: 200 } }),
    event({ verb: "update", responseStatus: { code: 409 } }),
    event({ verb: "patch", responseStatus: { code: 422 } }),
    event({ verb: "create", responseStatus: { code: 409 } }),
    event({ verb: "watch" }),
    event({ stage: "RequestReceived" }),
    event({ userAgent: "outside-writer" }),
    event({ objectRef: { resource: "leases" } }),
    event({ objectRef: { resource: "events" } }),
    event({ objectRef: undefined }),
    event({ stageTimestamp: "2026-01-01T00:00:09.000000Z" }),
  ];
  await writeFile(path, events.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const at = (second: number) => Date.UTC(2026, 0, 1, 0, 0, second);
  expect(
    await countAuditedCalls(path, { agent: "konverge-worker", fromMs: at(0), toMs: at(5) }),
  ).toEqual({ calls: 5, writes: 1, conflicts: 2 });
});
