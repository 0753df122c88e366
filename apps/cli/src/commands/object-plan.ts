import type { ObjectPlan } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { objectOf, withObject, type ObjectFlags } from "../ask/object-target.ts";
import { runWithClient } from "../ask/run-with-client.ts";
import { timeoutOption } from "../ask/timeout-option.ts";
import { print } from "../text/output.ts";
import { planText } from "../text/plan-text.ts";

interface PlanFlags extends ObjectFlags {
  readonly timeout: number;
}

const HELP = `
A worker runs the handler once with all writes as dry runs, so nothing is stored in the cluster.
Exit code 1: the plan is incomplete, because the handler failed or made a call that cannot be planned.`;

export function addObjectPlanCommand(object: Command): void {
  withObject(
    object
      .command("plan")
      .description("Show the changes that the next attempt of an object would make"),
  )
    .addOption(timeoutOption())
    .addHelpText("after", HELP)
    .action((controller: string, name: string | undefined, flags: PlanFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        const { namespace, timeout: timeoutMs } = flags;
        const target = objectOf({ controller, name, namespace, cluster });
        const { plan, message = "" }: ObjectPlan = await client.objects.plan(target, { timeoutMs });
        if (plan === undefined) throw new KonvergeError("deferred", `no plan: ${message}`);
        print(flags.output, {
          document: plan,
          items: plan.changes,
          names: plan.changes.map((change) => `${change.resource}/${change.name}`),
          table: () => planText(plan),
        });
        if (!plan.complete) process.exitCode = 1;
      }),
    );
}
