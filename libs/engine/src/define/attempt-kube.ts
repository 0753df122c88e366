import type { ApiObject } from "@konverge/core";
import type { KubeCalls, ObjectManifest } from "@konverge/kube";
import type { Child, ChildrenReport, ReconcileChildrenOptions } from "./children.ts";

/** The API server for a handler: each call is bound to the attempt, rate-limited and recorded. */
export interface AttemptKube extends KubeCalls<"handler"> {
  /**
   * Makes the children of an owner, usually the reconciled object, equal to a list. Applies each listed object in order, with a
   * controller reference to the owner and with `force`. Deletes the children that are not listed. An unchanged child costs no
   * API call. Returns the status of each child. Call it once per attempt, with all children of the owner.
   *
   * Entries are manifests, or results of {@link child}, of kinds in `owns`. A child is an object of these kinds that has a
   * controller reference to this uid of the owner and the annotation `konverge.dev/child-of` with the name of this controller.
   * No other object is deleted.
   * @throws KonvergeError `object_exists` if an object that the owner does not control has the name; `invalid_request` for a kind
   * that is not in `owns`, and for a second call; each error of a write, after all other children were applied or deleted
   */
  reconcileChildren<const Listed extends readonly (Child | ObjectManifest)[]>(
    owner: ApiObject,
    children: Listed,
    options?: ReconcileChildrenOptions,
  ): Promise<ChildrenReport<Listed>>;
  /**
   * Returns the calls to another cluster of the configuration or the provider. They pass that cluster's guard and lanes, and are
   * recorded in this attempt with the cluster's name. Lists are not cached. Objects there cannot have the reconciled object as
   * owner: delete them in `cleanup`.
   *
   * Each call throws KonvergeError `invalid_request` for an unknown cluster. While a cluster cannot be reached, the attempt
   * is deferred.
   *
   * @example
   * await kube.on("west").apply(ConfigMap, { metadata: { name: "peer", namespace }, data });
   */
  on(cluster: string): KubeCalls<"handler">;
}
