import { isKonvergeError } from "./errors.ts";

/** Bounds of what is kept of an error's stack. */
const MAX_FRAMES = 8;
const MAX_CAUSES = 3;
const MAX_CHARS = 200;
const MAX_STACK = 50_000;

/** `at name (file:line:column)` or `at file:line:column`, with files only: no code, no data URL, no message. */
const FRAME =
  /^ {4}at (?:(?<name>[\w$.#<>[\] ]{1,120}) \()?(?<file>(?:file:\/\/)?\/[^()\n]{1,500}|[A-Za-z]:\\[^()\n]{1,500}):(?<line>\d{1,9}):(?<column>\d{1,9})\)?$/;
/** The folder of all packages of Konverge, from source or installed. */
const OWN = pathOf(import.meta.url).replace(/\/core\/(?:src|dist)\/[^/]*$/, "/");
const OWN_CLI = /\/node_modules\/konverge\//;

export interface FramesOptions {
  /** Returns the redacted message of a cause, to be kept with its type. Default: no messages. */
  readonly messageOf?: (cause: Error) => string;
}

/**
 * Returns where an error was thrown: lines such as `at resize (/app/src/pools.ts:12:9)`, of the error and then of its causes.
 * Never contains a message, except those of causes by `messageOf`. Frames of Konverge are omitted, unless an error that is not of Konverge has only those.
 */
export function framesOf(thrown: unknown, { messageOf }: FramesOptions = {}): readonly string[] {
  const lines: string[] = [];
  const seen = new Set<unknown>();
  let error: unknown = thrown;
  for (
    let depth = 0;
    depth <= MAX_CAUSES && error instanceof Error && !seen.has(error);
    depth += 1
  ) {
    seen.add(error);
    const frames = ownFrames(error).filter((frame) => !lines.includes(frame));
    const message = depth === 0 ? "" : (messageOf?.(error) ?? "");
    if (depth > 0 && (frames.length > 0 || message !== "")) lines.push(causeLine(error, message));
    lines.push(...frames);
    error = causeOf(error);
  }
  return lines;
}

/** Returns the innermost frame outside of Konverge, such as `at resize (/app/src/pools.ts:12:9)`. */
export function callerOf(error: Error): string | undefined {
  const frame = parse(traceOf(error)).find(({ file }) => !isOwn(file));
  return frame?.text.slice(0, MAX_CHARS);
}

function causeLine(cause: Error, message: string): string {
  const line = message.replaceAll(/\s+/g, " ").trim().slice(0, MAX_CHARS);
  return `caused by ${typeOfError(cause)}${line === "" ? "" : `: ${line}`}`;
}

/** Returns the name of an error's class, or the name that it sets itself. */
export function typeOfError(error: Error): string {
  const { name } = error as { readonly name: unknown };
  const type = name === "Error" ? error.constructor?.name : name;
  return typeof type === "string" && /^[\w$.-]{1,80}$/.test(type) ? type : "Error";
}

function ownFrames(error: Error): readonly string[] {
  const frames = parse(traceOf(error));
  const foreign = frames.filter(({ file }) => !isOwn(file));
  if (foreign.length === 0 && isKonvergeError(error)) return [];
  const shown = foreign.length === 0 ? frames : foreign;
  return shown.slice(0, MAX_FRAMES).map(({ text }) => text.slice(0, MAX_CHARS));
}

function parse(stack: string): { readonly file: string; readonly text: string }[] {
  const lines = stack.slice(0, MAX_STACK).split("\n");
  // A message may have lines that look like frames, but it comes first.
  const end = lines.findLastIndex((line) => !line.startsWith("    at "));
  return lines.slice(end + 1).flatMap((line) => {
    const { name, file, line: row, column } = FRAME.exec(line)?.groups ?? {};
    if (file === undefined) return [];
    const path = pathOf(file);
    const place = `${path}:${row}:${column}`;
    return [{ file: path, text: name === undefined ? `at ${place}` : `at ${name} (${place})` }];
  });
}

function isOwn(file: string): boolean {
  return (file.startsWith(OWN) && !file.includes(".test.")) || OWN_CLI.test(file);
}

/** Returns the path of a file or URL, without the query that reloads a module. */
function pathOf(file: string): string {
  const [path = ""] = file.replace(/^file:\/\//, "").split("?");
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** Returns the stack without the message. */
function traceOf(error: Error): string {
  try {
    const { stack, message } = error as { readonly stack?: unknown; readonly message: unknown };
    if (typeof stack !== "string") return "";
    const text = typeof message === "string" ? message : "";
    const at = stack.indexOf(text);
    return at < 0 ? stack : stack.slice(at + text.length);
  } catch {
    return "";
  }
}

function causeOf(error: Error): unknown {
  try {
    return error.cause;
  } catch {
    return undefined;
  }
}
