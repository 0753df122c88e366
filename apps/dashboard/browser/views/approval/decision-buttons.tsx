import { shortName } from "@konverge/core";
import type { Approval } from "@konverge/contracts";
import { call, CallError } from "../../api/call.ts";
import { ActionButton, type OperatorAction } from "../../parts/action-dialog.tsx";
import { CliLine, quote } from "../../parts/cli-line.tsx";
import { callerName, isAdmin, mayOperate } from "../../state/session.ts";
import { summaryText } from "../plan/plan-changes.tsx";

export interface DecisionButtonsProps {
  /** The plan that the user sees. */
  readonly approval: Approval;
  readonly path: string;
  /** Called after a decision. `stale`: the plan had been replaced or applied, so the decision was not stored. */
  readonly onDone: (stale?: string) => void;
}

/** Approves or rejects exactly the shown plan. The server checks permissions. */
export function DecisionButtons({ approval, path, onDone }: DecisionButtonsProps) {
  const { state, hash, role, requesters, controller, namespace, name } = approval;
  if (!mayOperate || state === "applying") return null;
  if (role === "admin" && !isAdmin) return <p class="dim">Only admins can decide.</p>;
  const isOwn = callerName !== undefined && requesters.includes(callerName);
  const decide = async (verb: "approve" | "reject", action: OperatorAction) => {
    try {
      const body = { hash, ...action };
      const next = await call<Approval>(`${path}/${verb}`, { method: "POST", body });
      onDone();
      return messageOf(next);
    } catch (error) {
      if (!(error instanceof CallError) || error.trouble.code !== "approval_stale") throw error;
      onDone(error.message);
      return "Not stored: the plan is stale";
    }
  };
  const where = namespace === undefined ? "" : ` -n ${quote(namespace)}`;
  const line = (verb: string) => (
    <CliLine
      line={`konverge approval ${verb} ${quote(controller)} ${quote(name)}${where} --plan ${hash.slice(0, 12)} --reason WHY`}
    />
  );
  return (
    <div class="buttons">
      {state !== "awaiting" ? null : isOwn ? (
        <p class="dim">You requested this change; another user must approve it.</p>
      ) : (
        <ActionButton
          label="Approve"
          primary
          explains={
            <>
              Approves exactly this plan of {shortName(approval)}: {summaryText(approval.summary)}.{" "}
              {line("approve")}
            </>
          }
          run={(action) => decide("approve", action)}
        />
      )}
      {state === "rejected" ? null : (
        <ActionButton
          label="Reject"
          danger
          explains={
            <>
              The changes of {shortName(approval)} are not made. {line("reject")}
            </>
          }
          run={(action) => decide("reject", action)}
        />
      )}
    </div>
  );
}

function messageOf({ state, by, approvals }: Approval): string {
  if (state === "awaiting") return `Approved; ${by - approvals.length} more needed`;
  return state === "rejected" ? "Rejected" : "Approved; the plan will be applied";
}
