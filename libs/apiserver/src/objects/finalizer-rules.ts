import type { JsonObject } from "@konverge/core";
import { invalid, type FieldError } from "../errors/field-error.ts";
import { finalizersOf } from "./metadata.ts";

const STANDARD = new Set(["foregroundDeletion", "kubernetes", "orphan"]);

const isUnqualified = (finalizer: string) => !finalizer.includes("/") && !STANDARD.has(finalizer);

/** Rejects finalizers without a domain, for built-in kinds. */
export function unqualifiedFinalizerErrors(object: JsonObject): FieldError[] {
  return finalizersOf(object).flatMap((finalizer, index) =>
    isUnqualified(finalizer)
      ? [
          invalid(
            `metadata.finalizers[${index}]`,
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
          ),
        ]
      : [],
  );
}

/** Warns of new finalizers without a domain, for custom resources. */
export function unqualifiedFinalizerWarnings(next: JsonObject, live?: JsonObject): string[] {
  const known = live === undefined ? [] : finalizersOf(live);
  return finalizersOf(next)
    .filter((finalizer) => isUnqualified(finalizer) && !known.includes(finalizer))
    .map(
      (finalizer) =>
        `metadata.finalizers: ${JSON.stringify(finalizer)}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`,
    );
}
