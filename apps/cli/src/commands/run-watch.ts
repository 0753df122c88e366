import type { RunDetail } from "@konverge/contracts";
import type { Command } from "commander";
import { print, printNote } from "../text/output.ts";
import { runWithClient, withServer, type ClientFlags } from "../ask/run-with-client.ts";
import { progressLine, statusLine, stepLine } from "../text/run-text.ts";
import { endAs, endLate, RUN_ID, timeoutOf } from "../ask/show-run.ts";
import { timeoutOption } from "../ask/timeout-option.ts";

interface WatchFlags extends ClientFlags {
  readonly timeout: number;
}

/** Adds `run watch`, which prints a line for each recorded step, heartbeat and change of the status. */
export function addRunWatchCommand(group: Command): void {
  withServer(
    group
      .command("watch")
      .description("Follow the steps of a run until it ends")
      .argument("<run>", RUN_ID),
  )
    .addOption(timeoutOption())
    .action((id: string, flags: WatchFlags) =>
      runWithClient(flags, async ({ client }) => {
        if (process.stderr.isTTY)
          printNote(`watching ${id}; Ctrl-C stops watching, the run continues`);
        let shown = 0;
        let status = "";
        let round: number | undefined;
        const beats = new Map<string, string>();
        try {
          for await (const run of client.runs.watch(id, { timeoutMs: flags.timeout })) {
            if (run.round !== round) shown = 0;
            round = run.round;
            // The list is shorter after a retry from the failed step.
            for (const step of run.steps.slice(Math.min(shown, run.steps.length))) {
              const line = () => stepLine(step);
              show(flags, { document: { type: "step", data: step }, name: step.name, line });
            }
            shown = run.steps.length;
            for (const { step, heartbeat } of run.progress ?? []) {
              if (heartbeat?.progress === undefined || beats.get(step) === heartbeat.at) continue;
              beats.set(step, heartbeat.at);
              const line = () => progressLine(step, heartbeat);
              const document = { type: "progress", data: { step, ...heartbeat } };
              show(flags, { document, name: step, line });
            }
            const now = statusLine(run);
            if (now === status) continue;
            status = now;
            show(flags, { document: statusOf(run), name: run.status, line: () => now });
            if (run.endedAt !== undefined) endAs(run);
          }
        } catch (error) {
          endLate(timeoutOf(error));
        }
      }),
    );
}

/** Omits what earlier documents contain. */
function statusOf(run: RunDetail): object {
  const { steps: _steps, input: _input, ...data } = run;
  return { type: "run", data };
}

function show(
  { output }: ClientFlags,
  {
    document,
    name,
    line,
  }: { readonly document: object; readonly name: string; readonly line: () => string },
): void {
  // The stream has several YAML documents.
  if (output === "yaml") process.stdout.write("---\n");
  print(output, { document, names: [name], table: line });
}
