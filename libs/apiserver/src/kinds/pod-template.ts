import type { JsonObject } from "@konverge/core";
import { objectOf, objectsOf, textOf } from "../objects/metadata.ts";

/** Sets the defaults of kube-apiserver in a pod template; for the rarer volumes and probes, only their common parts. */
export function defaultPodTemplate(template: JsonObject): void {
  template["metadata"] ??= {};
  const spec = objectOf(template, "spec") ?? {};
  template["spec"] = spec;
  spec["restartPolicy"] ??= "Always";
  spec["terminationGracePeriodSeconds"] ??= 30;
  spec["dnsPolicy"] ??= "ClusterFirst";
  spec["securityContext"] ??= {};
  spec["schedulerName"] ??= "default-scheduler";
  if (textOf(spec, "serviceAccountName") !== "")
    spec["serviceAccount"] = spec["serviceAccountName"] ?? "";
  for (const container of [
    ...objectsOf(spec, "containers"),
    ...objectsOf(spec, "initContainers"),
  ]) {
    defaultContainer(container);
  }
  for (const volume of objectsOf(spec, "volumes")) defaultVolume(volume);
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
  for (const name of ["configMap", "secret", "projected", "downwardAPI"]) {
    const source = objectOf(volume, name);
    if (source !== undefined) source["defaultMode"] ??= 0o644;
  }
}

function isLatest(image: string): boolean {
  if (image.includes("@")) return false;
  const tag = image.slice(image.lastIndexOf("/") + 1).split(":")[1];
  return tag === undefined || tag === "latest";
}
