import { duration } from "@konverge/contracts";
import { RUN_STATUSES, type RunStatus } from "@konverge/core";
import { InvalidArgumentError, Option, type Command } from "commander";

export interface RunFilterFlags {
  readonly status?: RunStatus;
  readonly key?: string;
  readonly by?: string | undefined;
  readonly parent?: string;
  readonly search?: string;
  readonly label?: string;
  readonly since?: string;
  readonly until?: string;
  readonly codeVersion?: string;
  readonly error?: string;
}

/** Adds the filters of runs. `author`: the name of an option. */
export function withRunFilter(command: Command, author = "--by"): Command {
  return command
    .addOption(new Option("--status <status>", "Run status").choices(RUN_STATUSES))
    .option("--key <key>", "Run key")
    .option(`${author} <name>`, "Author of the run")
    .option("--parent <run>", "Parent run, or none for runs without a parent")
    .option("--search <part>", "Substring of the ID, key or author")
    .option(
      "--label <name=value>",
      "Label of the run; repeat it or separate labels by commas",
      (more: string, before: string | undefined) => (before ? `${before},${more}` : more),
    )
    .option("--since <time>", "Earliest start: a time, or an age such as 2h", parseTime)
    .option("--until <time>", "Started before: a time, or an age such as 2h", parseTime)
    .option("--code-version <version>", "Version of the workflow code")
    .option("--error <code>", "Code of the error");
}

/** Returns the query of the filters. */
export function runFilterOf({ codeVersion, ...flags }: RunFilterFlags): object {
  const { status, key, by, parent, search, label, since, until, error } = flags;
  const version = codeVersion === undefined ? undefined : Number(codeVersion);
  const query = { status, key, by, parent, search, label, since, until, error, version };
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
}

/** Parses a time, or an age such as `2h`, into a time in ISO 8601. */
export function parseTime(text: string): string {
  const age = duration.safeParse(text);
  const ms = age.success ? Date.now() - age.data : Date.parse(text);
  if (!Number.isNaN(ms)) return new Date(ms).toISOString();
  throw new InvalidArgumentError("Use a time such as 2026-11-22T08:00:00Z, or an age such as 2h.");
}
