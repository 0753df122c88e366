import type { Approval } from "@konverge/contracts";
import { Status, type Tone } from "../../parts/status.tsx";

const LOOKS: Readonly<Record<Approval["state"], readonly [tone: Tone, text: string]>> = {
  awaiting: ["wait", "awaiting approval"],
  approved: ["run", "approved"],
  rejected: ["bad", "rejected"],
  applying: ["run", "being applied"],
};

/** The state of a plan that waits for users. */
export function ApprovalState({ of }: { readonly of: Approval["state"] }) {
  const [tone, text] = LOOKS[of];
  return <Status tone={tone}>{text}</Status>;
}

/** Describes the required approvals, for example `1 of 2 from operators`. */
export function neededText({ approvals, by, role }: Approval): string {
  return `${approvals.length} of ${by} by ${role === "admin" ? "admins" : "operators"}`;
}
