import { shortName } from "@konverge/core";
import type { Approval, ApprovalDetail } from "@konverge/contracts";
import { age } from "./age.ts";
import { columns, fields } from "./columns.ts";
import { plain } from "./plain-text.ts";
import { planText, summaryText } from "./plan-text.ts";

/** The start of a hash that identifies a plan for a user. */
const SHORT = 12;

export function approvalRows(approvals: readonly Approval[]): string {
  return columns([
    ["OBJECT", "STATE", "CHANGES", "APPROVALS", "AGE", "PLAN"],
    ...approvals.map((approval) => [
      `${approval.controller} ${shortName(approval)}`,
      approval.state,
      summaryText(approval),
      `${approval.approvals.length}/${approval.by}`,
      age(approval.since),
      approval.hash.slice(0, SHORT),
    ]),
  ]);
}

export function approvalText({ plan, ...approval }: ApprovalDetail): string {
  const { state, by, role, approvals, requesters, rejected, since, replaced, hash } = approval;
  const rows: [string, string][] = [
    ["object", `${approval.controller} ${shortName(approval)}`],
    ["state", state],
    ["needs", `${by} with the role ${role}`],
    ["approved by", approvals.map((each) => each.by).join(", ") || "none"],
    ["requested by", requesters.join(", ") || "changes of objects"],
    ["waiting", `${since} (${age(since)}), ${replaced} earlier plans replaced`],
    ["plan", hash.slice(0, SHORT)],
  ];
  if (rejected !== undefined) rows.push(["rejected by", `${rejected.by}: ${rejected.reason}`]);
  const text = plain(fields(rows));
  return plan === undefined ? text : `${text}\n\n${planText(plan)}`;
}
