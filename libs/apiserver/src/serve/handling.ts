import type { ServerState } from "../verbs/call.ts";
import type { AuditLog } from "./audit-log.ts";
import type { FaultRules } from "./fault-rules.ts";
import type { FlowIds } from "./http-answer.ts";
import type { OpenWatches } from "./open-watches.ts";

/** The parts of a server that handle requests. */
export interface Handling {
  readonly state: ServerState;
  readonly faults: FaultRules;
  readonly watches: OpenWatches;
  readonly auditLog: AuditLog | undefined;
  readonly flowIds: FlowIds;
  readonly version: string;
}
