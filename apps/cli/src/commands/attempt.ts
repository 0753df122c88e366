import { ATTEMPT_OUTCOMES, HINTS, type AttemptRecord, type HintCode } from "@konverge/records";
import type { Command } from "commander";
import { KEY_OPTIONS, withNameFilters } from "../ask/key-filters.ts";
import { parseTime } from "../ask/run-filter.ts";
import { attemptRows } from "../text/reconcile-text.ts";
import { groupHelp, runWithClient, withClient } from "../ask/run-with-client.ts";
import { pick, showPages, withPages, type PageFlags } from "../ask/show-pages.ts";

interface ListFlags extends PageFlags {
  readonly controller?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly outcome?: AttemptRecord["outcome"];
  readonly error?: string;
  readonly manager?: string;
  readonly hint?: HintCode;
  readonly since?: string;
  readonly until?: string;
}

const FILTERS = [
  "controller",
  "kind",
  "namespace",
  "name",
  "outcome",
  "error",
  "manager",
  "hint",
  "since",
  "until",
  "cursor",
] as const;

const HELP = `
  konverge attempt list --outcome terminal -n demo
  konverge attempt list --manager kubectl-edit -o jsonl --all`;

export function addAttemptCommand(program: Command): void {
  const attempt = program
    .command("attempt")
    .description("Search attempts across all objects")
    .addHelpText("afterAll", groupHelp(HELP));

  withNameFilters(
    withPages(withClient(attempt.command("list").description("List attempts, newest first")), "50"),
  )
    .option("--kind <kind>", "Kind, plural name, or plural.group")
    .option("--outcome <outcome>", `Outcome: ${ATTEMPT_OUTCOMES.join(", ")}`)
    .option("--error <code>", "Error code")
    .option("--manager <name>", "Field manager that caused a conflict")
    .option("--hint <code>", `Hint code: ${Object.keys(HINTS).join(", ")}`)
    .option("--since <time>", "Earliest end: a time, or an age such as 2h", parseTime)
    .option("--until <time>", "Ended before: a time, or an age such as 2h", parseTime)
    .action((flags: ListFlags) =>
      runWithClient(
        flags,
        ({ client, cluster }) => {
          const query = { cluster, limit: Number(flags.limit), ...pick(flags, FILTERS) };
          return showPages(flags, client.attempts.list(query), {
            nameOf: ({ id }) => id,
            table: attemptRows,
            empty: "no attempts found",
          });
        },
        KEY_OPTIONS,
      ),
    );
}
