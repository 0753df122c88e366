import type { Approval } from "@konverge/contracts";
import type { Command } from "commander";
import { objectOf, withObject, type ObjectFlags } from "../ask/object-target.ts";
import {
  actionOf,
  groupHelp,
  runWithClient,
  withClient,
  withIdempotencyKey,
  type ActionFlags,
  type ClientFlags,
} from "../ask/run-with-client.ts";
import { pick } from "../ask/show-pages.ts";
import { approvalRows, approvalText } from "../text/approval-text.ts";
import { print } from "../text/output.ts";

interface ListFlags extends ClientFlags {
  readonly controller?: string;
  readonly namespace?: string;
}

interface DecisionFlags extends ActionFlags, ObjectFlags {
  readonly plan: string;
}

const HELP = `
  konverge approval list -n demo
  konverge approval show node-pool blue -n demo
  konverge approval approve node-pool blue -n demo --plan 3f2a91c04be7 --reason "checked"
  konverge approval reject node-pool blue -n demo --plan 3f2a91c04be7 --reason "keep the pool"

A decision is about exactly one plan. If the objects have changed since, the command exits with 4, and the key is
planned again. Users who requested the change cannot approve it.`;

const NAMES = { options: { "/hash": "--plan" } };

export function addApprovalCommand(program: Command): void {
  const approval = program
    .command("approval")
    .description("List, approve and reject plans that wait for users")
    .addHelpText("afterAll", groupHelp(HELP));
  addList(approval);
  withObject(
    approval
      .command("show")
      .description("Show a plan that waits for an approval, with its changes"),
  ).action((controller: string, name: string | undefined, flags: ObjectFlags) =>
    runWithClient(flags, async ({ client, cluster }) => {
      const { namespace } = flags;
      const found = await client.approvals.get(objectOf({ controller, name, namespace, cluster }));
      print(flags.output, {
        document: found,
        names: [found.key],
        table: () => approvalText(found),
      });
    }),
  );
  addDecision(approval, "approve", "Approve a plan, which is then applied");
  addDecision(approval, "reject", "Reject a plan");
}

function addList(approval: Command): void {
  withClient(approval.command("list").description("List the plans that wait for an approval"))
    .option("--controller <name>", "Controller name")
    .option("-n, --namespace <name>", "Namespace; _ for cluster-scoped objects")
    .action((flags: ListFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        const query = { cluster, ...pick(flags, ["controller", "namespace"]) };
        const answer = await client.approvals.list(query);
        print(flags.output, {
          document: answer,
          items: answer.items,
          names: answer.items.map(({ key }) => key),
          table: () => approvalRows(answer.items),
          empty: "no plan waits for an approval",
        });
      }),
    );
}

function addDecision(approval: Command, verb: "approve" | "reject", description: string): void {
  withIdempotencyKey(withObject(approval.command(verb).description(description)))
    .requiredOption("--plan <hash>", "Hash of the plan, or its first 12 characters (required)")
    .requiredOption("--reason <text>", "Reason, stored and visible to all users (required)")
    .option("--by <name>", "Author (default: system user)")
    .action((controller: string, name: string | undefined, flags: DecisionFlags) =>
      runWithClient(
        flags,
        async ({ client, cluster }) => {
          const { namespace, plan: hash } = flags;
          const target = objectOf({ controller, name, namespace, cluster });
          const { action, write } = actionOf(flags);
          const answer = await client.approvals[verb](target, { hash, ...action }, write);
          print(flags.output, {
            document: answer,
            names: [answer.key],
            table: () => decisionText(answer),
          });
        },
        NAMES,
      ),
    );
}

function decisionText({ state, approvals, by, key }: Approval): string {
  const missing = by - approvals.length;
  return state === "awaiting" ? `${key}: ${missing} more approvals needed` : `${key}: ${state}`;
}
