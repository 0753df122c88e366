import { findNameIssue, type ApiObject, type ResourceType } from "@konverge/core";
import type { NamespacedName } from "@konverge/kube";
import { alwaysPasses, type ObjectChange } from "../define/predicate.ts";
import type { ControllerSource } from "../define/source.ts";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { errorOfThrown } from "../define/thrown-error.ts";
import { ownersOf } from "./owners-of.ts";
import { placeOf } from "./place-of.ts";

/** The predicates of a controller's sources, and the objects that a change concerns, with errors handled. */
export interface ChangeFunctions {
  readonly isWanted: (source: ControllerSource, change: ObjectChange) => boolean;
  /** The objects to reconcile when `object` changes. Names that no object of the controller's kind can have are left out. */
  readonly namesOf: (source: ControllerSource, object: ApiObject) => readonly NamespacedName[];
}

export interface ChangeFunctionsOptions {
  readonly log: Log;
  readonly isSensitive: (type: ResourceType) => boolean;
  /** Counts an error of a user's function. */
  readonly onError: (of: "predicate" | "map") => void;
}

/** Longest part of a returned name in a log line, in characters. */
const MAX_SHOWN = 200;

/**
 * A watch repeats a change until it is accepted, so a function that throws would stop the watch for all controllers. Instead, a
 * change counts if its predicate throws, and is skipped until the next resync if `map` throws. Both are logged.
 */
export function createChangeFunctions(
  controller: Controller,
  { log, isSensitive, onError }: ChangeFunctionsOptions,
): ChangeFunctions {
  const { kind, scope } = controller.for;
  const fieldsOf = (source: ControllerSource, { metadata }: ApiObject) => {
    const { namespace, name: object } = metadata;
    const place = { source: placeOf(source, controller), kind: source.type.kind };
    return { controller: controller.name, ...place, namespace, object };
  };
  /** For a Secret, only the type of the error may be logged (P12). */
  const errorFields = (error: unknown, { type }: ControllerSource) => {
    const { name, message } = errorOfThrown(error);
    return isSensitive(type) ? { type: name } : { type: name, message };
  };
  const mapped = (source: ControllerSource & { option: "watches" }, object: ApiObject) => {
    try {
      const names: unknown = source.map(object);
      if (Array.isArray(names)) return names as unknown[];
      throw new TypeError("map must return a list of { namespace, name }");
    } catch (error) {
      onError("map");
      log.error(
        { ...fieldsOf(source, object), err: errorFields(error, source) },
        "map function threw, change skipped until the next resync",
      );
      return [];
    }
  };

  return {
    isWanted(source, change) {
      if (alwaysPasses(change, source.option, controller.finalizer)) return true;
      try {
        return source.predicate(change);
      } catch (error) {
        onError("predicate");
        log.error(
          { ...fieldsOf(source, change.object), err: errorFields(error, source) },
          "predicate threw, change accepted",
        );
        return true;
      }
    },
    namesOf(source, object) {
      if (source.option !== "watches") {
        const owners = ownersOf(object, controller.for);
        return owners.filter((owner) => {
          const issue = findNameIssue(controller.for, owner);
          if (issue === undefined) return true;
          const reason = `${kind} "${owner.name}": ${issue.field} ${issue.detail}`;
          log.warn({ ...fieldsOf(source, object), reason }, "invalid owner reference ignored");
          return false;
        });
      }
      return mapped(source, object).filter((name): name is NamespacedName => {
        const issue = findNameIssue(controller.for, name ?? {});
        if (issue === undefined) return true;
        onError("map");
        const fix = `return ${scope === "Cluster" ? "{ name }" : "{ namespace, name }"} from map`;
        const returned = isSensitive(source.type) ? {} : { returned: shown(name) };
        log.error(
          {
            ...fieldsOf(source, object),
            ...returned,
            reason: `${issue.field} ${issue.detail}`,
            fix,
          },
          "map function returned an invalid name, name skipped",
        );
        return false;
      });
    },
  };
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, MAX_SHOWN);
}
