import { defined, KonvergeError, type ApiObject } from "@konverge/core";
import {
  extractOwned,
  type AppliedFields,
  type ExtractOptions,
  type ObjectIdentity,
} from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { CallHost } from "./call-host.ts";

/** Reads the owner of fields from an object. */
export function createExtractCall(host: CallHost): Pick<AttemptKube, "extract"> {
  return {
    extract: <T extends ApiObject>(
      object: T | ObjectIdentity,
      { fieldManager, subresource }: ExtractOptions = {},
    ) =>
      host.call(async () => {
        const manager = fieldManager ?? host.fieldManager;
        if (manager === undefined) {
          const detail = "extract needs a fieldManager outside of a handler; set it";
          throw new KonvergeError("invalid_request", detail);
        }
        const owned: unknown = extractOwned(object as ApiObject, {
          manager,
          ...defined({ subresource }),
        });
        return owned as AppliedFields<T> | undefined;
      }),
  };
}
