import { KonvergeError } from "@konverge/core";

/** A delivery as it is stored. The leader of the controller parses the body again. */
export interface WrittenDelivery {
  readonly form: "json" | "text" | "cloudevent";
  readonly body: string;
  /** Attributes of a CloudEvent. */
  readonly event: Readonly<Record<string, string>>;
}

const REQUIRED = ["id", "source", "type"] as const;
/** Names of attributes have no other characters. */
const ATTRIBUTE = /^[a-z0-9]{1,40}$/;
const MAX_ATTRIBUTES = 40;
const MAX_ATTRIBUTE = 2_048;

/**
 * Reads a body: a CloudEvent 1.0 in structured or binary mode, JSON or text.
 * @throws KonvergeError `unsupported_media_type`, `invalid_body`, `invalid_request`
 */
export function readDelivery(
  bytes: Uint8Array,
  headers: Readonly<Record<string, string>>,
): WrittenDelivery {
  const type = (headers["content-type"] ?? "").toLowerCase();
  if (type.startsWith("application/cloudevents-batch")) {
    throw unsupported(`batches of CloudEvents are not supported; send one event per request`);
  }
  const body = decode(bytes);
  if (/^application\/cloudevents\b/.test(type)) {
    if (!/^application\/cloudevents\+json\b/.test(type)) {
      throw unsupported(`CloudEvents must be application/cloudevents+json (got "${type}")`);
    }
    return { form: "cloudevent", body, event: structuredAttributes(parse(body)) };
  }
  const event = "ce-specversion" in headers || "ce-id" in headers ? binaryAttributes(headers) : {};
  if (/^application\/(.+\+)?json\b/.test(type)) {
    parse(body);
    return { form: "json", body, event };
  }
  if (/^text\/[-\w.+]+/.test(type)) return { form: "text", body, event };
  throw unsupported(
    `content type must be application/json, application/cloudevents+json or text/* (got "${type}"); for GitHub, select application/json in the settings of the webhook`,
  );
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new KonvergeError("invalid_body", "body is not valid UTF-8", { cause });
  }
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (cause) {
    // The text of the error quotes the body.
    throw new KonvergeError("invalid_body", "body is not valid JSON", { cause });
  }
}

function structuredAttributes(event: unknown): Record<string, string> {
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw new KonvergeError("invalid_body", "a CloudEvent must be a JSON object");
  }
  const attributes = Object.entries(event).flatMap(([name, value]: [string, unknown]) => {
    const isData = name === "data" || name === "data_base64";
    const isPlain = ["string", "number", "boolean"].includes(typeof value);
    return isData || !isPlain ? [] : [[name, String(value)] as const];
  });
  return checkAttributes(attributes);
}

function binaryAttributes(headers: Readonly<Record<string, string>>): Record<string, string> {
  const attributes = Object.entries(headers).flatMap(([name, value]) =>
    name.startsWith("ce-") ? [[name.slice(3), unescape(value)] as const] : [],
  );
  return checkAttributes(attributes);
}

/** Headers have percent-encoded UTF-8. */
function unescape(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** @throws KonvergeError `invalid_request` */
function checkAttributes(
  given: readonly (readonly [name: string, value: string])[],
): Record<string, string> {
  const attributes = Object.fromEntries(given);
  const issues = [
    ...(attributes["specversion"] === "1.0"
      ? []
      : [{ pointer: "/specversion", detail: 'must be "1.0"' }]),
    ...REQUIRED.flatMap((name) =>
      Object.hasOwn(attributes, name) && attributes[name] !== ""
        ? []
        : [{ pointer: `/${name}`, detail: "is required, and must not be empty" }],
    ),
    ...given.flatMap(([name, value]) => {
      if (!ATTRIBUTE.test(name)) {
        const detail = "is not a valid attribute name; use lower-case letters and digits";
        return [{ pointer: `/${name.slice(0, 100)}`, detail }];
      }
      if (value.length <= MAX_ATTRIBUTE) return [];
      return [{ pointer: `/${name}`, detail: `must have at most ${MAX_ATTRIBUTE} characters` }];
    }),
    ...(given.length <= MAX_ATTRIBUTES
      ? []
      : [{ pointer: "", detail: `must have at most ${MAX_ATTRIBUTES} attributes` }]),
  ];
  if (issues.length === 0) return attributes;
  const [first = { pointer: "", detail: "" }] = issues;
  const detail = `CloudEvent: ${first.pointer.slice(1)} ${first.detail}`;
  throw new KonvergeError("invalid_request", detail, { issues: issues.slice(0, 20) });
}

function unsupported(detail: string): KonvergeError {
  return new KonvergeError("unsupported_media_type", detail);
}
