import { KonvergeError } from "@konverge/core";

/** The server closed the connection during the exchange. A write may or may not have taken effect. */
export class ConnectionBroken extends KonvergeError {
  constructor(message: string, cause: Error) {
    super("kube_unreachable", message, { cause });
  }
}
