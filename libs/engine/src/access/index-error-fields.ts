import type { ApiObject } from "@konverge/core";
import { errorOfThrown } from "../define/thrown-error.ts";

/** Returns the log fields of an error of an index function. For a Secret, only the type of the error may be logged (P12). */
export function indexErrorFields(
  { kind, metadata: { namespace, name: object } }: ApiObject,
  {
    error,
    index,
    isSensitive,
  }: { readonly error: unknown; readonly index: string; readonly isSensitive: boolean },
): object {
  const { name: type, message } = errorOfThrown(error);
  return { index, kind, namespace, object, err: isSensitive ? { type } : { type, message } };
}
