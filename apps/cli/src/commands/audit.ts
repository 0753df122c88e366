import type { AuditEntry, AuditQuery } from "@konverge/contracts";
import { AUDIT_ACTIONS } from "@konverge/core";
import type { Command } from "commander";
import { addExportCommand, addVerifyCommand } from "./audit-verify.ts";
import { age } from "../text/age.ts";
import { columns } from "../text/columns.ts";
import { KEY_OPTIONS } from "../ask/key-filters.ts";
import { groupHelp, runWithClient, withClient } from "../ask/run-with-client.ts";
import { pick, showPages, withPages, type PageFlags } from "../ask/show-pages.ts";

interface ListFlags extends PageFlags {
  readonly controller?: string;
  readonly namespace?: string;
  readonly by?: string;
  readonly action?: AuditQuery["action"];
}

const HELP = `
  konverge audit list --by ci --all -o jsonl
  konverge audit list --action pause`;

export function addAuditCommand(program: Command): void {
  const audit = program
    .command("audit")
    .description("Show and verify changes made through the HTTP API and CLI")
    .addHelpText("afterAll", groupHelp(HELP));

  withPages(withClient(audit.command("list").description("List changes, newest first")))
    .option("--controller <name>", "Controller name (default: all)")
    .option("-n, --namespace <name>", "Namespace; _ for cluster-scoped objects (default: all)")
    .option("--by <name>", "Author: a token name or a --by value")
    .option("--action <action>", `Action: ${AUDIT_ACTIONS.join(", ")}`)
    .action((flags: ListFlags) =>
      runWithClient(
        flags,
        ({ client }) => {
          const names = ["cluster", "controller", "namespace", "by", "action", "cursor"] as const;
          const query = { limit: Number(flags.limit), ...pick(flags, names) };
          return showPages(flags, client.audit.list(query), {
            nameOf: ({ id }) => id,
            table: auditRows,
            empty: "no changes recorded",
          });
        },
        KEY_OPTIONS,
      ),
    );
  addVerifyCommand(audit);
  addExportCommand(audit);
}

function auditRows(items: readonly AuditEntry[]): string {
  const rows = items.map(
    ({ at, by, via = "-", action, controller, namespace, name, filter, ...rest }) => {
      const { reason = "-", count } = rest;
      const place = [controller, namespace, name, filter].filter((part) => part !== undefined);
      const many = count === undefined ? "" : ` (${count})`;
      return [age(at), by, via, action, `${place.join(" ") || "-"}${many}`, reason];
    },
  );
  return columns([["AGE", "BY", "VIA", "ACTION", "WHAT", "REASON"], ...rows]);
}
