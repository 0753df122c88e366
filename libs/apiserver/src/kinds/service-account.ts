import { defineBuiltinKind } from "./builtin-kind.ts";
import type { ResourceKind } from "./resource-kind.ts";

/** Stored as data only; it cannot be used to authenticate. */
export const serviceAccount: ResourceKind = defineBuiltinKind({
  group: "",
  version: "v1",
  kind: "ServiceAccount",
  resource: "serviceaccounts",
  shortNames: ["sa"],
  definition: "core.v1.ServiceAccount",
  returnsDeleted: true,
});
