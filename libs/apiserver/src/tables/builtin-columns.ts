import type { JsonObject } from "@konverge/core";
import {
  isTerminating,
  metadataOf,
  objectOf,
  objectsOf,
  stringsOf,
  textOf,
} from "../objects/metadata.ts";
import {
  AGE,
  CREATED_AT,
  formatLabels,
  formatSelector,
  integer,
  NAME,
  numberIn,
  orNone,
  since,
  specOf,
  statusOf,
  text,
  wide,
  type Column,
} from "./column.ts";
import { podColumns } from "./pod-columns.ts";
import {
  autoscalerColumns,
  cronJobColumns,
  daemonSetColumns,
  deploymentColumns,
  jobColumns,
  replicaSetColumns,
  statefulSetColumns,
} from "./workload-columns.ts";

const inSpec = (member: string) => (object: JsonObject) => textOf(specOf(object), member);
const inStatus = (member: string) => (object: JsonObject) => textOf(statusOf(object), member);
const phase = text("Status", (object) =>
  isTerminating(object) ? "Terminating" : textOf(statusOf(object), "phase"),
);
const dataColumn = text("Data", (object) =>
  ["data", "binaryData"].reduce(
    (sum, member) => sum + Object.keys(objectOf(object, member) ?? {}).length,
    0,
  ),
);
const bindingColumns: readonly Column[] = [
  NAME,
  text("Role", (object) => {
    const role = objectOf(object, "roleRef") ?? {};
    return `${textOf(role, "kind")}/${textOf(role, "name")}`;
  }),
  AGE,
  wide("Users", (object) => subjectsOf(object, "User").join(", ")),
  wide("Groups", (object) => subjectsOf(object, "Group").join(", ")),
  wide("ServiceAccounts", (object) => subjectsOf(object, "ServiceAccount").join(", ")),
];

function subjectsOf(object: JsonObject, kind: string): string[] {
  return objectsOf(object, "subjects")
    .filter((subject) => subject["kind"] === kind)
    .map((subject) => {
      const namespace = textOf(subject, "namespace");
      return namespace === "" ? textOf(subject, "name") : `${namespace}/${textOf(subject, "name")}`;
    });
}

const serviceColumns: readonly Column[] = [
  NAME,
  text("Type", inSpec("type")),
  text("Cluster-IP", (object) => orNone(textOf(specOf(object), "clusterIP"))),
  text("External-IP", externalAddress),
  text("Port(s)", (object) =>
    orNone(
      objectsOf(specOf(object), "ports")
        .map(({ port, nodePort, protocol }) => {
          const outside = nodePort === undefined ? "" : `:${Number(nodePort)}`;
          return `${Number(port)}${outside}/${String(protocol)}`;
        })
        .join(","),
    ),
  ),
  AGE,
  wide("Selector", (object) => formatLabels(objectOf(specOf(object), "selector"))),
];

function externalAddress(object: JsonObject): string {
  const spec = specOf(object);
  const external = stringsOf(spec, "externalIPs");
  if (spec["type"] === "ExternalName") return textOf(spec, "externalName");
  if (spec["type"] !== "LoadBalancer") return orNone(external.join(","));
  const all = [...balancerAddresses(object), ...external];
  return all.length === 0 ? "<pending>" : all.join(",");
}

const balancerAddresses = (object: JsonObject): string[] =>
  objectsOf(objectOf(statusOf(object), "loadBalancer") ?? {}, "ingress").map(
    (one) => textOf(one, "ip") || textOf(one, "hostname"),
  );

const MAX_HOSTS = 3;
const ingressColumns: readonly Column[] = [
  NAME,
  text("Class", (object) => orNone(textOf(specOf(object), "ingressClassName"))),
  text("Hosts", (object) => {
    const hosts = objectsOf(specOf(object), "rules").flatMap((rule) => textOf(rule, "host") || []);
    const shown = hosts.slice(0, MAX_HOSTS).join(",");
    const more = hosts.length - MAX_HOSTS;
    return shown === "" ? "*" : more > 0 ? `${shown} + ${more} more...` : shown;
  }),
  text("Address", (object) => balancerAddresses(object).join(",")),
  text("Ports", (object) => (objectsOf(specOf(object), "tls").length > 0 ? "80, 443" : "80")),
  AGE,
];

const SHORT_MODES: Readonly<Record<string, string>> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};
const accessModes = (modes: readonly string[]) =>
  modes.map((mode) => SHORT_MODES[mode] ?? mode).join(",");
const storage = (object: JsonObject) => textOf(objectOf(object, "capacity") ?? {}, "storage");
const volumeMode = wide("VolumeMode", inSpec("volumeMode"));
const attributesClass = text(
  "VolumeAttributesClass",
  (object) => textOf(specOf(object), "volumeAttributesClassName") || "<unset>",
);

const claimColumns: readonly Column[] = [
  NAME,
  phase,
  text("Volume", inSpec("volumeName")),
  text("Capacity", (object) => (isBound(object) ? storage(statusOf(object)) : "")),
  text("Access Modes", (object) =>
    isBound(object) ? accessModes(stringsOf(statusOf(object), "accessModes")) : "",
  ),
  text("StorageClass", inSpec("storageClassName")),
  attributesClass,
  AGE,
  volumeMode,
];

const isBound = (claim: JsonObject) => textOf(specOf(claim), "volumeName") !== "";

const volumeColumns: readonly Column[] = [
  NAME,
  text("Capacity", (object) => storage(specOf(object))),
  text("Access Modes", (object) => accessModes(stringsOf(specOf(object), "accessModes"))),
  text("Reclaim Policy", inSpec("persistentVolumeReclaimPolicy")),
  phase,
  text("Claim", (object) => {
    const claim = objectOf(specOf(object), "claimRef");
    return claim === undefined ? "" : `${textOf(claim, "namespace")}/${textOf(claim, "name")}`;
  }),
  text("StorageClass", inSpec("storageClassName")),
  attributesClass,
  text("Reason", inStatus("reason")),
  AGE,
  volumeMode,
];

const ROLE_LABEL = "node-role.kubernetes.io/";
const nodeInfo = (name: string, member: string): Column =>
  text(
    name,
    (object) => textOf(objectOf(statusOf(object), "nodeInfo") ?? {}, member) || "<unknown>",
    1,
  );
const address = (name: string, type: string): Column =>
  wide(name, (object) => {
    const found = objectsOf(statusOf(object), "addresses").find((one) => one["type"] === type);
    return found === undefined ? "<none>" : textOf(found, "address");
  });
const nodeColumns: readonly Column[] = [
  NAME,
  text("Status", (object) => {
    const ready = objectsOf(statusOf(object), "conditions").find(({ type }) => type === "Ready");
    const state =
      ready === undefined ? "Unknown" : ready["status"] === "True" ? "Ready" : "NotReady";
    return specOf(object)["unschedulable"] === true ? `${state},SchedulingDisabled` : state;
  }),
  text("Roles", (object) => {
    const labels = Object.keys(objectOf(metadataOf(object), "labels") ?? {});
    const roles = labels.flatMap((label) =>
      label.startsWith(ROLE_LABEL) ? label.slice(ROLE_LABEL.length) : [],
    );
    return orNone(roles.toSorted().join(","));
  }),
  AGE,
  text("Version", (object) =>
    textOf(objectOf(statusOf(object), "nodeInfo") ?? {}, "kubeletVersion"),
  ),
  address("Internal-IP", "InternalIP"),
  address("External-IP", "ExternalIP"),
  nodeInfo("OS-Image", "osImage"),
  nodeInfo("Kernel-Version", "kernelVersion"),
  nodeInfo("Container-Runtime", "containerRuntimeVersion"),
];

const available = (name: string, member: string): Column =>
  text(name, (object) => String(specOf(object)[member] ?? "N/A"));

const firstSeen = (event: JsonObject, nowMs: number) =>
  since(textOf(event, "firstTimestamp") || textOf(event, "eventTime"), nowMs);
const eventColumns: readonly Column[] = [
  text("Last Seen", (event, nowMs) => {
    const last = textOf(objectOf(event, "series") ?? {}, "lastObservedTime");
    const time = last || textOf(event, "lastTimestamp");
    return time === "" ? firstSeen(event, nowMs) : since(time, nowMs);
  }),
  text("Type", (event) => textOf(event, "type")),
  text("Reason", (event) => textOf(event, "reason")),
  text("Object", (event) => {
    const about = objectOf(event, "involvedObject") ?? objectOf(event, "regarding") ?? {};
    return [textOf(about, "kind").toLowerCase(), textOf(about, "name")].filter(Boolean).join("/");
  }),
  wide("Subobject", (event) => textOf(objectOf(event, "involvedObject") ?? {}, "fieldPath")),
  wide("Source", (event) => {
    const source = objectOf(event, "source") ?? {};
    const component = textOf(source, "component") || textOf(event, "reportingComponent");
    return [component, textOf(source, "host")].filter(Boolean).join(", ");
  }),
  text("Message", (event) => (textOf(event, "message") || textOf(event, "note")).trim()),
  wide("First Seen", firstSeen),
  wide("Count", (event) => Math.max(1, numberIn(event, "count"))),
  { ...NAME, priority: 1 },
];

/** The columns of each built-in kind, by plural and group. */
export const BUILTIN_COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  configmaps: [NAME, dataColumn, AGE],
  events: eventColumns,
  "events.events.k8s.io": eventColumns,
  namespaces: [NAME, text("Status", inStatus("phase")), AGE],
  nodes: nodeColumns,
  persistentvolumes: volumeColumns,
  persistentvolumeclaims: claimColumns,
  pods: podColumns,
  secrets: [NAME, text("Type", (object) => textOf(object, "type")), dataColumn, AGE],
  services: serviceColumns,
  serviceaccounts: [NAME, AGE],
  "daemonsets.apps": daemonSetColumns,
  "deployments.apps": deploymentColumns,
  "replicasets.apps": replicaSetColumns,
  "statefulsets.apps": statefulSetColumns,
  "horizontalpodautoscalers.autoscaling": autoscalerColumns,
  "cronjobs.batch": cronJobColumns,
  "jobs.batch": jobColumns,
  "leases.coordination.k8s.io": [NAME, text("Holder", inSpec("holderIdentity")), AGE],
  "ingresses.networking.k8s.io": ingressColumns,
  "networkpolicies.networking.k8s.io": [
    NAME,
    text("Pod-Selector", (object) => formatSelector(objectOf(specOf(object), "podSelector"))),
    AGE,
  ],
  "poddisruptionbudgets.policy": [
    NAME,
    available("Min Available", "minAvailable"),
    available("Max Unavailable", "maxUnavailable"),
    integer("Allowed Disruptions", (object) => numberIn(statusOf(object), "disruptionsAllowed")),
    AGE,
  ],
  "clusterroles.rbac.authorization.k8s.io": [NAME, CREATED_AT],
  "clusterrolebindings.rbac.authorization.k8s.io": bindingColumns,
  "roles.rbac.authorization.k8s.io": [NAME, CREATED_AT],
  "rolebindings.rbac.authorization.k8s.io": bindingColumns,
  "customresourcedefinitions.apiextensions.k8s.io": [NAME, CREATED_AT],
};
