import { defined, type ApiObject, type Trigger } from "@konverge/core";
import type { NamespacedName } from "@konverge/kube";
import type { RequestOptions, WorkQueue } from "@konverge/queue";
import { createChangeFunctions, type ChangeFunctionsOptions } from "./change-functions.ts";
import { isRequestedByPerson, type ObjectChange } from "../define/predicate.ts";
import type { ControllerSource } from "../define/source.ts";
import type { Controller } from "../define/define-controller.ts";
import { isTerminating } from "../define/finalizer.ts";
import { reconciledKey } from "../define/reconciled-key.ts";

/** A change from a reflector. `initial`: from a list, not from a watch. */
export interface SeenChange extends ObjectChange {
  readonly initial: boolean;
  /** Versions that the watch has reached with it: the trigger's `seen`. */
  readonly seen: NonNullable<Trigger["seen"]>;
}

/**
 * The version of a reconciled object in this process's watch. Requests for a change of another object carry it, so that the
 * attempt may start from its own watch instead of a read.
 */
export type KnownVersion = (name: NamespacedName) => string | undefined;

/**
 * Turns changes of a controller's watches into requests. The queue repeats each request until Redis accepts it (P1), so one
 * that fails delays neither other objects nor the watch. A new leader requests every object again.
 */
export interface RequestSource {
  /** Takes a change of an object of a source of the controller. */
  readonly onChange: (
    source: ControllerSource,
    change: SeenChange,
    known: KnownVersion,
    /** True for the names of objects that the controller does not reconcile. */
    isOutside?: (name: NamespacedName) => boolean,
  ) => void;
  /** Enqueues an object whose namespace has left the scope: its attempt ends as gone, which drops its timer and failures. */
  readonly leave: (object: ApiObject, seen: NonNullable<Trigger["seen"]>) => void;
  /** Enqueues one object for a resync. Resolves when Redis accepted or first refused the request. */
  readonly resync: (
    object: ApiObject,
    why: { readonly reason: string; readonly seen: NonNullable<Trigger["seen"]> },
  ) => Promise<void>;
}

export function createRequestSource(
  controller: Controller,
  queue: WorkQueue,
  options: ChangeFunctionsOptions,
): RequestSource {
  const { isWanted, namesOf } = createChangeFunctions(controller, options);
  const { resource } = controller.for;

  const request = (name: NamespacedName, trigger: Trigger, how: RequestOptions) =>
    queue.submit(reconciledKey(controller, queue.cluster, name), trigger, how);
  const requestAll = (
    names: readonly NamespacedName[],
    change: SeenChange,
    known: KnownVersion,
    trigger: Trigger,
  ) => {
    const distinct = new Map(
      names.map((name) => [`${name.namespace ?? ""}/${name.name}`, name] as const),
    );
    for (const name of distinct.values()) {
      const resourceVersion = known(name);
      const versioned = resourceVersion === undefined ? trigger : { ...trigger, resourceVersion };
      void request(name, versioned, { class: change.initial ? "background" : "event" });
    }
  };

  const requestItself = (change: SeenChange) => {
    const { object, initial } = change;
    const person = !initial && isRequestedByPerson(change);
    void request(
      nameOf(object),
      {
        kind: initial ? "resync" : "watch",
        by: person ? "annotation" : `watch ${resource}`,
        ...versionsOf(object),
      },
      {
        ...(initial ? classOfKnown(object) : { class: person ? "interactive" : "event" }),
        ...defined({ uid: object.metadata.uid }),
        ...(change.kind === "deleted" ? { isDeleted: true } : {}),
      },
    );
  };

  return {
    onChange(source, change, known, isOutside = () => false) {
      if (!change.initial && !isWanted(source, change)) return;
      if (source.option === "for") return requestItself(change);
      const states = [change.object, change.previous].filter((object) => object !== undefined);
      const names = states.flatMap((object) => namesOf(source, object));
      const wanted = names.filter((name) => !isOutside(name));
      requestAll(wanted, change, known, {
        kind: source.option === "owns" ? "owner" : "watch",
        by: `watch ${change.object.kind}`,
        reason: `${change.object.kind} ${change.object.metadata.name} ${change.kind}`,
        ...changedVersion(change),
        seen: change.seen,
      });
    },
    leave(object, seen) {
      void request(
        nameOf(object),
        { kind: "resync", by: "watch namespaces", reason: "the namespace left the scope", seen },
        { class: "background", isDeleted: true, ...defined({ uid: object.metadata.uid }) },
      );
    },
    async resync(object, { reason, seen }) {
      await request(
        nameOf(object),
        { kind: "resync", by: "resync", reason, ...versionsOf(object), seen },
        { ...classOfKnown(object), ...defined({ uid: object.metadata.uid }) },
      );
    },
  };
}

/** Users wait for deletions, so they go before retries and resyncs. A known deletion does not end the backoff of a failing cleanup. */
function classOfKnown(object: ApiObject): RequestOptions {
  return isTerminating(object) ? { class: "event", news: false } : { class: "background" };
}

function nameOf({ metadata: { namespace, name } }: ApiObject): NamespacedName {
  return namespace === undefined ? { name } : { namespace, name };
}

function versionsOf({ metadata }: ApiObject): Pick<Trigger, "resourceVersion" | "generation"> {
  return {
    ...defined({ resourceVersion: metadata.resourceVersion, generation: metadata.generation }),
  };
}

function changedVersion({ object: { metadata } }: SeenChange): Pick<Trigger, "version"> {
  return metadata.resourceVersion === undefined ? {} : { version: metadata.resourceVersion };
}
