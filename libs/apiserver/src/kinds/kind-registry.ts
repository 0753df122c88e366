import type { JsonObject } from "@konverge/core";
import { isTerminating } from "../objects/metadata.ts";
import type { ObjectTable } from "../storage/object-table.ts";
import { clusterRole, clusterRoleBinding, role, roleBinding } from "./access-rules.ts";
import { configMap } from "./config-map.ts";
import { cronJob } from "./cron-job.ts";
import { hasCondition, readCrdSpec } from "./crd-spec.ts";
import { makeCustomKind } from "./custom-kind.ts";
import { customResourceDefinition } from "./custom-resource-definition.ts";
import { daemonSet } from "./daemon-set.ts";
import { deployment } from "./deployment.ts";
import { coreEvent, event } from "./event.ts";
import { horizontalPodAutoscaler } from "./horizontal-pod-autoscaler.ts";
import { ingress } from "./ingress.ts";
import { job } from "./job.ts";
import { lease } from "./lease.ts";
import { namespace } from "./namespace.ts";
import { networkPolicy } from "./network-policy.ts";
import { node } from "./node.ts";
import { persistentVolume, persistentVolumeClaim } from "./persistent-volume.ts";
import { podDisruptionBudget } from "./pod-disruption-budget.ts";
import { pod } from "./pod.ts";
import { replicaSet } from "./replica-set.ts";
import type { ResourceKind } from "./resource-kind.ts";
import { secret } from "./secret.ts";
import { serviceAccount } from "./service-account.ts";
import { service } from "./service.ts";
import { statefulSet } from "./stateful-set.ts";

const BUILTIN: readonly ResourceKind[] = [
  configMap,
  coreEvent,
  namespace,
  node,
  persistentVolume,
  persistentVolumeClaim,
  pod,
  secret,
  service,
  serviceAccount,
  customResourceDefinition,
  daemonSet,
  deployment,
  replicaSet,
  statefulSet,
  horizontalPodAutoscaler,
  cronJob,
  job,
  lease,
  event,
  ingress,
  networkPolicy,
  podDisruptionBudget,
  clusterRole,
  clusterRoleBinding,
  role,
  roleBinding,
];

/** The served kinds: the built-in ones and those of established CustomResourceDefinitions. */
export class KindRegistry {
  #kinds: Map<string, ResourceKind> = new Map();
  /** Versions of a definition, by its key. */
  #custom: Map<string, readonly ResourceKind[]> = new Map();
  readonly #terminating: Set<string> = new Set();

  /** @param known has the kinds of the same definitions */
  constructor(definitions: ObjectTable, known?: KindRegistry) {
    for (const kind of BUILTIN) this.#kinds.set(idOf(kind), kind);
    if (known === undefined) {
      for (const { key, object } of definitions.list()) this.#update(key, object);
    } else {
      this.#kinds = new Map(known.#kinds);
      this.#custom = new Map(known.#custom);
    }
    definitions.subscribe(({ type, current }) => {
      if (type === "DELETED") this.#remove(current.key);
      else this.#update(current.key, current.object);
    });
  }

  find(group: string, version: string, resource: string): ResourceKind | undefined {
    return this.#kinds.get(idOf({ group, version, resource }));
  }

  all(): ResourceKind[] {
    return [...this.#kinds.values()];
  }

  /** Returns true for a group version that kube-apiserver itself serves. */
  isBuiltinGroupVersion(group: string, version: string): boolean {
    return BUILTIN.some((kind) => kind.group === group && kind.version === version);
  }

  /** True while a definition is being deleted: no object can be created under it. */
  isTerminating({ group, resource }: ResourceKind): boolean {
    return this.#terminating.has(`${resource}.${group}`);
  }

  #update(key: string, crd: JsonObject): void {
    this.#remove(key);
    if (isTerminating(crd)) this.#terminating.add(key);
    if (!hasCondition(crd, "Established")) return;
    const spec = readCrdSpec(crd);
    const kinds = spec.versions
      .filter(({ served }) => served)
      .map((version) => makeCustomKind(spec, version));
    for (const kind of kinds) this.#kinds.set(idOf(kind), kind);
    this.#custom.set(key, kinds);
  }

  #remove(key: string): void {
    for (const kind of this.#custom.get(key) ?? []) this.#kinds.delete(idOf(kind));
    this.#custom.delete(key);
    this.#terminating.delete(key);
  }
}

const idOf = ({ group, version, resource }: Pick<ResourceKind, "group" | "version" | "resource">) =>
  `${group}/${version}/${resource}`;
