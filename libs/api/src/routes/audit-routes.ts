import { auditPageSchema, auditQuerySchema } from "@konverge/contracts";
import type { AuditLog } from "../audit/audit-log.ts";
import { covers } from "../access/caller.ts";
import { route, type Route } from "../http/route.ts";

export function auditRoutes(audit: AuditLog): Route[] {
  return [
    route({
      id: "listAudit",
      method: "get",
      path: "/v1/audit",
      summary: "List changes made through the API and the command line, newest first",
      role: "admin",
      query: auditQuerySchema,
      answer: auditPageSchema,
      handle: ({ query, caller: { scope } }) => audit.read(query, (entry) => covers(scope, entry)),
    }),
  ];
}
