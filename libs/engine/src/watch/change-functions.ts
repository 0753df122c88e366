import type { ApiObject, ResourceType } from "@konverge/core";
import type { NamespacedName } from "@konverge/kube";
import { alwaysPasses, type ObjectChange } from "../define/predicate.ts";
import type { ControllerSource, WatchSource } from "../define/source.ts";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { errorOfThrown } from "../define/thrown-error.ts";

/** The predicates of a controller's sources, and `map`, with errors handled. */
export interface ChangeFunctions {
  readonly isWanted: (source: ControllerSource, change: ObjectChange) => boolean;
  readonly namesOf: (source: WatchSource, object: ApiObject) => readonly NamespacedName[];
}

export interface ChangeFunctionsOptions {
  readonly log: Log;
  readonly isSensitive: (type: ResourceType) => boolean;
}

/**
 * A watch repeats a change until it is accepted, so a function that throws would stop the watch for all controllers. Instead, a
 * change counts if its predicate throws, and is skipped until the next resync if `map` throws. Both are logged.
 */
export function createChangeFunctions(
  controller: Controller,
  { log, isSensitive }: ChangeFunctionsOptions,
): ChangeFunctions {
  const fieldsOf = (error: unknown, type: ResourceType, { metadata }: ApiObject) => {
    const { name, message } = errorOfThrown(error);
    // For a Secret, only the type of the error may be logged (P12).
    const err = isSensitive(type) ? { type: name } : { type: name, message };
    const { namespace, name: object } = metadata;
    return { controller: controller.name, kind: type.kind, namespace, object, err };
  };
  return {
    isWanted({ option, type, predicate }, change) {
      if (alwaysPasses(change, option, controller.finalizer)) return true;
      try {
        return predicate(change);
      } catch (error) {
        log.error(fieldsOf(error, type, change.object), "predicate threw, change accepted");
        return true;
      }
    },
    namesOf({ type, map }, object) {
      try {
        return checkNames(map(object));
      } catch (error) {
        log.error(
          fieldsOf(error, type, object),
          "map function threw, change skipped until the next resync",
        );
        return [];
      }
    },
  };
}

function checkNames(names: unknown): readonly NamespacedName[] {
  if (Array.isArray(names) && names.every(isName)) return names;
  throw new TypeError("map must return a list of { namespace?, name } with non-empty strings");
}

function isName(value: unknown): value is NamespacedName {
  const { namespace, name } = (value ?? {}) as Record<string, unknown>;
  const isText = (text: unknown) => typeof text === "string" && text !== "";
  return isText(name) && (namespace === undefined || isText(namespace));
}
