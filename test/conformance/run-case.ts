import { isJsonObject, parseJson, type JsonObject, type JsonValue } from "@konverge/core";
import { checkAnswer, missingMembers } from "./check-answer.ts";
import type { EventStream } from "./api-connection.ts";
import type { Answer, Case, EventsStep, SendStep, Step } from "./case.ts";
import { Normaliser } from "./normalise.ts";
import type { TestedServer } from "./servers.ts";

/** How one server did in one case. */
export interface CaseResult {
  /** What each step was answered, normalised, to be compared with another server's. */
  readonly record: readonly JsonValue[];
  /** What was not as expected. */
  readonly problems: readonly string[];
}

const EVENT_LIMIT_MS = 10_000;
const RETRY_LIMIT_MS = 10_000;
const RETRY_EVERY_MS = 20;
/** Headers that are part of the answer; the rest is the transport's. */
const COMPARED_HEADERS = ["content-type", "retry-after", "warning"];

/** Runs the steps of a case one after the other. `id` names its objects, the same on every server. */
export async function runCase(
  { steps }: Case,
  server: TestedServer,
  names: { readonly id: string; readonly namespace: string },
): Promise<CaseResult> {
  const seen: Record<string, Answer> = {};
  const streams = new Map<string, EventStream>();
  const record: JsonValue[] = [];
  const problems: string[] = [];
  const normaliser = new Normaliser();
  const fill = (text: string) =>
    text.replaceAll("{o}", names.id).replaceAll("{ns}", names.namespace);
  const resolve = (path: string | ((answers: typeof seen) => string)) =>
    fill(typeof path === "string" ? path : path(seen));

  const send = async (step: SendStep, place: string) => {
    const deadline = Date.now() + RETRY_LIMIT_MS;
    let answer = await sendOnce(step);
    while (step.retry === true && answer.code !== step.expect.code && Date.now() < deadline) {
      await new Promise((wake) => setTimeout(wake, RETRY_EVERY_MS));
      answer = await sendOnce(step);
    }
    if (step.as !== undefined) seen[step.as] = answer;
    const expected = JSON.parse(fill(JSON.stringify(step.expect))) as typeof step.expect;
    const { message, headers } = step.expect;
    const filled = {
      ...expected,
      ...(message === undefined
        ? {}
        : { message: typeof message === "string" ? fill(message) : message }),
      ...(headers === undefined ? {} : { headers }),
    };
    for (const problem of checkAnswer(answer, filled, seen)) problems.push(`${place}: ${problem}`);
    const kept = without(answer.body, step.ignore ?? []);
    record.push(
      normaliser.value({ code: answer.code, headers: comparedHeaders(answer), body: kept }),
    );
  };
  const sendOnce = async (step: SendStep): Promise<Answer> => {
    const [method = "", path = ""] = resolve(step.send).split(/ (.*)/);
    const body = step.text ?? bodyText(step, seen);
    const type = step.type ?? (body === undefined ? undefined : "application/json");
    const { code, headers, text } = await server.api.send({
      method,
      path,
      ...(body === undefined ? {} : { body: fill(body) }),
      headers: { ...(type === undefined ? {} : { "Content-Type": type }), ...step.headers },
    });
    return { code, headers, body: parseBody(text) };
  };
  const readEvents = async (step: EventsStep, place: string) => {
    const stream = streams.get(step.events);
    if (stream === undefined) throw new Error(`${place}: no watch ${step.events}`);
    const lines = await stream.take(step.count, EVENT_LIMIT_MS);
    let found = lines.map((line) => parseBody(line));
    if (step.unordered === true) found = found.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    const wanted = JSON.parse(fill(JSON.stringify(step.expect))) as JsonObject[];
    if (found.length !== wanted.length) {
      problems.push(
        `${place}: ${found.length} events, not ${wanted.length}: ${lines.join("").slice(0, 500)}`,
      );
    }
    for (const [index, one] of wanted.entries()) {
      for (const problem of missingMembers(found[index], one, `event ${index}`)) {
        problems.push(`${place}: ${problem}`);
      }
    }
    if (step.ends === true && (await stream.take(1, EVENT_LIMIT_MS)).length > 0) {
      problems.push(`${place}: the stream goes on`);
    }
    record.push(normaliser.value({ events: found }));
  };
  const run = async (step: Step, index: number) => {
    if ("send" in step) await send(step, `step ${index + 1}`);
    else if ("watch" in step) {
      const stream = await server.api.stream({ method: "GET", path: resolve(step.path) });
      streams.set(step.watch, stream);
      record.push({ code: stream.code });
    } else if ("events" in step) await readEvents(step, `step ${index + 1}`);
    else server.act?.(step.act);
  };

  try {
    for (const [index, step] of steps.entries()) await run(step, index);
  } finally {
    for (const stream of streams.values()) stream.close();
  }
  return { record, problems };
}

function bodyText({ body }: SendStep, seen: Record<string, Answer>): string | undefined {
  if (body === undefined) return undefined;
  return JSON.stringify(typeof body === "function" ? body(seen) : body);
}

function parseBody(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

function comparedHeaders({ headers }: Answer): JsonObject {
  const result: JsonObject = {};
  for (const name of COMPARED_HEADERS) {
    const value = headers[name];
    if (typeof value === "string") result[name] = value;
  }
  return result;
}

function nameOf(event: JsonValue): string {
  const object = isJsonObject(event) ? event["object"] : undefined;
  const metadata = isJsonObject(object) ? object["metadata"] : undefined;
  return isJsonObject(metadata) ? String(metadata["name"]) : "";
}

function without(value: JsonValue, paths: readonly string[]): JsonValue {
  const copy = structuredCopy(value);
  for (const path of paths) {
    const parts = path.split(".");
    const last = parts.pop() ?? "";
    let node: JsonValue | undefined = copy;
    for (const part of parts) node = isJsonObject(node) ? node[part] : undefined;
    if (isJsonObject(node)) delete node[last];
  }
  return copy;
}

const structuredCopy = (value: JsonValue): JsonValue => parseJson(JSON.stringify(value));
