import { KonvergeError } from "@konverge/core";

const MAX_MESSAGE = 2_000;
const CURE = 'throw new Error("what went wrong") instead';

/**
 * The error of whatever a handler threw, safe to read: name and message are there, are text and are short. An Error that
 * keeps these rules is answered as it is; any other value is described without its content (P12).
 */
export function errorOfThrown(thrown: unknown): Error {
  try {
    if (!(thrown instanceof Error)) return invalid(describe(thrown));
    const { name, message, cause } = thrown as { name: unknown; message: unknown; cause?: unknown };
    if (typeof name !== "string" || typeof message !== "string") {
      return invalid("an Error whose name or message is no text");
    }
    if (message.length <= MAX_MESSAGE && name.length <= MAX_MESSAGE) return thrown;
    const short = new Error(`${message.slice(0, MAX_MESSAGE)}... (${message.length} characters)`, {
      cause,
    });
    return Object.assign(short, { name: name.slice(0, 100) });
  } catch {
    return invalid("an object that throws when it is read");
  }
}

function invalid(what: string): Error {
  return new KonvergeError("invalid_throw", `the handler threw ${what}; ${CURE}`);
}

function describe(thrown: unknown): string {
  if (thrown === undefined || thrown === null) return String(thrown);
  if (typeof thrown === "string") return `the text "${thrown.slice(0, MAX_MESSAGE)}"`;
  if (typeof thrown === "function") return "a function";
  if (typeof thrown !== "object") return `the ${typeof thrown} ${String(thrown).slice(0, 100)}`;
  const members = Object.keys(thrown).slice(0, 5).join(", ");
  const message: unknown = "message" in thrown ? thrown.message : undefined;
  const says = typeof message === "string" ? ` that says "${message.slice(0, MAX_MESSAGE)}"` : "";
  return `an object${says}${members === "" ? "" : ` with the members ${members}`}`;
}
