import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Config } from "@konverge/worker";
import type { ApiObject } from "@konverge/core";
import type { NewObject } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { attemptRecordingSchema } from "@konverge/records";
import { expect, onTestFinished, test } from "vitest";
import { blockOf } from "../integration/docs/load-block.ts";
import { useWorkers } from "../integration/worker/worker-harness.ts";
import { until } from "../support/until.ts";
import { runCommand } from "./cli-runner.ts";
import { debugProgram } from "./replay-debugger.ts";

const workers = useWorkers("replay-docs.test.konverge.dev");
const BIN = fileURLToPath(new URL("../../apps/cli/bin/konverge.js", import.meta.url));
const namespace = "default";
const environment = () => ({
  KONVERGE_REDIS_URL: workers.queues.apiUrl,
  KONVERGE_PREFIX: workers.queues.prefix,
});

test("the page on replays does what it says", async () => {
  const folder = await mkdtemp(join(import.meta.dirname, ".replay-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const config = join(folder, "konverge.config.ts");
  const { text } = blockOf("docs/replay.md ts 1");
  await writeFile(config, text);
  const loaded = (await import(pathToFileURL(config).href)) as { readonly default: Config };
  await workers.start(loaded.default.controllers);
  const data = { text: "two words" };
  const metadata = { namespace, name: "notes" };
  await workers.client.create(ConfigMap, { metadata, data } as NewObject<ApiObject>);
  const recording = ["object", "recording", "sizes", "notes", "-n", namespace];
  await until(
    "an attempt is recorded",
    async () => (await runCommand(recording, environment())).code === 0,
  );
  const file = join(folder, "attempt.json");
  const saved = await runCommand([...recording, "--attempt", "1", "--save", file], environment());
  expect(saved).toMatchObject({ code: 0, stdout: "" });
  const printed = await runCommand([...recording, "-o", "json"], environment());
  expect(attemptRecordingSchema.parse(JSON.parse(printed.stdout)).controller).toBe("sizes");

  const replay = ["object", "replay", "sizes", "notes", "-n", namespace, "--attempt", "1"];
  const same = await runCommand([...replay, "--config", config], environment());
  expect(same).toMatchObject({ code: 0 });
  expect(same.stdout).toContain("= PATCH ConfigMap default/notes same");

  const changed = join(folder, "changed.config.ts");
  await writeFile(changed, text.replace('["text"]?.length', '["text"]?.split(" ").length'));
  const fromFile = ["object", "replay", "--file", file, "--config", changed];
  const different = await runCommand(fromFile, environment());
  expect(different.code).toBe(1);
  expect(different.stdout).toContain('data.size: "9" -> "2"');

  const reading = join(folder, "reading.config.ts");
  const read = 'await kube.find(ConfigMap, "settings");\n    const size =';
  await writeFile(reading, text.replace("const size =", read));
  const unknown = await runCommand([...fromFile.slice(0, -1), reading], environment());
  expect(unknown.code).toBe(4);
  expect(unknown.stdout).toContain("attempt 1 did not read it");

  const stopping = join(folder, "stopping.config.ts");
  await writeFile(stopping, text.replace("const size =", "debugger;\n    const size ="));
  const program = ["--conditions=@konverge/source", BIN, ...fromFile.slice(0, -1), stopping];
  const debugged = await debugProgram(program, "object.data.text");
  expect(debugged).toMatchObject({ stops: ["reconcile"], values: [data.text] });
  expect(debugged).toMatchObject({ code: 0, stdout: expect.stringContaining("same") });

  await writeFile(join(folder, "replay.test.ts"), blockOf("docs/replay.md ts 2").text);
  const args = ["--conditions=@konverge/source", "--test", "replay.test.ts"];
  await promisify(execFile)(process.execPath, args, { cwd: folder });
});

test("a file that is no recording is rejected", async () => {
  const args = ["object", "replay", "--file", import.meta.filename, "--config", "x.ts"];
  await expect(runCommand(args, environment())).rejects.toMatchObject({ code: "invalid_request" });
});
