import { userInfo } from "node:os";
import { KonvergeError } from "@konverge/core";

/** Who gives an order when nobody is named. @throws KonvergeError `invalid_request` */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // A container may run under an id that has no name.
    throw new KonvergeError("invalid_request", "--by: this system has no name for you; say who", {
      cause: error,
    });
  }
}
