import { userInfo } from "node:os";
import { KonvergeError } from "@konverge/core";

/** Returns the author of an action without `--by`. @throws KonvergeError `invalid_request` */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // The user ID of a container may have no name.
    throw new KonvergeError(
      "invalid_request",
      "--by: is required, because the system user has no name",
      {
        cause: error,
      },
    );
  }
}
