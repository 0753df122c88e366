import { contentionReportSchema } from "@konverge/contracts";
import { expect, test } from "vitest";
import { announce } from "../integration/queue/announce.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { historyBatch, openHistoryWriter } from "../support/history-batch.ts";
import { runCommand } from "./cli-runner.ts";

const harness = useQueues();
const environment = () => ({ KONVERGE_REDIS_URL: harness.apiUrl, KONVERGE_PREFIX: harness.prefix });

const POOLS = "nodepools.demo.konverge.dev";
const LOOP = {
  kind: "selfTriggered",
  count: 20,
  step: 1,
  sinceMs: 1,
  paths: [],
  managers: [],
  worker: "w-1",
} as const;

test("contention list: one line per object, most wasted writes first, and the loops", async () => {
  await announce(harness);
  const empty = await runCommand(["contention", "list"], environment());
  expect(empty).toMatchObject({ code: 0, stdout: "" });
  expect(empty.stderr).toContain("no contention found");

  const writer = openHistoryWriter(harness);
  const minute = Math.floor(Date.now() / 60_000);
  const untilMs = Date.now() + 60_000;
  const waste = (name: string, writes: number) => ({
    object: `${POOLS}/demo/${name}`,
    controller: "node-pool",
    minute,
    writes,
  });
  const pair = { kind: "takeover", manager: "argocd-controller", path: "spec.weight" } as const;
  await writer.flush(
    historyBatch({
      wasted: [waste("green", 30), waste("blue", 90)],
      contention: [{ object: `${POOLS}/demo/blue`, conflicts: 0, pairs: [{ ...pair, count: 90 }] }],
      loops: new Map([
        [`node-pool/default/${POOLS}/demo/told`, loop({ untilMs, protection: "report" })],
        [`node-pool/default/${POOLS}/demo/slow`, loop({ untilMs, protection: "throttle" })],
        [`node-pool/default/${POOLS}/demo/due`, loop({ untilMs: 1, protection: "throttle" })],
      ]),
    }),
  );

  const { stdout, code } = await runCommand(["contention", "list"], environment());
  expect(code).toBe(0);
  const lines = stdout.split("\n").map((line) => line.split(/ {2,}/));
  const fix =
    "Give spec.weight one owner: remove it from the writes of node-pool or of argocd-controller";
  expect(lines.slice(0, 3)).toEqual([
    ["PER MIN", "LAST HOUR", "OBJECT", "WITH", "FIELD", "SINCE", "SUGGESTED FIX"],
    [
      expect.stringMatching(/^[\d.]+$/),
      "90",
      `node-pool ${POOLS}/demo/blue`,
      "argocd-controller",
      "spec.weight",
      expect.stringMatching(/^\d+m?s ago$/),
      fix,
    ],
    [
      expect.stringMatching(/^[\d.]+$/),
      "30",
      `node-pool ${POOLS}/demo/green`,
      "-",
      "-",
      expect.stringMatching(/^\d+m?s ago$/),
      expect.stringContaining('strategy: "fields"'),
    ],
  ]);
  expect(lines[3]).toEqual(["LOOP", "KIND", "COUNT", "STARTS"]);
  const starts = new Map(
    lines.slice(4, 7).map(([key = "", , , text]) => [key.split("/").at(-1), text]),
  );
  expect(starts).toEqual(
    new Map([
      ["told", "not throttled"],
      ["slow", expect.stringMatching(/^throttled, next start in \d+[hms]$/)],
      ["due", "throttled, next start is due"],
    ]),
  );
  const names = await runCommand(["contention", "list", "-o", "name"], environment());
  expect(names.stdout).toBe(`${POOLS}/demo/blue\n${POOLS}/demo/green\n`);
  const json = await runCommand(["contention", "list", "-o", "json"], environment());
  expect(contentionReportSchema.parse(JSON.parse(json.stdout)).episodes).toHaveLength(2);
});

test("contention list counts the objects beyond the twentieth", async () => {
  await announce(harness);
  const writer = openHistoryWriter(harness);
  const minute = Math.floor(Date.now() / 60_000);
  await writer.flush(
    historyBatch({
      wasted: Array.from({ length: 23 }, (_, at) => ({
        object: `${POOLS}/demo/pool-${at}`,
        controller: "node-pool",
        minute,
        writes: 10,
      })),
    }),
  );
  const { stdout } = await runCommand(["contention", "list"], environment());
  expect(stdout.trimEnd().split("\n").slice(21)).toEqual(["and 3 more"]);
});

function loop(state: { readonly untilMs: number; readonly protection: string }): string {
  return JSON.stringify({ ...LOOP, ...state });
}
