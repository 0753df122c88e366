import { writeFile } from "node:fs/promises";
import { KonvergeError } from "@konverge/core";
import type { AttemptRecording } from "@konverge/records";
import type { Command } from "commander";
import { objectOf, withAttempt, withObject, type AttemptFlags } from "../ask/object-target.ts";
import { runWithClient, withClient } from "../ask/run-with-client.ts";
import { loadConfig } from "../config/load-config.ts";
import { readRecording } from "../config/read-recording.ts";
import { parseCount } from "../ask/parse-count.ts";
import { print, printNote, type Output } from "../text/output.ts";
import { replayText } from "../text/replay-text.ts";

interface RecordingFlags extends AttemptFlags {
  readonly save?: string;
}

interface ReplayFlags extends AttemptFlags {
  readonly config: string;
  readonly file?: string;
}

const ATTEMPT = "Attempt number (default: the last recorded attempt)";
const RECORDING_HELP = `
A recording has everything that the handler has read and written, without values of Secrets. It needs
record: { reads: true } in the controller. A token needs the role admin.`;
const REPLAY_HELP = `
Runs the handler of the configuration in this process, on what the attempt has read. It makes no calls.
Exit code 1: today's code does something else. Exit code 4: it needs something that the recording does not hold.`;

/** Adds `object recording`, which prints or saves the recording of an attempt. */
export function addObjectRecordingCommand(object: Command): void {
  withAttempt(
    withObject(
      object
        .command("recording")
        .description("Print or save everything that a recorded attempt has read and written"),
    ),
    ATTEMPT,
  )
    .option("--save <file>", "File to write instead of standard output")
    .addHelpText("after", RECORDING_HELP)
    .action((controller: string, name: string | undefined, flags: RecordingFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        const { namespace, attempt, save, output } = flags;
        const target = objectOf({ controller, name, namespace, cluster });
        const recording = await client.objects.recording(target, attempt);
        if (save === undefined) return printRecording(output, recording);
        await writeFile(save, `${JSON.stringify(recording, null, 2)}\n`);
        printNote(`attempt ${recording.epoch} of ${recording.key} saved to ${save}`);
      }),
    );
}

/** Adds `object replay`, which runs the handler of a recorded attempt again. */
export function addObjectReplayCommand(object: Command): void {
  withClient(
    object
      .command("replay")
      .description("Run the handler of a recorded attempt again, and compare its writes"),
  )
    .argument("[controller]", "Controller name or full key; omit with --file")
    .argument("[name]", "Object name")
    .option("-n, --namespace <name>", "Namespace; omit for cluster-scoped objects")
    .option("--attempt <number>", ATTEMPT, parseCount)
    .requiredOption("--config <file>", "Configuration file with today's code (required)")
    .option("--file <file>", "Saved recording, instead of one in Redis")
    .addHelpText("after", REPLAY_HELP)
    .action(
      async (controller: string | undefined, name: string | undefined, flags: ReplayFlags) => {
        const { file, namespace, attempt } = flags;
        if (file !== undefined) return await replay(await readRecording(file), flags);
        if (controller === undefined) {
          throw new KonvergeError("invalid_request", "<controller> or --file is required");
        }
        let recording: AttemptRecording | undefined;
        await runWithClient(flags, async ({ client, cluster }) => {
          const target = objectOf({ controller, name, namespace, cluster });
          recording = await client.objects.recording(target, attempt);
        });
        if (recording !== undefined) await replay(recording, flags);
      },
    );
}

function printRecording(output: Output, recording: AttemptRecording): void {
  print(output, {
    document: recording,
    names: [`${recording.key}#${recording.epoch}`],
    table: () => JSON.stringify(recording, null, 2),
  });
}

async function replay(
  recording: AttemptRecording,
  { config: path, output }: ReplayFlags,
): Promise<void> {
  const config = await loadConfig(path);
  const { replayWithConfig } = await import("../config/replay-with-config.ts");
  const report = await replayWithConfig(recording, config, STDERR);
  print(output, {
    document: report,
    items: report.writes,
    names: report.writes.map(({ kind, about }) => `${kind} ${about}`),
    table: () => replayText(report),
  });
  if (report.result !== "same") process.exitCode = report.result === "different" ? 1 : 4;
}

/** The log of the handler; data alone goes to stdout. */
const note = (_fields: object, message: string): void => printNote(`log: ${message}`);
const STDERR = {
  debug: () => undefined,
  info: note,
  warn: note,
  error: note,
  child: () => STDERR,
} as const;
