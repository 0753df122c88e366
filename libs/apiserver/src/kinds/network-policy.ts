import { objectsOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { memberOf } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

export const networkPolicy: ResourceKind = defineBuiltinKind({
  group: "networking.k8s.io",
  version: "v1",
  kind: "NetworkPolicy",
  resource: "networkpolicies",
  shortNames: ["netpol"],
  definition: "networking.v1.NetworkPolicy",
  generationOf: (object) => object["spec"],
  applyDefaults: (object) => {
    const spec = memberOf(object, "spec");
    const egress = objectsOf(spec, "egress");
    for (const rule of [...objectsOf(spec, "ingress"), ...egress]) {
      for (const port of objectsOf(rule, "ports")) port["protocol"] ??= "TCP";
    }
    spec["policyTypes"] ??= egress.length === 0 ? ["Ingress"] : ["Ingress", "Egress"];
  },
});
