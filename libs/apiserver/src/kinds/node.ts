import { cloneJson } from "@konverge/core";
import { objectOf, objectsOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { memberOf } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

const NOT_READY = "node.kubernetes.io/not-ready";

export const node: ResourceKind = defineBuiltinKind({
  group: "",
  version: "v1",
  kind: "Node",
  resource: "nodes",
  shortNames: ["no"],
  namespaced: false,
  definition: "core.v1.Node",
  subresources: ["status"],
  selectableFields: ["spec.unschedulable"],
  // The only status that a client may create.
  createsStatus: true,
  prepareCreate: (object) => {
    const spec = memberOf(object, "spec");
    const taints = objectsOf(spec, "taints");
    // Added by an admission plugin, for the time until a controller has seen the Node.
    if (taints.some(({ key, effect }) => key === NOT_READY && effect === "NoSchedule")) return;
    spec["taints"] = [...taints, { key: NOT_READY, effect: "NoSchedule" }];
  },
  applyDefaults: (object) => {
    const status = memberOf(object, "status");
    const capacity = objectOf(status, "capacity");
    if (capacity !== undefined) status["allocatable"] ??= cloneJson(capacity);
  },
});
