import { cloneJson, type JsonObject } from "@konverge/core";
import { notSupported, required, type FieldError } from "../errors/field-error.ts";
import { objectOf, objectsOf, textOf } from "../objects/metadata.ts";

/** Sets the defaults of kube-apiserver in the Pod template of a workload. */
export function defaultTemplate(spec: JsonObject): void {
  const template = memberOf(spec, "template");
  memberOf(template, "metadata");
  defaultPodSpec(memberOf(template, "spec"));
}

/** Sets the defaults of a Pod's spec; for the rarer volumes and probes, only their common parts. */
export function defaultPodSpec(spec: JsonObject): void {
  spec["restartPolicy"] ??= "Always";
  spec["terminationGracePeriodSeconds"] ??= 30;
  spec["dnsPolicy"] ??= "ClusterFirst";
  spec["securityContext"] ??= {};
  spec["schedulerName"] ??= "default-scheduler";
  if (textOf(spec, "serviceAccountName") !== "")
    spec["serviceAccount"] = spec["serviceAccountName"] ?? "";
  for (const container of containersOf(spec)) defaultContainer(container);
  for (const volume of objectsOf(spec, "volumes")) defaultVolume(volume);
}

/** Returns the containers of a Pod's spec, the initial ones included. */
export const containersOf = (spec: JsonObject): JsonObject[] => [
  ...objectsOf(spec, "containers"),
  ...objectsOf(spec, "initContainers"),
];

/** Returns a member that is an object; adds an empty one if it is missing. */
export function memberOf(object: JsonObject, member: string): JsonObject {
  const found = objectOf(object, member) ?? {};
  object[member] = found;
  return found;
}

/** Validates the containers of the Pod spec at `path`. */
export function validatePodSpec(spec: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const containers = objectsOf(spec, "containers");
  if (containers.length === 0) errors.push(required(`${path}.containers`));
  for (const [index, container] of containers.entries()) {
    const place = `${path}.containers[${index}]`;
    if (textOf(container, "name") === "") errors.push(required(`${place}.name`));
    if (textOf(container, "image") === "") errors.push(required(`${place}.image`));
    for (const [number, port] of objectsOf(container, "ports").entries()) {
      if ((port["containerPort"] ?? 0) !== 0) continue;
      errors.push(required(`${place}.ports[${number}].containerPort`));
    }
  }
  return errors;
}

/** Validates the Pod template of a workload whose Pods restart always. */
export function validateTemplate(spec: JsonObject): FieldError[] {
  const podSpec = objectOf(objectOf(spec, "template") ?? {}, "spec") ?? {};
  const path = "spec.template.spec";
  const errors = validatePodSpec(podSpec, path);
  const policy = textOf(podSpec, "restartPolicy");
  if (policy !== "" && policy !== "Always") {
    errors.push(notSupported(`${path}.restartPolicy`, policy, ["Always"]));
  }
  return errors;
}

function defaultContainer(container: JsonObject): void {
  container["resources"] ??= {};
  container["terminationMessagePath"] ??= "/dev/termination-log";
  container["terminationMessagePolicy"] ??= "File";
  container["imagePullPolicy"] ??= isLatest(textOf(container, "image")) ? "Always" : "IfNotPresent";
  for (const port of objectsOf(container, "ports")) port["protocol"] ??= "TCP";
  for (const name of ["livenessProbe", "readinessProbe", "startupProbe"]) {
    const probe = objectOf(container, name);
    if (probe !== undefined) defaultProbe(probe);
  }
  for (const variable of objectsOf(container, "env")) {
    const field = objectOf(objectOf(variable, "valueFrom") ?? {}, "fieldRef");
    if (field !== undefined) field["apiVersion"] ??= "v1";
  }
}

function defaultProbe(probe: JsonObject): void {
  probe["timeoutSeconds"] ??= 1;
  probe["periodSeconds"] ??= 10;
  probe["successThreshold"] ??= 1;
  probe["failureThreshold"] ??= 3;
  const http = objectOf(probe, "httpGet");
  if (http !== undefined) {
    http["path"] ??= "/";
    http["scheme"] ??= "HTTP";
  }
}

function defaultVolume(volume: JsonObject): void {
  if (Object.keys(volume).every((key) => key === "name")) volume["emptyDir"] = {};
  for (const name of ["configMap", "secret", "projected", "downwardAPI"]) {
    const source = objectOf(volume, name);
    if (source !== undefined) source["defaultMode"] ??= 0o644;
  }
  const hostPath = objectOf(volume, "hostPath");
  if (hostPath !== undefined) hostPath["type"] ??= "";
  const claim = objectOf(objectOf(volume, "ephemeral") ?? {}, "volumeClaimTemplate");
  if (claim !== undefined) memberOf(claim, "spec")["volumeMode"] ??= "Filesystem";
}

/** Requests that a container omits are equal to its limits. */
export function defaultRequests(container: JsonObject): void {
  const resources = objectOf(container, "resources");
  const limits = objectOf(resources ?? {}, "limits");
  if (resources === undefined || limits === undefined) return;
  resources["requests"] = { ...cloneJson(limits), ...objectOf(resources, "requests") };
}

function isLatest(image: string): boolean {
  if (image.includes("@")) return false;
  const tag = image.slice(image.lastIndexOf("/") + 1).split(":")[1];
  return tag === undefined || tag === "latest";
}
