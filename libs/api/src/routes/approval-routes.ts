import {
  approvalDecisionSchema,
  approvalDetailSchema,
  approvalListSchema,
  approvalQuerySchema,
  approvalSchema,
} from "@konverge/contracts";
import { demand } from "../access/caller.ts";
import { actionRoute, readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { approvePlan, listApprovals, readApproval, rejectPlan } from "../views/approvals.ts";
import { findKey } from "../views/object-view.ts";

const PATH = "/v1/approvals/{cluster}/{controller}/{namespace}/{name}";

/** Plans that users must approve before an attempt makes their changes. `_` is the namespace of cluster-scoped objects. */
export function approvalRoutes(access: QueueAccess): Route[] {
  return [
    readRoute({
      id: "listApprovals",
      path: "/v1/approvals",
      summary: "List the plans that wait for an approval, oldest first",
      query: approvalQuerySchema,
      answer: approvalListSchema,
      handle: ({ query, caller }) => listApprovals(access, query, caller),
    }),
    readRoute({
      id: "getApproval",
      path: PATH,
      summary: "Get the plan of an object that waits for an approval",
      answer: approvalDetailSchema,
      problems: ["unknown_controller", "not_found"],
      async handle({ params, caller }) {
        demand(caller, params);
        const { key } = await findKey(access, params);
        return await readApproval(access, key);
      },
    }),
    decisionRoute("approvePlan", {
      path: `${PATH}/approve`,
      summary: "Approve the plan of an object, which is then applied",
      decide: approvePlan,
    }),
    decisionRoute("rejectPlan", {
      path: `${PATH}/reject`,
      summary: "Reject the plan of an object",
      decide: rejectPlan,
    }),
  ];

  function decisionRoute(
    id: string,
    decision: {
      readonly path: `${typeof PATH}/${"approve" | "reject"}`;
      readonly summary: string;
      readonly decide: typeof approvePlan;
    },
  ): Route {
    const { path, summary, decide } = decision;
    return actionRoute({
      id,
      path,
      summary,
      body: approvalDecisionSchema,
      answer: approvalSchema,
      problems: ["unknown_controller", "approval_stale"],
      async handle({ params, body, caller, audit }) {
        demand(caller, params);
        const { key } = await findKey(access, params);
        return await decide(access, key, body, { caller, audit });
      },
    });
  }
}
