import { randomInt } from "node:crypto";
import { dnsLabelErrors, type JsonObject } from "@konverge/core";
import { invalid, notSupported, required, type FieldError } from "../errors/field-error.ts";
import { objectOf, objectsOf, stringsOf, textOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { memberOf } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

const TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const FIRST_NODE_PORT = 30_000;
const LAST_NODE_PORT = 32_767;

/** Stored as data with an address: nothing routes to it. */
export const service: ResourceKind = defineBuiltinKind({
  group: "",
  version: "v1",
  kind: "Service",
  resource: "services",
  shortNames: ["svc"],
  categories: ["all"],
  definition: "core.v1.Service",
  returnsDeleted: true,
  subresources: ["status"],
  createsOnUpdate: true,
  nameErrors: dnsLabelErrors,
  selectableFields: ["spec.clusterIP", "spec.type"],
  applyDefaults,
  prepareCreate: (object) => {
    object["status"] = { loadBalancer: {} };
    allocate(memberOf(object, "spec"), {});
  },
  prepareUpdate: (next, live, subresource) => {
    if (subresource === "") allocate(memberOf(next, "spec"), objectOf(live, "spec") ?? {});
  },
  validateCreate: validateService,
  validateUpdate: (next, live, subresource) =>
    subresource === "status" ? [] : [...validateService(next), ...validateAddress(next, live)],
});

function applyDefaults(object: JsonObject): void {
  const spec = memberOf(object, "spec");
  spec["sessionAffinity"] ??= "None";
  spec["type"] ??= "ClusterIP";
  if (spec["sessionAffinity"] === "ClientIP") {
    memberOf(memberOf(spec, "sessionAffinityConfig"), "clientIP")["timeoutSeconds"] ??= 10_800;
  } else delete spec["sessionAffinityConfig"];
  for (const port of objectsOf(spec, "ports")) {
    port["protocol"] ??= "TCP";
    const { targetPort } = port;
    if (targetPort === undefined || targetPort === 0 || targetPort === "") {
      port["targetPort"] = port["port"] ?? 0;
    }
  }
  if (hasNodePorts(spec)) spec["externalTrafficPolicy"] ??= "Cluster";
  if (spec["type"] !== "ExternalName") spec["internalTrafficPolicy"] ??= "Cluster";
  if (spec["type"] === "LoadBalancer") spec["allocateLoadBalancerNodePorts"] ??= true;
  memberOf(memberOf(object, "status"), "loadBalancer");
}

const hasNodePorts = (spec: JsonObject): boolean =>
  spec["type"] === "NodePort" || spec["type"] === "LoadBalancer";

/** Allocates what a Service omits: an address of the cluster, and node ports. An update keeps them. */
function allocate(spec: JsonObject, live: JsonObject): void {
  if (spec["type"] === "ExternalName") return;
  const address = textOf(spec, "clusterIP") || textOf(live, "clusterIP") || pickAddress();
  spec["clusterIP"] = address;
  spec["clusterIPs"] ??= live["clusterIPs"] ?? [address];
  spec["ipFamilies"] ??= live["ipFamilies"] ?? ["IPv4"];
  spec["ipFamilyPolicy"] ??= live["ipFamilyPolicy"] ?? "SingleStack";
  if (!hasNodePorts(spec) || spec["allocateLoadBalancerNodePorts"] === false) return;
  const before = objectsOf(live, "ports");
  for (const port of objectsOf(spec, "ports")) {
    const same = before.find((one) => one["port"] === port["port"]);
    port["nodePort"] ??= same?.["nodePort"] ?? randomInt(FIRST_NODE_PORT, LAST_NODE_PORT + 1);
  }
}

const pickAddress = (): string => `10.${randomInt(96, 112)}.${randomInt(256)}.${randomInt(1, 255)}`;

function validateService(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  const type = textOf(spec, "type");
  const errors: FieldError[] = [];
  if (!TYPES.includes(type)) errors.push(notSupported("spec.type", type, TYPES));
  const ports = objectsOf(spec, "ports");
  const isHeadless = textOf(spec, "clusterIP") === "None";
  if (ports.length === 0 && !isHeadless && type !== "ExternalName") {
    errors.push(required("spec.ports"));
  }
  if (type === "ExternalName" && textOf(spec, "externalName") === "") {
    errors.push(required("spec.externalName"));
  }
  for (const [index, port] of ports.entries()) {
    const place = `spec.ports[${index}]`;
    if (ports.length > 1 && textOf(port, "name") === "") errors.push(required(`${place}.name`));
    const number = Number(port["port"]);
    if (!(number >= 1 && number <= 65_535)) {
      errors.push(invalid(`${place}.port`, number, "must be between 1 and 65535, inclusive"));
    }
  }
  return errors;
}

function validateAddress(next: JsonObject, live: JsonObject): FieldError[] {
  const [spec, before] = [objectOf(next, "spec") ?? {}, objectOf(live, "spec") ?? {}];
  if (spec["type"] === "ExternalName" || before["type"] === "ExternalName") return [];
  if (spec["clusterIP"] === before["clusterIP"]) return [];
  return [invalid("spec.clusterIPs[0]", stringsOf(spec, "clusterIPs"), "may not change once set")];
}
