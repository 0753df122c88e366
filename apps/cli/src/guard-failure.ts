import { ERRORS, type KonvergeError } from "@konverge/core";
import { explainFailure, oneLine, type Failure } from "./explain-failure.ts";

/** The fields of an order, as they are typed here. */
const OPTIONS: Readonly<Record<string, string>> = {
  "/by": "--by",
  "/reason": "--reason",
  "/ratePerSecond": "<rate>",
};

/** How a guard command ends that could not do what was asked; `cluster` is the one that was named. */
export function explainGuardFailure(
  error: KonvergeError,
  context: { readonly cluster: string | undefined; readonly redisUrl: string | undefined },
): Failure {
  const { cluster, redisUrl } = context;
  if (error.code !== "not_found") return explainFailure(error, { redisUrl, options: OPTIONS });
  const cure = "start a worker of it, or take a name from `konverge guard list`";
  return {
    line: oneLine(`<cluster>: no worker has guarded a cluster "${cluster}" yet; ${cure}`),
    exitCode: ERRORS[error.code].exitCode,
  };
}
