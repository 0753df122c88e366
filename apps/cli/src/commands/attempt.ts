import { ATTEMPT_OUTCOMES, HINTS, type AttemptRecord, type HintCode } from "@konverge/records";
import type { Command } from "commander";
import { KEY_OPTIONS, withNameFilters } from "../ask/key-filters.ts";
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
  "cursor",
] as const;

const HELP = `
  konverge attempt list --outcome terminal -n demo
  konverge attempt list --manager kubectl-edit -o jsonl --all`;

export function addAttemptCommand(program: Command): void {
  const attempt = program
    .command("attempt")
    .description("what handlers did, over all objects")
    .addHelpText("after", groupHelp(HELP));

  withNameFilters(
    withPages(withClient(attempt.command("list").description("attempts, newest first")), "50"),
  )
    .option("--kind <kind>", "a kind, a plural, or plural.group")
    .option("--outcome <outcome>", `one of ${ATTEMPT_OUTCOMES.join(", ")}`)
    .option("--error <code>", "code of the error")
    .option("--manager <name>", "a field manager that won against the attempt")
    .option("--hint <code>", `one of ${Object.keys(HINTS).join(", ")}`)
    .action((flags: ListFlags) =>
      runWithClient(
        flags,
        ({ client, cluster }) => {
          const query = { cluster, limit: Number(flags.limit), ...pick(flags, FILTERS) };
          return showPages(flags, client.attempts.list(query), {
            nameOf: ({ id }) => id,
            table: attemptRows,
            empty: "no such attempt",
          });
        },
        KEY_OPTIONS,
      ),
    );
}
