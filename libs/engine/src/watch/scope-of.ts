import { invalidConfig, type ErrorIssue, type ResourceType } from "@konverge/core";
import type { Controller } from "../define/define-controller.ts";
import { isByLabels, namesIn, type NamespaceSelection } from "../define/namespace-selection.ts";
import type { ControllerSource } from "../define/source.ts";
import { placeOf } from "./place-of.ts";

/** The objects of a kind that a source needs. Sources with equal scopes share their watches. */
export interface GroupScope {
  readonly type: ResourceType;
  /** Undefined: all namespaces, with one watch for all of them unless there are `namespaceLabels`. */
  readonly namespaces: readonly string[] | undefined;
  /** Label selectors that a namespace must match as well. Such namespaces are followed at run time. */
  readonly namespaceLabels: readonly string[];
  readonly labels: string | undefined;
  readonly fields: string | undefined;
}

/** The scope of a source within the namespaces that this process may access. */
export function scopeOf(
  { type, namespaces, labels, fields }: ControllerSource,
  allowed: NamespaceSelection | undefined,
): GroupScope {
  const selections = type.scope === "Cluster" ? [] : [namespaces, allowed];
  const lists = selections.map(namesIn).filter((names) => names !== undefined);
  const names =
    lists.length === 0
      ? undefined
      : lists.reduce((left, right) => left.filter((one) => right.includes(one)));
  const selectors = selections.filter(isByLabels).map((selection) => selection.labels);
  return {
    type,
    namespaces: names && distinct(names),
    namespaceLabels: distinct(selectors),
    labels,
    fields,
  };
}

/**
 * Returns the sources that can never have an object in this process, and those whose namespaces it cannot follow.
 * @param allowed the namespaces that the process may access
 */
export function findScopeIssues(
  controllers: readonly Pick<Controller, "name" | "sources">[],
  allowed: NamespaceSelection | undefined,
): ErrorIssue[] {
  const names = namesIn(allowed);
  if (names === undefined) return [];
  return controllers.flatMap((controller) =>
    controller.sources.flatMap((source) => {
      const { namespaces } = source;
      if (namespaces === undefined) return [];
      const place = placeOf(source, controller);
      const pointer = `/controllers/${controller.name}/${place}/namespaces`;
      const prefix = `controller "${controller.name}": ${place}.namespaces:`;
      if (isByLabels(namespaces)) {
        const detail = `${prefix} labels need access to all Namespace objects, but the worker is limited to the namespaces ${names.join(", ")}; list names here, or remove the limit (KONVERGE_NAMESPACES, or namespaces of the cluster)`;
        return [{ pointer, detail }];
      }
      if (namespaces.some((one) => names.includes(one))) return [];
      const detail = `${prefix} none of ${namespaces.join(", ")} is a namespace of the worker (${names.join(", ")}), so nothing would be watched; change the list, or add a namespace to KONVERGE_NAMESPACES or to namespaces of the cluster`;
      return [{ pointer, detail }];
    }),
  );
}

/** @throws KonvergeError `invalid_config` that lists all issues */
export function assertScopes(
  controllers: readonly Controller[],
  allowed: NamespaceSelection | undefined,
): void {
  const issues = findScopeIssues(controllers, allowed);
  if (issues.length > 0) throw invalidConfig(issues);
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)].toSorted();
}
