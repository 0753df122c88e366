import type { RunDetail } from "@konverge/contracts";
import type { Command } from "commander";
import { print, say } from "../text/output.ts";
import { runWithClient, withServer, type ClientFlags } from "../ask/run-with-client.ts";
import { statusLine, stepLine } from "../text/run-text.ts";
import { endAs, endLate, RUN_ID, timeoutOf } from "../ask/show-run.ts";
import { timeoutOption } from "../ask/timeout-option.ts";

interface WatchFlags extends ClientFlags {
  readonly timeout: number;
}

/** What a run does, as it does it: a line for each step that is recorded, and for each change of its status. */
export function addRunWatchCommand(group: Command): void {
  withServer(
    group
      .command("watch")
      .description("steps of a run as they end, until it has ended; ends as get --wait does")
      .argument("<run>", RUN_ID),
  )
    .addOption(timeoutOption())
    .action((id: string, flags: WatchFlags) =>
      runWithClient(flags, async ({ client }) => {
        if (process.stderr.isTTY) say(`watching ${id}; Ctrl-C ends that, and the run goes on`);
        let shown = 0;
        let status = "";
        try {
          for await (const run of client.runs.watch(id, { timeoutMs: flags.timeout })) {
            // Fewer: it has begun to go on from what failed.
            for (const step of run.steps.slice(Math.min(shown, run.steps.length))) {
              const line = () => stepLine(step);
              show(flags, { document: { type: "step", data: step }, name: step.name, line });
            }
            shown = run.steps.length;
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

/** Without what was told before. */
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
  // Documents follow each other, so each yaml one is begun.
  if (output === "yaml") process.stdout.write("---\n");
  print(output, { document, names: [name], table: line });
}
