import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { StatusError } from "../errors/status-error.ts";
import type { FaultEffect } from "./fault-rules.ts";
import { sendStatus, sendTooManyRequests } from "./http-answer.ts";

/** Applies a fault before a request is served. Returns true if the request has its response, or never gets one. */
export async function answerFault(
  effect: FaultEffect,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  switch (effect.kind) {
    case "latency":
      await sleep(effect.ms);
      return false;
    case "drop":
      if (effect.when === "after") return false;
      request.socket.destroy();
      return true;
    case "silence":
    case "cutWatch":
    case "silentWatch":
      return false;
    case "answer": {
      // The body must be read, or the client sees a reset instead of the response.
      request.resume();
      const retryAfter = effect.retryAfterSeconds;
      if (effect.code === 429) sendTooManyRequests(response, retryAfter ?? 1);
      else sendStatus(response, injectedError(effect.code, retryAfter));
      return true;
    }
  }
}

function injectedError(
  code: 409 | 500 | 503 | 504,
  retryAfterSeconds: number | undefined,
): StatusError {
  const details = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  switch (code) {
    case 409:
      return new StatusError(
        409,
        "Conflict",
        "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again",
        details,
      );
    case 500:
      return new StatusError(
        500,
        "InternalError",
        "Internal error occurred: injected fault",
        details,
      );
    case 503:
      return new StatusError(
        503,
        "ServiceUnavailable",
        "the server is currently unable to handle the request",
        details,
      );
    case 504:
      return new StatusError(
        504,
        "Timeout",
        "Timeout: request did not complete within the allotted timeout",
        details,
      );
  }
}
