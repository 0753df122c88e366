import { KonvergeError } from "@konverge/core";
import { convertApiException } from "@konverge/kube";

/** First limit; the final one applies after secrets are removed, because a truncated secret would not be found. */
const MAX_MESSAGE = 20_000;
const MAX_PARTS = 5;
const FIX = 'throw new Error("what went wrong") instead';

/**
 * Converts a value thrown by a handler to an error that is safe to read: name and message exist and are short strings. An Error
 * with these properties is returned unchanged, an ApiException of client-node as a KubeApiError; any other value is described
 * without its content (P12).
 */
export function errorOfThrown(thrown: unknown): Error {
  try {
    if (!(thrown instanceof Error)) return invalid(describe(thrown));
    const converted = convertApiException(thrown);
    if (converted !== undefined) return converted;
    const { name, message, cause } = thrown as { name: unknown; message: unknown; cause?: unknown };
    if (typeof name !== "string" || typeof message !== "string") {
      return invalid("an Error with a name or message that is not a string");
    }
    const parts = partsOf(thrown);
    const isShort = message.length <= MAX_MESSAGE && name.length <= MAX_MESSAGE;
    if (isShort && parts === "") return thrown;
    const text = isShort
      ? message
      : `${message.slice(0, MAX_MESSAGE)}... (${message.length} characters)`;
    const readable = new Error(text + parts, { cause });
    return Object.assign(readable, { name: name.slice(0, 100), stack: thrown.stack });
  } catch {
    return invalid("an object that throws when read");
  }
}

/** The message of an AggregateError does not contain the failures. */
function partsOf(error: Error): string {
  if (!("errors" in error) || !Array.isArray(error.errors) || error.errors.length === 0) return "";
  const texts = error.errors.slice(0, MAX_PARTS).map((part: unknown) => {
    return part instanceof Error ? part.message.slice(0, MAX_MESSAGE) : describe(part);
  });
  return `: ${texts.join("; ")}`;
}

function invalid(what: string): Error {
  return new KonvergeError("invalid_throw", `the handler threw ${what}; ${FIX}`);
}

function describe(thrown: unknown): string {
  if (thrown === undefined || thrown === null) return String(thrown);
  if (typeof thrown === "string") return `the string "${thrown.slice(0, MAX_MESSAGE)}"`;
  if (typeof thrown === "function") return "a function";
  if (typeof thrown !== "object") return `the ${typeof thrown} ${String(thrown).slice(0, 100)}`;
  const members = Object.keys(thrown).slice(0, 5).join(", ");
  const message: unknown = "message" in thrown ? thrown.message : undefined;
  const text =
    typeof message === "string" ? ` with the message "${message.slice(0, MAX_MESSAGE)}"` : "";
  return `an object${text}${members === "" ? "" : ` with the members ${members}`}`;
}
