import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startApi } from "@konverge/api";
import { readSettings, runHistorySchema, runListSchema, runSchema } from "@konverge/contracts";
import { TerminalError } from "@konverge/core";
import {
  defineSchedule,
  defineWorkflow,
  type AnyWorkflow,
  type Schedule,
} from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openAnnounced } from "../integration/queue/announce.ts";
import { release } from "../../apps/examples/src/release.ts";
import { blocksOf } from "../integration/docs/load-block.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { shellLines } from "../support/shell-lines.ts";
import { until } from "../support/until.ts";
import { runCommand } from "./cli-runner.ts";

const harness = useQueues();
const shell = promisify(execFile);

/** Returns the lines of the `sh` block of a page that contains a text. */
function block(page: string, text: string): { readonly text: string; readonly lines: string[][] } {
  const found = blocksOf(page).filter((each) => each.language === "sh" && each.text.includes(text));
  expect(found, `${page}: ${text}`).toHaveLength(1);
  const all = found[0]?.text ?? "";
  return { text: all, lines: shellLines(all).map((words) => [...words]) };
}

interface Stage {
  readonly folder: string;
  readonly konverge: (...args: readonly string[]) => ReturnType<typeof runCommand>;
  /** Runs a line of a page, which must succeed. Returns its output. */
  readonly type: (line: readonly string[]) => Promise<string>;
  readonly inStatus: (id: string, status: string) => Promise<void>;
}

/** Runs workflows as a worker does, and has a folder for the files of a reader. */
async function stage(
  workflows: readonly AnyWorkflow[],
  schedules: readonly Schedule[] = [],
): Promise<Stage> {
  const { url, prefix } = harness;
  const folder = await mkdtemp(join(tmpdir(), "konverge-workflow-docs-"));
  const runs = await openAnnounced(harness, workflows);
  runs.work({ workflows });
  if (schedules.length > 0) runs.schedule(schedules);
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const env = { KONVERGE_REDIS_URL: url, KONVERGE_PREFIX: prefix };
  const konverge: Stage["konverge"] = (...args) => runCommand(args, env);
  return {
    folder,
    konverge,
    async type([program, ...args]) {
      expect(program).toBe("konverge");
      const { code, stdout, stderr } = await konverge(
        ...args.map((word) => word.replaceAll("/tmp/releases", folder)),
      );
      expect(code, `${args.join(" ")}\n${stdout}${stderr}`).toBe(0);
      return stdout;
    },
    inStatus: (id, status) =>
      until(`${id} is ${status}`, async () => {
        const { stdout } = await konverge("run", "get", id, "-o", "json");
        return runSchema.parse(JSON.parse(stdout)).status === status;
      }).then(() => undefined),
  };
}

test("docs/workflow-operations.md: the commands start, approve, cancel, retry and terminate runs", async () => {
  const { konverge, type, inStatus } = await stage([release]);
  const { lines } = block("docs/workflow-operations.md", "run start release");
  const at = lines.findIndex((words) => words.includes("start"));
  expect(lines.slice(0, at).map(([program = "", command]) => [program, command])).toEqual([
    ["konverge", "apiserver"],
    ["export", "KUBECONFIG=/tmp/kubeconfig"],
    ["konverge", "worker"],
  ]);
  const typed = new Set<readonly string[]>();
  /** Types the line of the page with this action and text, and returns its output. */
  const next = async (action: string, text: string) => {
    const line = lines.find((words) => words[2] === action && words.join(" ").includes(text));
    if (line === undefined) throw new Error(`the page does not ${action} ${text}`);
    typed.add(line);
    return await type(line);
  };
  const get = async (id: string) => {
    const { stdout } = await konverge("run", "get", id, "-o", "json");
    return runSchema.parse(JSON.parse(stdout));
  };
  await next("start", "--id r1");
  await inStatus("release/default/r1", "waiting");
  expect(await next("get", "r1")).toContain('waits for signal "approve"');
  const [check = []] = block("docs/workflow-operations.md", "deploy check").lines;
  const config = "apps/examples/src/release.config.ts";
  const here = check.map((word) => (word === "konverge.config.ts" ? config : word));
  expect(await type(here)).toBe("1 fit, 0 would block\n");
  await next("signal", "r1");
  expect(await next("get", "--wait")).toMatch(/^status +done$/m);
  const watched = await next("watch", "r1");
  expect(watched.split("\n").filter((line) => /step|signal/.test(line))).toHaveLength(3);
  expect(await next("list", "list release")).toContain("release/default/r1");
  expect(await next("list", "--status blocked")).not.toContain("release/default");
  await next("start", "--id r2");
  await inStatus("release/default/r2", "waiting");
  await next("cancel", "r2");
  await inStatus("release/default/r2", "cancelled");
  expect((await get("release/default/r2")).steps.map(({ name }) => name)).toContain("undo:draft");
  expect(await next("retry", "r2")).toContain("release/default/r2~2");
  await inStatus("release/default/r2~2", "waiting");
  await next("pause", "r2~2");
  await inStatus("release/default/r2~2", "paused");
  await next("resume", "r2~2");
  await inStatus("release/default/r2~2", "waiting");
  await next("terminate", "r2~2");
  const ended = await get("release/default/r2~2");
  expect(ended).toMatchObject({ status: "cancelled", error: { code: "terminated" } });
  expect(ended.steps.map(({ name }) => name)).toEqual(["draft"]);
  expect(lines.slice(at).filter((line) => !typed.has(line))).toEqual([]);
});

test("docs/workflow-operations.md: the commands pause one run and many, and raise a limit", async () => {
  const rollout = defineWorkflow("rollout", { version: 1, limits: { steps: 2 } }, async (w) => {
    await w.signal("go");
    for (const name of ["a", "b", "c"]) await w.step(name, () => name);
  });
  const { folder, konverge, type, inStatus } = await stage([rollout]);
  const start = (id: string) =>
    konverge("run", "start", "rollout", "--id", id, "--label", "team=web");
  await start("r1");
  await inStatus("rollout/default/r1", "waiting");
  const [pause = [], resume = []] = block("docs/workflow-operations.md", "run pause rollout").lines;
  await type(pause);
  await inStatus("rollout/default/r1", "paused");
  await type(resume);
  await inStatus("rollout/default/r1", "waiting");

  await start("r2");
  await inStatus("rollout/default/r2", "waiting");
  const many = block("docs/workflow-operations.md", "run resume --all");
  const [preview = [], all = [], retry = [], resumed = [], signalled = []] = many.lines;
  expect(await type(preview)).toMatch(/\b2\b/);
  const asCurl = block("docs/workflow-operations.md", "/v1/runs/actions");
  expect(JSON.parse(await curl(asCurl.text, folder))).toMatchObject({ matched: 2 });
  await inStatus("rollout/default/r1", "waiting");
  await type([...all, "--yes"]);
  await inStatus("rollout/default/r1", "paused");
  await inStatus("rollout/default/r2", "paused");
  await type(resumed);
  await inStatus("rollout/default/r2", "waiting");
  // No run has failed, and none has the key.
  await type(retry);
  expect(await type(signalled)).toBe("0 signalled\n");

  await konverge("run", "signal", "rollout/default/r1", "go");
  await inStatus("rollout/default/r1", "blocked");
  const [raise = []] = block("docs/workflow-operations.md", "run raise").lines;
  await type(raise);
  await inStatus("rollout/default/r1", "done");
});

/** Runs the curl calls of a block against an API on another port. Returns their output. */
async function curl(text: string, folder: string): Promise<string> {
  const { url, prefix } = harness;
  const env = {
    KONVERGE_REDIS_URL: url,
    KONVERGE_PREFIX: prefix,
    KONVERGE_API_PORT: "0",
    KONVERGE_LOG_LEVEL: "silent",
  };
  const api = await startApi({ settings: readSettings({ env }), version: "test" });
  onTestFinished(() => api.stop());
  const script = text
    .replace("konverge api &\n", "")
    .replaceAll(/^konverge .*\n/gm, "")
    .replaceAll("localhost:7070", new URL(api.url).host)
    .replaceAll("/tmp/releases", folder);
  const { stdout } = await shell("sh", ["-ec", script], { timeout: 90_000 });
  return stdout;
}

test("docs/workflow-operations.md: the calls start, show and signal a run over HTTP", async () => {
  const { folder, inStatus } = await stage([release]);
  const { text } = block("docs/workflow-operations.md", "konverge api &");
  const printed = await curl(text, folder);
  expect(printed).toContain('"id":"release/default/r3"');
  await inStatus("release/default/r3", "done");
  expect(await readFile(join(folder, "1.6.0.txt"), "utf8")).toBe("version 1.6.0\n");
});

test("docs/workflow-operations.md: an undo that cannot succeed is skipped", async () => {
  const rollout = defineWorkflow("rollout", { version: 1 }, async (w) => {
    await w.step("label", () => "label", { undo: () => undefined });
    await w.step("create", () => "pool", {
      undo: () => {
        throw new TerminalError("the pool was deleted by hand");
      },
    });
    throw new TerminalError("refused");
  });
  const { konverge, type, inStatus } = await stage([rollout]);
  await konverge("run", "start", "rollout", "--id", "r1");
  await inStatus("rollout/default/r1", "blocked");
  const { lines } = block("docs/workflow-operations.md", "--skip-undo");
  for (const line of lines) await type(line);
  await inStatus("rollout/default/r1", "failed");
  const { stdout } = await konverge("run", "get", "rollout/default/r1");
  expect(stdout).toContain("deleted by hand");
  expect(stdout).toMatch(/^undo:label +undo/m);
});

test("docs/workflow-operations.md: the commands show, pause, trigger and backfill a schedule", async () => {
  const backup = defineWorkflow("backup", { version: 1 }, async (w) => w.scheduledAtMs);
  const nightly = defineSchedule("nightly", { cron: "0 3 * * *", workflow: backup, input: null });
  const { konverge, type } = await stage([backup], [nightly]);
  await until("it is known", async () => {
    return (await konverge("schedule", "list")).stdout.includes("nightly");
  });
  const { lines } = block("docs/workflow-operations.md", "schedule backfill");
  const printed: string[] = [];
  for (const line of lines) {
    // The dates of the page may be in the future of this machine's clock.
    printed.push(await type(line.map((word) => word.replace("2026-11-", "2025-11-"))));
  }
  const [list, show, paused, resumed, triggered, filled = ""] = printed;
  expect(list).toMatch(/^nightly +backup/m);
  expect(show?.match(/\d{4}-\d\d-\d\dT03:00:00/g)?.length).toBeGreaterThanOrEqual(5);
  expect(paused).toContain("storage maintenance");
  expect(resumed).not.toContain("storage maintenance");
  expect(triggered).toMatch(/^status +done$/m);
  expect(filled.match(/nightly\.2025-11-0[12]T03:00:00Z/g)).toHaveLength(2);
});

test("docs/workflow-state.md: the commands set labels, list by them, update a run and read its log", async () => {
  const rollout = defineWorkflow("rollout", { version: 3 }, async (w) => {
    await w.step("create", () => {
      throw new TerminalError("no quota");
    });
  });
  const pool = defineWorkflow("pool", { version: 1 }, async (w) => {
    const schema = z.object({ size: z.int() });
    return await w.handle("resize", schema, ({ size }, { by }) => ({ size, by: by ?? "" }));
  });
  const backup = defineWorkflow("backup", { version: 1 }, async (w) => {
    w.log.info({ files: 3 }, "copy begins");
  });
  const { folder, konverge, type, inStatus } = await stage([rollout, pool, backup]);
  const spec = join(folder, "spec.json");
  await writeFile(spec, "{}");
  const here = (words: readonly string[]) =>
    words.map((word) => word.replace("@spec", `@${folder}/spec`));
  const [start = [], ...lists] = block("docs/workflow-state.md", "--label region=eu").lines;
  const id = (await type(here(start))).trim();
  await inStatus(id, "failed");
  const [waiting = [], failed = []] = lists;
  expect(await type(failed)).toContain(id);
  expect(await type(waiting)).not.toContain(id);
  const labels = waiting.filter((word) => word !== "--status" && word !== "waiting");
  const listed = JSON.parse(await type([...labels, "-o", "json"])) as unknown;
  const { items } = runListSchema.parse(Array.isArray(listed) ? { items: listed } : listed);
  expect(items).toMatchObject([{ labels: { region: "eu", tier: "gold" } }]);

  await konverge("run", "start", "pool", "--id", "p1");
  await inStatus("pool/default/p1", "waiting");
  const update = block("docs/workflow-state.md", "run update");
  const [command = []] = update.lines;
  expect(JSON.parse(await type([...command, "--by", "ann"]))).toEqual({ size: 3, by: "ann" });
  await inStatus("pool/default/p1", "done");
  await konverge("run", "start", "pool", "--id", "p2");
  await inStatus("pool/default/p2", "waiting");
  const answer = await curl(update.text.replace("Fp1", "Fp2"), folder);
  expect(JSON.parse(answer)).toMatchObject({ answer: { size: 3, by: "ann" } });

  await konverge("run", "start", "backup", "--id", "b1");
  await inStatus("backup/default/b1", "done");
  const logs = block("docs/workflow-state.md", "run logs");
  const [read = []] = logs.lines;
  expect(await type(read)).toMatch(/copy begins/);
  expect(await curl(logs.text, folder)).toContain("copy begins");
});

test("docs/workflow-testing.md: a run is exported to a file", async () => {
  const rollout = defineWorkflow("rollout", { version: 1 }, async (w) => {
    await w.step("create", () => "pool");
  });
  const { folder, konverge, type, inStatus } = await stage([rollout]);
  await konverge("run", "start", "rollout", "--id", "r1");
  await inStatus("rollout/default/r1", "done");
  const file = join(folder, "r1.json");
  for (const line of block("docs/workflow-testing.md", "run export").lines) {
    await type(line.map((word) => word.replace("test/histories/r1.json", file)));
  }
  const history = runHistorySchema.parse(JSON.parse(await readFile(file, "utf8")));
  expect(history).toMatchObject({ id: "r1", steps: [{ name: "create" }] });
});
