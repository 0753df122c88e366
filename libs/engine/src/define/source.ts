import type { ApiObject, ResourceType } from "@konverge/core";
import type { IndexFunction, NamespacedName } from "@konverge/kube";
import type { NamespaceSelection } from "./namespace-selection.ts";
import { contentChanged, generationChanged, type Predicate } from "./predicate.ts";

/** A kind to watch, with selectors of its objects and changes. The common part of `for`, `owns` and `watches`. */
export interface Source<T extends ApiObject = ApiObject> {
  /** The kind to watch. */
  readonly type: ResourceType<T>;
  /**
   * Selects the changes that start the handler. Default: {@link generationChanged} for `for`, {@link contentChanged} for `owns`
   * and `watches`. New and deleted objects and the start of a deletion always count; for `for`, also changed finalizers and
   * requests by a user; for `owns`, also changed owner references.
   */
  readonly predicate?: Predicate<T>;
  /**
   * The namespaces to watch, with one watch each: names, or `{ labels: "team=shop" }` for those whose Namespace matches a label
   * selector. The latter are followed while the worker runs. Default: all that the worker may access.
   */
  readonly namespaces?: NamespaceSelection;
  /**
   * Label selector of the objects to watch, such as `app=web,tier in (a, b)`. Other objects are neither cached nor reconciled.
   * Default: all objects.
   */
  readonly labels?: string;
  /** Field selector of the objects to watch, such as `spec.nodeName=n1`, if the API server supports it. Default: all objects. */
  readonly fields?: string;
  /**
   * Indexes of the cached objects, for the option `index` of `kube.list`. Each function returns the values of an object in the
   * index, and must depend on the object only.
   */
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
}

/** Objects of another kind whose changes affect the controller's objects. */
export interface WatchSource<T extends ApiObject = ApiObject> extends Source<T> {
  /** Returns the objects to reconcile when `object` changes. Also called with the previous state, so that none is missed. */
  readonly map: (object: T) => readonly NamespacedName[];
}

/** A source of a validated controller. `option` is the option that has it. */
export type ControllerSource = { readonly predicate: Predicate } & (
  | (Source & { readonly option: "for" | "owns" })
  | (WatchSource & { readonly option: "watches" })
);

/** Returns all sources of a controller in one form, `for` first. */
export function listSources({
  for: own,
  owns = [],
  watches = [],
}: {
  readonly for: ResourceType | Source;
  readonly owns?: readonly (ResourceType | Source)[];
  readonly watches?: readonly WatchSource[];
}): [ControllerSource, ...ControllerSource[]] {
  return [
    { ...withPredicate(asSource(own), generationChanged), option: "for" },
    ...owns.map((source): ControllerSource => ({
      ...withPredicate(asSource(source), contentChanged),
      option: "owns",
    })),
    ...watches.map((source): ControllerSource => ({
      ...withPredicate(source, contentChanged),
      option: "watches",
    })),
  ];
}

function asSource(given: ResourceType | Source): Source {
  return "type" in given ? given : { type: given };
}

function withPredicate<S extends Source>(source: S, standard: Predicate) {
  return { ...source, predicate: source.predicate ?? standard };
}
