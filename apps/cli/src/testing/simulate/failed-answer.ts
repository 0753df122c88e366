import { resourceOfPath, type InProcessAnswer, type InProcessRequest } from "@konverge/apiserver";
import type { FailedAnswer } from "./fault.ts";

/** Returns true for an update with a resource version. Only such a call can conflict with a newer version. */
export function canConflict({ method, body }: InProcessRequest): boolean {
  return (method === "PUT" || method === "PATCH") && body.includes("resourceVersion");
}

/** The response of a failed call, with the text of kube-apiserver; undefined if there is none. */
export function failedAnswer(
  answer: FailedAnswer,
  request: InProcessRequest,
): InProcessAnswer | undefined {
  switch (answer) {
    case "timeout":
    case "reset":
      return undefined;
    case 409: {
      const { resource, name } = resourceOfPath(request.path);
      const [kind, ...group] = resource.split(".");
      return statusOf({
        code: 409,
        reason: "Conflict",
        message: `Operation cannot be fulfilled on ${resource} ${JSON.stringify(name)}: the object has been modified; please apply your changes to the latest version and try again`,
        details: { name, group: group.join("."), kind },
      });
    }
    case 429:
      // API Priority and Fairness rejects calls with text, not with a Status.
      return {
        status: 429,
        headers: { "content-type": "text/plain; charset=utf-8", "retry-after": "1" },
        body: "Too many requests, please try again later.\n",
      };
    case 500:
      // An error of etcd has no reason.
      return statusOf({ code: 500, message: "etcdserver: request timed out" });
    case 503:
      return statusOf({
        code: 503,
        reason: "ServiceUnavailable",
        message: "the server is currently unable to handle the request",
      });
    case 504:
      return statusOf({
        code: 504,
        reason: "Timeout",
        message: "Timeout: request did not complete within the allotted timeout",
        details: {},
      });
  }
}

function statusOf(status: {
  readonly code: number;
  readonly reason?: string;
  readonly message: string;
  readonly details?: object;
}): InProcessAnswer {
  const fixed = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure" };
  return {
    status: status.code,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...fixed, ...status }),
  };
}
