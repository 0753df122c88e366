import { ensureError, KonvergeError, type JsonObject, type ResourceRef } from "@konverge/core";
import { isNotFound } from "../errors/error-predicates.ts";

/** Returns true if the server serves a subresource of the kind. */
export type ServesSubresource = (subresource: string) => Promise<boolean>;

/**
 * Rejects a status in a patch of the whole object: for a kind with the status subresource, the server drops it and succeeds.
 * @throws KonvergeError `invalid_draft`
 */
export async function assertNoStatus(patch: JsonObject, serves: ServesSubresource): Promise<void> {
  if (!("status" in patch) || !(await serves("status"))) return;
  const detail =
    "was changed, but the kind has a status subresource, so mutate does not write the status; use mutateStatus";
  throw new KonvergeError("invalid_draft", `the draft cannot be written: /status ${detail}`, {
    issues: [{ pointer: "/status", detail }],
  });
}

/**
 * Calls a subresource. The server responds with the same 404 to a missing subresource as to a missing object.
 * @throws KonvergeError `invalid_request` if the kind does not have the subresource
 */
export async function throughSubresource<T>(
  { kind }: ResourceRef,
  subresource: string,
  { serves, call }: { readonly serves: ServesSubresource; readonly call: () => Promise<T> },
): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    const error = ensureError(thrown);
    // A kind that is not served at all is a missing object. The 404 is no cause, because callers ignore missing objects.
    if (!isNotFound(error) || (await serves(subresource).catch(() => true))) throw error;
    throw new KonvergeError(
      "invalid_request",
      `${kind} has no ${subresource} subresource in the cluster; ${FIX[subresource] ?? "use mutate"}`,
    );
  }
}

const FIX: Readonly<Record<string, string>> = {
  status:
    "set status in its defineResource and install the CRD again, or write other fields with mutate",
};
