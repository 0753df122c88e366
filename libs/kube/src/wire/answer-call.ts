import type { PlannedCall } from "../contract/call-plan.ts";
import type { ApiAnswer, HttpAnswer } from "../contract/http-answer.ts";
import { contentOf } from "./call-result.ts";

/** Answers a call with a response, as the transport does. @throws KubeApiError for a response that is an error */
export function answerCall(
  call: PlannedCall & { readonly anyContent?: boolean },
  answer: HttpAnswer,
): ApiAnswer {
  call.onAnswer?.(answer);
  const content = contentOf(call, answer);
  if (content.kind !== "success") throw content.error;
  const { status, headers, body: text } = answer;
  return { status, headers, text, value: content.value };
}
