import { defined, sleepMs } from "@konverge/core";
import type { ObjectLog } from "@konverge/contracts";
import type { Command } from "commander";
import {
  objectOf,
  withAttempt,
  withObject,
  type AttemptFlags,
  type ObjectFlags,
} from "../ask/object-target.ts";
import { runWithClient } from "../ask/run-with-client.ts";
import { attemptLogLine, attemptLogRows } from "../text/attempt-text.ts";
import { print, printNote } from "../text/output.ts";

interface LogFlags extends AttemptFlags {
  readonly follow?: boolean;
}
type Line = ObjectLog["items"][number];

const EVERY_MS = 1_000;

/** Adds `object logs`, which prints the last log lines of an object's attempts. */
export function addObjectLogsCommand(object: Command): void {
  withAttempt(
    withObject(object.command("logs").description("Print the log of an object's attempts")),
    "Attempt number (default: all kept attempts)",
  )
    .option("-f, --follow", "Print new lines as they are stored")
    .action((controller: string, name: string | undefined, flags: LogFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        const { namespace, attempt, follow = false } = flags;
        const target = objectOf({ controller, name, namespace, cluster });
        const read = async () => (await client.objects.logs(target, defined({ attempt }))).items;
        if (follow) return await followLines(flags, read);
        const items = await read();
        print(flags.output, {
          document: { items },
          items,
          names: items.map(({ message }) => message),
          table: () => attemptLogRows(items),
          empty: "no log lines found",
        });
      }),
    );
}

/** Prints each line once, until the process is stopped. */
async function followLines(
  { output }: ObjectFlags,
  read: () => Promise<readonly Line[]>,
): Promise<never> {
  if (process.stderr.isTTY) printNote("following; press Ctrl-C to stop");
  let shown: ReadonlySet<string> = new Set();
  for (;;) {
    const lines = withIds(await read());
    for (const [id, line] of lines) {
      if (shown.has(id)) continue;
      // The stream has several YAML documents.
      if (output === "yaml") process.stdout.write("---\n");
      print(output, { document: line, names: [line.message], table: () => attemptLogLine(line) });
    }
    shown = new Set(lines.keys());
    await sleepMs(EVERY_MS);
  }
}

/** Equal lines are counted, because they can have the same time. */
function withIds(lines: readonly Line[]): ReadonlyMap<string, Line> {
  const counts = new Map<string, number>();
  return new Map(
    lines.map((line) => {
      const text = JSON.stringify(line);
      const count = (counts.get(text) ?? 0) + 1;
      counts.set(text, count);
      return [`${count} ${text}`, line];
    }),
  );
}
