import { defineBuiltinKind } from "./builtin-kind.ts";
import type { ResourceKind } from "./resource-kind.ts";

/** Kept as data: nobody logs in with one. */
export const serviceAccount: ResourceKind = defineBuiltinKind({
  group: "",
  version: "v1",
  kind: "ServiceAccount",
  resource: "serviceaccounts",
  shortNames: ["sa"],
  definition: "core.v1.ServiceAccount",
});
